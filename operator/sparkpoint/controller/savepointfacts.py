"""SparkSavepoints as facts: which is the newest of a job, and how savepoints fare."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import Key
from sparkpoint.controller.podfacts import created_at, parse_time
from sparkpoint.controller.restores import reference
from sparkpoint.lifecycle.conditions import SavepointHealth

__all__ = [
    "completed_at",
    "is_at_rest",
    "newest_completed",
    "newest_savepoint",
    "of_job",
    "savepoint_health",
    "status_of",
]


def of_job(body: Object) -> Key | None:
    """The job that a SparkSavepoint belongs to."""
    name = ((body.get("spec") or {}).get("jobRef") or {}).get("name")
    return Key(metadata(body)["namespace"], name) if name else None


def status_of(body: Object) -> dict[str, Any]:
    """What was written about it."""
    found: dict[str, Any] = body.get("status") or {}
    return found


def is_at_rest(body: Object) -> bool:
    """Whether it waits for nothing that the job could do."""
    ended = status_of(body).get("phase") in ("Completed", "Failed")
    return ended and metadata(body).get("deletionTimestamp") is None


def completed_at(body: Object) -> datetime | None:
    """When it was complete; None if it is not, or not known to be good."""
    if status_of(body).get("phase") != "Completed":
        return None
    return parse_time(status_of(body).get("completedAt")) or created_at(body)


def newest_completed(job: Key, savepoints: Iterable[Object]) -> Object | None:
    """The newest that was taken of this very job and is not known to be damaged."""
    candidates = [
        (moment, metadata(body)["name"], body)
        for body in savepoints
        if (moment := completed_at(body)) is not None
        and of_job(body) == job
        and not (body["spec"].get("existing") or {})
        and (status_of(body).get("verified") or {}).get("good", True)
    ]
    return max(candidates, key=lambda each: each[:2])[2] if candidates else None


def newest_savepoint(job: Key, savepoints: Iterable[Object]) -> str | None:
    """How a driver or a worker of the job finds it."""
    body = newest_completed(job, savepoints)
    return reference(job, body) if body is not None else None


def savepoint_health(
    job: Key, savepoints: Iterable[Object], *, due: datetime | None
) -> SavepointHealth:
    """What the condition tells."""
    savepoints = tuple(savepoints)
    last = newest_completed(job, savepoints)
    moment = completed_at(last) if last is not None else None
    failed = [
        body
        for body in savepoints
        if status_of(body).get("phase") == "Failed" and _is_after(created_at(body), moment)
    ]
    worst = max(failed, key=lambda body: str(metadata(body).get("creationTimestamp")), default=None)
    return SavepointHealth(
        last=metadata(last)["name"] if last is not None else None,
        failed=metadata(worst)["name"] if worst is not None else None,
        failure=str(status_of(worst).get("message", "")) if worst is not None else "",
        due=due,
    )


def _is_after(created: datetime | None, moment: datetime | None) -> bool:
    return moment is None or (created is not None and created > moment)
