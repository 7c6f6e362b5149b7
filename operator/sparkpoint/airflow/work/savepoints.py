"""Asking for a savepoint so that whoever asks again finds it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sparkpoint.airflow.decisions.drills import check_savepoint
from sparkpoint.airflow.decisions.due import Skip, captured_at, judge_due, newest_good
from sparkpoint.airflow.decisions.keys import (
    ATTEMPT,
    RUN,
    RUN_KEY,
    Adopt,
    attempt_name,
    choose,
)
from sparkpoint.api.common import API_VERSION
from sparkpoint.cli.jobs.cluster import JOB, SAVEPOINTS, Cluster, find
from sparkpoint.cli.jobs.errors import AlreadyExistsError, NotFoundError, RefusedError
from sparkpoint.cli.jobs.facts import metadata, spec_of, status_of
from sparkpoint.cli.jobs.finding import live_job, savepoints_of

__all__ = ["Wanted", "ensure_check", "ensure_savepoint", "made_by", "summary"]

Object = dict[str, Any]
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A savepoint of a job, asked for by a run."""

    job: str
    key: str
    run: str
    """The run, for people."""
    trigger: str = "Periodic"
    tags: Sequence[str] = ()
    verify: str | None = None
    retention: Mapping[str, Any] = field(default_factory=dict)
    fresh_since: datetime | None = None
    """Not needed if one was captured since then."""


def made_by(cluster: Cluster, key: str) -> list[Object]:
    """What a run has asked for so far."""
    return cluster.list(SAVEPOINTS, labels={RUN_KEY: key})


def ensure_savepoint(cluster: Cluster, wanted: Wanted, *, now: datetime) -> Object | Skip:
    """The savepoint of this run: the one that it has, or a new one; or why there is to be none."""
    for _ in range(_TRIES):
        choice = choose(made_by(cluster, wanted.key))
        if isinstance(choice, Adopt):
            return choice.savepoint
        job = live_job(cluster, wanted.job)
        if not spec_of(job).get("savepoints"):
            raise RefusedError(
                f"Job {wanted.job} has no place for savepoints: set spec.savepoints.repository."
            )
        # Time has passed since the run was planned.
        reason = _needless(cluster, job, wanted, now)
        if reason:
            return Skip(reason)
        name = attempt_name(wanted.job, wanted.key, choice.attempt)
        try:
            return cluster.create(SAVEPOINTS, _resource(cluster, job, wanted, name, choice.attempt))
        except AlreadyExistsError:
            # Somebody does the same for this run right now: look again.
            continue
    raise RefusedError(
        f"A savepoint of job {wanted.job} has the name that this run needs, and is not of this "
        "run. Delete it."
    )


def _needless(cluster: Cluster, job: Object, wanted: Wanted, now: datetime) -> str:
    if wanted.fresh_since is None:
        return ""
    own = savepoints_of(cluster, wanted.job)
    others = [body for body in own if _key(body) != wanted.key]
    verdict = judge_due(job, others, default="never", now=now, force=True)
    if isinstance(verdict, Skip):
        return verdict.reason
    newest = newest_good(job, others)
    captured = captured_at(newest) if newest is not None else None
    if newest is not None and captured is not None and captured >= wanted.fresh_since:
        return f"Fresh: {metadata(newest)['name']} was captured at {captured.isoformat()}."
    return ""


def _key(body: Object) -> str | None:
    found: str | None = (metadata(body).get("labels") or {}).get(RUN_KEY)
    return found


def _resource(cluster: Cluster, job: Object, wanted: Wanted, name: str, attempt: int) -> Object:
    own = spec_of(job)["savepoints"]
    spec: Object = {
        "jobRef": {"name": wanted.job},
        "trigger": wanted.trigger,
        "onDelete": own.get("onDelete", "Retain"),
    }
    spec |= {"tags": sorted(set(wanted.tags))} if wanted.tags else {}
    spec |= {"verify": wanted.verify} if wanted.verify else {}
    spec |= {"retention": dict(wanted.retention)} if wanted.retention else {}
    labels = {JOB: wanted.job, RUN_KEY: wanted.key, ATTEMPT: str(attempt)}
    about = {"name": name, "namespace": cluster.namespace, "labels": labels}
    about["annotations"] = {RUN: wanted.run}
    kind = "SparkSavepoint"
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": about, "spec": spec}


def ensure_check(
    cluster: Cluster, savepoint: str, *, level: str, key: str, run: str
) -> tuple[Object, Object]:
    """A savepoint, and the resource that has it checked."""
    body = find(cluster, SAVEPOINTS, savepoint)
    if body is None:
        raise NotFoundError(f"No savepoint {savepoint} in namespace {cluster.namespace}.")
    if status_of(body).get("phase") != "Completed":
        phase = status_of(body).get("phase") or "Pending"
        raise RefusedError(f"Savepoint {savepoint} is {phase}: there is nothing to check.")
    job = live_job(cluster, str(spec_of(body)["jobRef"]["name"]))
    check = check_savepoint(body, job=job, level=level, key=key, run=run)
    there = find(cluster, SAVEPOINTS, check["metadata"]["name"])
    if there is not None and status_of(there).get("phase") == "Failed":
        # A retry is another try.
        cluster.delete(SAVEPOINTS, metadata(there)["name"], uid=metadata(there)["uid"])
    try:
        return body, cluster.create(SAVEPOINTS, check)
    except AlreadyExistsError:
        return body, cluster.get(SAVEPOINTS, check["metadata"]["name"])


def summary(savepoint: Object) -> dict[str, Any]:
    """What others want to know of a savepoint that is complete: small, and no secret in it."""
    about, status = metadata(savepoint), status_of(savepoint)
    known = {key: status[key] for key in _TOLD if status.get(key) is not None}
    return {
        "namespace": about.get("namespace"),
        "job": (spec_of(savepoint).get("jobRef") or {}).get("name"),
        "savepoint": about.get("name"),
        "uid": about.get("uid"),
        **known,
    }


_TOLD: Final = (
    "id",
    "batch",
    "bytes",
    "newBytes",
    "completedAt",
    "repository",
    "revision",
    "duration",
)
