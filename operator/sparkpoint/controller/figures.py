"""What is told of a single job in the metrics, from what a pass has seen and written."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.cluster import Object
from sparkpoint.controller.metrics import JobFigures
from sparkpoint.controller.savepointfacts import Stock, completed_at, status_of
from sparkpoint.controller.schedules import distance

__all__ = ["job_figures"]


def job_figures(
    status: Mapping[str, Any], stock: Stock, *, spec: JobSpec | None, now: datetime
) -> JobFigures:
    """The figures of a job with these savepoints."""
    content = status_of(stock.newest) if stock.newest is not None else {}
    return JobFigures(
        degraded=_degraded(status),
        savepoint_at=_moment(stock.newest),
        verified_at=_moment(stock.proven),
        bytes=content.get("bytes"),
        new_bytes=content.get("newBytes"),
        interval=_interval(spec, now),
    )


def _degraded(status: Mapping[str, Any]) -> str | None:
    found = (each for each in status.get("conditions") or () if each["type"] == "Degraded")
    return next((str(each["reason"]) for each in found if each["status"] == "True"), None)


def _moment(body: Object | None) -> float | None:
    moment = completed_at(body) if body is not None else None
    return moment.timestamp() if moment is not None else None


def _interval(spec: JobSpec | None, now: datetime) -> float | None:
    schedule = spec.savepoints.schedule if spec is not None and spec.savepoints else None
    found = distance(schedule, now) if schedule is not None else None
    return found.total_seconds() if found is not None else None
