"""Savepoints by the clock: which one is due, and what it is called, the same whoever looks."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from sparkpoint.api.common import API_VERSION
from sparkpoint.api.cron import Cron
from sparkpoint.api.job import JobSpec
from sparkpoint.api.scalars import OnDelete, Trigger
from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import FINALIZER, JOB
from sparkpoint.controller.objects import Owner

__all__ = [
    "distance",
    "late_since",
    "newest_due",
    "newest_periodic",
    "periodic_name",
    "periodic_savepoint",
    "periodic_times",
]

_STAMP: Final = "%Y%m%d%H%M"
_PATIENCE: Final = timedelta(minutes=15)
"""For a savepoint of the schedule to be complete."""


def newest_due(schedule: Cron, now: datetime) -> datetime | None:
    """The last time of the schedule that is not in the future; earlier ones are given up."""
    return schedule.latest(now)


def distance(schedule: Cron, now: datetime) -> timedelta | None:
    """Between the time that was due last and the next one: over a week-end it is longer."""
    due, following = newest_due(schedule, now), schedule.after(now)
    return following - due if due is not None and following is not None else None


def periodic_name(job: str, moment: datetime) -> str:
    """The SparkSavepoint of a time of the schedule."""
    return f"{job}-periodic-{moment.astimezone(UTC):{_STAMP}}"


def periodic_times(job: str, savepoints: Iterable[Object]) -> list[datetime]:
    """The times of the schedule that there are savepoints of, oldest first."""
    prefix = f"{job}-periodic-"
    stamps = [
        name.removeprefix(prefix)
        for body in savepoints
        if (name := str(metadata(body)["name"])).startswith(prefix)
    ]
    times = [_time(stamp) for stamp in stamps]
    return sorted(time for time in times if time is not None)


def _time(stamp: str) -> datetime | None:
    """None: somebody gave a savepoint of their own nearly such a name."""
    if not stamp.isdecimal() or len(stamp) != len("202611161200"):
        return None
    try:
        return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None


def newest_periodic(job: str, savepoints: Iterable[Object]) -> str | None:
    """The SparkSavepoint of the last time that there is one of."""
    times = periodic_times(job, savepoints)
    return periodic_name(job, times[-1]) if times else None


def periodic_savepoint(owner: Owner, spec: JobSpec, moment: datetime) -> Object:
    """What is created when it is due."""
    on_delete = spec.savepoints.on_delete if spec.savepoints is not None else OnDelete.RETAIN
    return {
        "apiVersion": API_VERSION,
        "kind": "SparkSavepoint",
        "metadata": {
            "name": periodic_name(owner.name, moment),
            "namespace": owner.namespace,
            "finalizers": [FINALIZER],
            "labels": {"app.kubernetes.io/managed-by": "sparkpoint", JOB: owner.name},
        },
        "spec": {
            "jobRef": {"name": owner.name},
            "trigger": Trigger.PERIODIC.value,
            "onDelete": on_delete.value,
        },
    }


def late_since(
    schedule: Cron, now: datetime, *, running_since: datetime | None, last: datetime | None
) -> datetime | None:
    """The time that the schedule wanted a savepoint which is not there; None if all is well."""
    due = newest_due(schedule, now - _PATIENCE)
    if due is None or running_since is None or due < running_since:
        return None
    return due if last is None or last < due else None
