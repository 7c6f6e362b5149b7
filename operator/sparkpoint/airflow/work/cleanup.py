"""Making a cleanup's plan, and carrying it out: only what was shown, and only if it still holds."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sparkpoint.airflow.decisions.errors import RulesError
from sparkpoint.airflow.decisions.retention import (
    Cleanup,
    JobPlan,
    Removal,
    plan_job,
    rules_of,
)
from sparkpoint.airflow.work.reading import Clusters, Sight, look
from sparkpoint.api.scalars import Duration
from sparkpoint.cli.jobs.cluster import SAVEPOINTS, Cluster, find
from sparkpoint.cli.jobs.errors import ConflictError, NotFoundError
from sparkpoint.cli.jobs.facts import metadata, spec_of

__all__ = ["Applied", "apply_plan", "cleanup_of", "make_plans", "results", "total"]

Object = dict[str, Any]
_TRIES: Final = 3
_GRACE: Final = "24h"
_MOST: Final = 0.5
_DELETE: Final = "Delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What was asked of the operator."""

    namespace: str
    job: str
    asked: Mapping[str, str]
    """Name -> uid of the savepoints that are being removed now."""
    since: Mapping[str, str]
    """Name -> the version that was deleted: what became of it is told from there."""
    left: Mapping[str, str]
    """Name -> why it stays after all."""
    new_bytes: int

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "namespace": self.namespace,
            "job": self.job,
            "asked": dict(self.asked),
            "since": dict(self.since),
            "left": dict(self.left),
            "new_bytes": self.new_bytes,
        }


def results(pulled: Any) -> list[dict[str, Any]]:
    """What mapped tasks left in XCom: none, one or a list; from a trigger, as JSON in a text."""
    each = pulled if isinstance(pulled, list) else [pulled]
    return [json.loads(one) if isinstance(one, str) else one for one in each if one is not None]


def total(applied: Sequence[Mapping[str, Any]], freed: Sequence[Mapping[str, Any]]) -> Object:
    """A whole run: what was removed, what stayed after all, and what was freed.

    `unknown` are those that were gone before they could be asked.
    """
    removed = sorted(f"{one['namespace']}/{name}" for one in applied for name in one["asked"])
    return {
        "removed": removed,
        "left": {name: why for one in applied for name, why in one["left"].items()},
        "new_bytes": sum(one["new_bytes"] for one in applied),
        "freed_bytes": sum(one["bytes"] for one in freed),
        "unknown": sorted(name for one in freed for name in one["unknown"]),
    }


def cleanup_of(params: Mapping[str, Any]) -> Cleanup:
    """From the Params of the DAG; RulesError says which of them makes no sense."""
    most = float(params.get("max_fraction") or _MOST)
    if not 0 < most <= 1:
        raise RulesError(f"max_fraction is {most}: give a number above 0, and at most 1.")
    try:
        grace = Duration(str(params.get("grace") or _GRACE)).timedelta
    except ValueError as error:
        raise RulesError(f"grace: {error}") from error
    rules = rules_of(params, include_manual=bool(params.get("include_manual")))
    return Cleanup(rules=rules, grace=grace, most=most)


def make_plans(
    sights: Iterable[Sight], jobs: Sequence[Mapping[str, Any]], cleanup: Cleanup, now: datetime
) -> list[JobPlan]:
    """One for each of these jobs."""
    wanted = {(job["metadata"]["namespace"], job["metadata"]["name"]) for job in jobs}
    return [
        plan_job(job, jobs=sight.jobs, savepoints=sight.savepoints, cleanup=cleanup, now=now)
        for sight in sights
        for job in sight.jobs
        if (sight.namespace, metadata(job)["name"]) in wanted
    ]


def apply_plan(
    clusters: Clusters, shown: Mapping[str, Any], *, cleanup: Cleanup, data: bool, now: datetime
) -> Applied:
    """Remove what was shown and still goes by a plan made just now.

    The operator looks once more at who needs a savepoint before its data goes.
    """
    cluster, job = clusters(str(shown["namespace"])), str(shown["job"])
    fresh = _fresh_plan(cluster, job, cleanup, now)
    refused = shown.get("refused") or fresh.refused
    asked: dict[str, str] = {}
    since: dict[str, str] = {}
    left: dict[str, str] = {}
    freed = 0
    for each in shown["remove"]:
        name, uid, version = str(each["name"]), str(each["uid"]), None
        first = removal = None if refused else _removal(fresh, name, uid)
        for _ in range(_TRIES):
            version = _remove(cluster, removal, data=data) if removal is not None else None
            if removal is None or version is not None:
                break
            # How much may go was judged before the first one went: it shrinks as it goes.
            fresh = _fresh_plan(cluster, job, cleanup, now)
            removal = _removal(fresh, name, uid)
        there = find(cluster, SAVEPOINTS, name) if version is None else None
        if there is not None and metadata(there)["uid"] == uid:
            if metadata(there).get("deletionTimestamp") is not None:
                # An earlier try of ours, or another cleanup.
                version = str(each["version"])
            elif first is not None:
                _take_back(cluster, there, first)
        if version is not None:
            asked[name], since[name] = uid, version
            freed += int(each["new_bytes"])
        elif reason := refused or _reason(fresh, name):
            left[name] = reason
    return Applied(
        namespace=cluster.namespace, job=job, asked=asked, since=since, left=left, new_bytes=freed
    )


def _fresh_plan(cluster: Cluster, job: str, cleanup: Cleanup, now: datetime) -> JobPlan:
    (sight,) = look(lambda _: cluster, [cluster.namespace], everywhere=False)
    body = next((each for each in sight.jobs if metadata(each)["name"] == job), None)
    if body is None:
        # Nobody could remove its data.
        return JobPlan(namespace=cluster.namespace, job=job, keep=(), refused="Its job is gone.")
    return plan_job(body, jobs=sight.jobs, savepoints=sight.savepoints, cleanup=cleanup, now=now)


def _removal(plan: JobPlan, name: str, uid: str) -> Removal | None:
    """Of this very savepoint; None if it stays, or is gone."""
    return next((each for each in plan.remove if (each.name, each.uid) == (name, uid)), None)


def _reason(plan: JobPlan, name: str) -> str:
    """Why it stays; empty if it is not there any more."""
    if any(each.name == name for each in plan.remove):
        return "It changes all the time, or another one has its name now."
    return next((", ".join(kept.reasons) for kept in plan.keep if kept.name == name), "")


def _remove(cluster: Cluster, removal: Removal, *, data: bool) -> str | None:
    """The version that was deleted; None if somebody changed it meanwhile."""
    version = removal.version
    try:
        if data and removal.data and removal.on_delete != _DELETE:
            change = {"metadata": {"resourceVersion": version}, "spec": {"onDelete": _DELETE}}
            version = cluster.patch(SAVEPOINTS, removal.name, change)["metadata"]["resourceVersion"]
        cluster.delete(SAVEPOINTS, removal.name, uid=removal.uid, version=version)
    except ConflictError:
        return None
    except NotFoundError:
        return version
    return version


def _take_back(cluster: Cluster, there: Object, removal: Removal) -> None:
    """It stays: whoever deletes it one day is to find its data treated as was said before us."""
    if spec_of(there).get("onDelete") in (None, removal.on_delete):
        return
    change = {"metadata": {"uid": removal.uid}, "spec": {"onDelete": removal.on_delete}}
    try:
        cluster.patch(SAVEPOINTS, removal.name, change)
    except (ConflictError, NotFoundError):
        # Another one has its name by now.
        return
