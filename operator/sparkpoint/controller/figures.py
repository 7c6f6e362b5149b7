"""What is told of a single job in the metrics, from what a pass has seen and written."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sparkpoint.api.policies import Savepoints
from sparkpoint.controller.cluster import Object
from sparkpoint.controller.metrics import JobFigures
from sparkpoint.controller.observer import Observation
from sparkpoint.controller.podfacts import created_at
from sparkpoint.controller.savepointfacts import completed_at, status_of
from sparkpoint.controller.schedules import distance
from sparkpoint.lifecycle.conditions import Reason
from sparkpoint.lifecycle.record import Record

__all__ = ["job_figures"]


def job_figures(status: Mapping[str, Any], seen: Observation, record: Record) -> JobFigures:
    """The figures of a job that was seen so; this record and status are what was made of it."""
    stock, spec = seen.stock, seen.intent.spec
    content = status_of(stock.newest) if stock.newest is not None else {}
    # A job that stands is not expected to have a newer one.
    stands = record.run is None or record.suspended or record.finished or seen.job.deleting
    wanted = spec.savepoints if spec is not None and not stands else None
    return JobFigures(
        phase=str(status.get("phase") or "Unknown"),
        ready=None if stands else _ready(status),
        degraded=_degraded(status),
        savepoint_at=_moment(stock.newest),
        expected=wanted is not None,
        missing_since=_made(seen) if wanted is not None and stock.newest is None else None,
        verified_at=_moment(stock.proven),
        bytes=content.get("bytes"),
        new_bytes=content.get("newBytes"),
        interval=_interval(wanted, seen.world.now),
    )


def _ready(status: Mapping[str, Any]) -> bool | None:
    """Nothing while it is brought up or changed: how long that may take, its policies say."""
    told = _condition(status, "Ready")
    if status.get("operation") or told.get("reason") == Reason.STARTING.value:
        return None
    return told.get("status") == "True"


def _degraded(status: Mapping[str, Any]) -> str | None:
    told = _condition(status, "Degraded")
    return str(told["reason"]) if told.get("status") == "True" else None


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((each for each in status.get("conditions") or () if each["type"] == kind), {})


def _moment(body: Object | None) -> float | None:
    moment = completed_at(body) if body is not None else None
    return moment.timestamp() if moment is not None else None


def _made(seen: Observation) -> float | None:
    moment = created_at(seen.job.body)
    return moment.timestamp() if moment is not None else None


def _interval(wanted: Savepoints | None, now: datetime) -> float | None:
    schedule = wanted.schedule if wanted is not None else None
    found = distance(schedule, now) if schedule is not None else None
    return found.total_seconds() if found is not None else None
