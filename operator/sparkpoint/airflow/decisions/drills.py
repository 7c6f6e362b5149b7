"""Restore drills: which savepoint, in which throw-away job, and what came of it.

A script knows alone where it writes. So a job is restored for real only if it says, in an
annotation, how its script is told to write nowhere; of the others, Spark loads the state and counts
its rows, and nothing is run.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sparkpoint.airflow.decisions.due import all_good
from sparkpoint.airflow.decisions.errors import DrillError
from sparkpoint.airflow.decisions.keys import RUN, RUN_KEY
from sparkpoint.api.common import API_VERSION
from sparkpoint.api.scalars import LONGEST_JOB_NAME
from sparkpoint.cli.jobs.facts import job_of, metadata, moment_of, spec_of, status_of
from sparkpoint.cli.jobs.specs import AssignmentError, put

__all__ = [
    "DRILL",
    "DRILL_OF",
    "SETTINGS",
    "Result",
    "check_name",
    "check_savepoint",
    "conclude",
    "drill_job",
    "drill_name",
    "drill_of",
    "is_leftover",
    "pick",
    "settings_of",
]

Object = dict[str, Any]

SETTINGS: Final = "airflow.sparkpoint.dev/drill"
"""An annotation of a job: how a throw-away copy of it differs, a `FIELD=VALUE` per line."""
DRILL: Final = "airflow.sparkpoint.dev/drilled"
"""An annotation of a savepoint: what came of its last drill, as JSON."""
DRILL_OF: Final = "airflow.sparkpoint.dev/drill-of"
"""A label of a throw-away job: the job that it is a copy of."""
_LONGEST_DRILL: Final = timedelta(days=1)
_NOT_INHERITED: Final = ("suspend", "restartNonce", "restoreFrom")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a drill."""

    good: bool
    at: str
    seconds: float
    restored: bool
    """Whether a job ran from it, and not only its state was loaded."""
    rows: int | None
    problems: tuple[str, ...] = ()

    def annotation(self) -> str:
        """As it is written on the savepoint."""
        shown = {"good": self.good, "at": self.at, "seconds": self.seconds}
        shown |= {"restored": self.restored, "rows": self.rows, "problems": list(self.problems)}
        return json.dumps(shown, sort_keys=True)


def drill_of(savepoint: Object) -> Mapping[str, Any] | None:
    """What came of its last drill; None if there was none, or nothing can be read."""
    text = (metadata(savepoint).get("annotations") or {}).get(DRILL)
    try:
        found = json.loads(text) if text else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def pick(job: Object, savepoints: Iterable[Object], *, chance: float | None) -> Object | None:
    """The newest good savepoint of the job; with `chance` (0 to 1), any of them; None if none."""
    good = all_good(job, savepoints)
    if not good:
        return None
    return good[-1 if chance is None else min(int(chance * len(good)), len(good) - 1)]


def is_leftover(body: Object, *, dag: str, now: datetime) -> bool:
    """Whether a drill of this DAG has made it, and is over: nobody has cleaned up after a run that
    was ended from outside, or deleted."""
    about = metadata(body)
    made = moment_of(about.get("creationTimestamp"))
    throwaway = DRILL_OF in (about.get("labels") or {}) or bool(spec_of(body).get("existing"))
    run = str((about.get("annotations") or {}).get(RUN, ""))
    old = made is not None and now - made > _LONGEST_DRILL
    return throwaway and run.startswith(f"{dag} ") and old


def settings_of(job: Object) -> list[str]:
    """How a copy of the job is kept from writing to where the job writes; empty: nobody said."""
    text = str((metadata(job).get("annotations") or {}).get(SETTINGS, ""))
    return [line.strip() for line in text.splitlines() if line.strip()]


def drill_name(job: str, key: str) -> str:
    """The throw-away job of a run."""
    end = f"-drill-{key[:8]}"
    return f"{job[: LONGEST_JOB_NAME - len(end)].rstrip('-.')}{end}"


def drill_job(
    job: Object, *, savepoint: str, settings: Sequence[str], key: str, run: str
) -> Object:
    """A copy of the job that begins from the savepoint, writes elsewhere, and leaves nothing."""
    if not settings:
        raise DrillError(
            f"{_name(job)} does not say how a copy of it is kept from writing to the same place: "
            f"set the annotation {SETTINGS}, such as args[1]=--output=/dev/null"
        )
    spec = {name: value for name, value in spec_of(job).items() if name not in _NOT_INHERITED}
    spec["checkpoint"] = {
        **{key: value for key, value in spec["checkpoint"].items() if not key.startswith("adopt")},
        "onDelete": "Delete",
    }
    spec["savepoints"] = {
        **{key: value for key, value in spec.get("savepoints", {}).items() if key != "schedule"},
        "finalOnDelete": False,
        "onDelete": "Delete",
    }
    spec["restart"] = {"policy": "Never"}
    spec["restoreFrom"] = {"savepoint": savepoint, "sink": "Fork"}
    try:
        for setting in settings:
            spec = put(spec, setting)
    except AssignmentError as error:
        raise DrillError(f"Annotation {SETTINGS} of {_name(job)}: {error}") from error
    name = drill_name(_name(job), key)
    about = {
        "name": name,
        "namespace": metadata(job)["namespace"],
        "labels": {RUN_KEY: key, DRILL_OF: _name(job)},
        "annotations": {RUN: run, "airflow.sparkpoint.dev/savepoints": "never"},
    }
    kind = "StatefulSparkJob"
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": about, "spec": spec}


def check_name(savepoint: str, key: str) -> str:
    """The resource that has a savepoint checked once more."""
    return f"{savepoint[:40].rstrip('-.')}-check-{key[:8]}"


def check_savepoint(savepoint: Object, *, job: Object, level: str, key: str, run: str) -> Object:
    """Makes the same savepoint known a second time, so that it is looked at again.

    Nothing is captured, and its data is the first one's: deleting it leaves the data.
    """
    status, about = status_of(savepoint), metadata(savepoint)
    existing = {
        "repository": status["repository"],
        "job": (spec_of(savepoint).get("existing") or {}).get("job", job_of(savepoint)),
        "name": status.get("name") or about["name"],
    }
    endpoint = (spec_of(job).get("savepoints") or {}).get("endpointUrl")
    if endpoint:
        existing["endpointUrl"] = endpoint
    meta = {
        "name": check_name(str(about["name"]), key),
        "namespace": about["namespace"],
        "labels": {RUN_KEY: key},
        "annotations": {RUN: run},
    }
    spec = {
        "jobRef": {"name": job_of(savepoint)},
        "trigger": "Drill",
        "existing": existing,
        "verify": level,
        "onDelete": "Retain",
    }
    return {"apiVersion": API_VERSION, "kind": "SparkSavepoint", "metadata": meta, "spec": spec}


def conclude(
    savepoint: Object,
    *,
    check: Object | None,
    copy: Object | None,
    ran: bool,
    began: datetime,
    now: datetime,
) -> Result:
    """From the check, and the throw-away job if one was wanted (`ran`)."""
    counted = _rows(check or {})
    rows = _rows(savepoint) | counted
    problems = [*_check_problems(check), *(_copy_problems(savepoint, copy, rows) if ran else [])]
    return Result(
        good=not problems,
        at=now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        seconds=round((now - began).total_seconds(), 1),
        restored=ran and not problems,
        rows=sum(counted.values()) if counted else None,
        problems=tuple(problems),
    )


def _check_problems(check: Object | None) -> list[str]:
    if check is None:
        return ["It was not checked: the resource of the check is gone."]
    status = status_of(check)
    verified = status.get("verified") or {}
    if not verified:
        return [f"It could not be checked: {status.get('message') or 'no verdict was given'}."]
    return [] if verified.get("good") else list(verified.get("problems") or ["It is damaged."])


def _copy_problems(savepoint: Object, copy: Object | None, rows: Mapping[str, int]) -> list[str]:
    """Every query of the savepoint runs, went on from its batch, and has state if it had some."""
    if copy is None:
        return ["The throw-away job is gone."]
    running = {each.get("name"): each for each in status_of(copy).get("queries") or []}
    problems = []
    for query in status_of(savepoint).get("queries") or []:
        name, found = query.get("name"), running.get(query.get("name"))
        if found is None:
            problems.append(f"Query {name} did not start.")
        elif found.get("batch") is None or found["batch"] < query.get("batch", 0):
            problems.append(f"Query {name} has not gone on from batch {query.get('batch')}.")
        elif rows.get(str(name)) and not found.get("stateRows"):
            problems.append(f"Query {name} had {rows[str(name)]} rows of state, and has none.")
    return problems


def _rows(body: Object) -> dict[str, int]:
    """Query -> rows of its state, of those that somebody has counted."""
    queries = status_of(body).get("queries") or []
    return {each["name"]: each["rows"] for each in queries if each.get("rows") is not None}


def _name(body: Object) -> str:
    return str(metadata(body).get("name", ""))
