"""SparkSavepoints as facts: which is the newest of a job, and how savepoints fare."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sparkpoint.api.scalars import Verification
from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.finalizers import is_guarded
from sparkpoint.controller.keys import Key
from sparkpoint.controller.podfacts import created_at, parse_time
from sparkpoint.controller.restores import reference
from sparkpoint.controller.schedules import periodic_times
from sparkpoint.lifecycle.conditions import SavepointHealth

__all__ = [
    "Stock",
    "completed_at",
    "has_ended",
    "is_at_rest",
    "is_looked_after",
    "newest_completed",
    "of_job",
    "status_of",
    "take_stock",
]


_RECENT: Final = timedelta(hours=1)
"""What was complete before was looked at since, and any check that was wanted has begun."""
_SKIP: Final = Verification.SKIP.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """The savepoints of a job, and what every look at the job asks of them: reckoned when one of
    them has changed, and not at every look."""

    everything: tuple[Object, ...] = ()
    """The SparkSavepoints that name the job, also those of an earlier job of this name."""
    own: tuple[Object, ...] = ()
    """Those of this life of the job: all that it may count upon, tell of, and remove."""
    newest: Object | None = None
    """The newest of its own that is complete and not known to be damaged."""
    proven: Object | None = None
    """The newest of them that was checked and found good."""
    failed: Object | None = None
    """The newest of its own that failed, if that was after the newest complete one."""
    scheduled: tuple[datetime, ...] = ()
    """The times of the schedule that there are savepoints of, oldest first."""
    periodic: datetime | None = None
    """The last of them of which one of its own is complete."""

    def reference(self, job: Key) -> str | None:
        """How a driver or a worker of the job finds the newest one."""
        return reference(job, self.newest) if self.newest is not None else None

    def health(self, *, due: datetime | None) -> SavepointHealth:
        """What the condition tells."""
        last, failed = self.newest, self.failed
        return SavepointHealth(
            last=metadata(last)["name"] if last is not None else None,
            failed=metadata(failed)["name"] if failed is not None else None,
            failure=str(status_of(failed).get("message", "")) if failed is not None else "",
            due=due,
        )


def of_job(body: Object) -> Key | None:
    """The job that a SparkSavepoint belongs to."""
    name = ((body.get("spec") or {}).get("jobRef") or {}).get("name")
    return Key(metadata(body)["namespace"], name) if name else None


def status_of(body: Object) -> dict[str, Any]:
    """What was written about it."""
    found: dict[str, Any] = body.get("status") or {}
    return found


def has_ended(body: Object) -> bool:
    """Whether it is complete or has failed, and is to stay."""
    ended = status_of(body).get("phase") in ("Completed", "Failed")
    return ended and metadata(body).get("deletionTimestamp") is None


def is_looked_after(body: Object) -> bool:
    """Whether it has had a pass of its own: one that its job has made, or filled in, may not."""
    return is_guarded(body) and "record" in status_of(body)


def is_at_rest(body: Object, *, job: Object | None, now: datetime) -> bool:
    """Whether nothing is to be done to it, as far as this and its job tell.

    What was complete long ago may still have to be checked, if its job asks for that since: there
    may be thousands of them, and none is urgent.
    """
    status = status_of(body)
    if not (has_ended(body) and is_looked_after(body)):
        return False
    if status["phase"] == "Failed":
        return True
    record, since = status["record"], completed_at(body)
    if not (record.get("described") or status.get("id")):
        return False
    is_recent = since is not None and now - since < _RECENT
    return bool(record.get("checked")) or not (is_recent and _is_to_be_checked(body, job))


def _is_to_be_checked(body: Object, job: Object | None) -> bool:
    """A job that is not known yet may say so."""
    own = (body.get("spec") or {}).get("verify")
    saved = (job.get("spec") or {}).get("savepoints") or {} if job is not None else {}
    wanted = own or saved.get("verify")
    return wanted != _SKIP and (wanted is not None or job is None)


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


def take_stock(job: Key, born: datetime | None, savepoints: tuple[Object, ...]) -> Stock:
    """Of a job that was made then; all these savepoints name it."""
    own = tuple(body for body in savepoints if born is None or _is_since(born, body))
    newest = newest_completed(job, own)
    complete = [body for body in own if completed_at(body) is not None]
    return Stock(
        everything=savepoints,
        own=own,
        newest=newest,
        proven=newest_completed(job, filter(_is_proven, own)),
        failed=_failed(own, completed_at(newest) if newest is not None else None),
        scheduled=tuple(periodic_times(job.name, savepoints)),
        periodic=max(periodic_times(job.name, complete), default=None),
    )


def _is_since(born: datetime, savepoint: Object) -> bool:
    """Whether it was taken of the job that was born then, or is still to be taken.

    Not those of an earlier job of this name: their state is another one's.
    """
    made = created_at(savepoint) or born
    if savepoint["spec"].get("existing"):
        # When it was taken says nothing: it was made known to the job that was there.
        return made >= born
    if status_of(savepoint).get("phase") == "Failed":
        return (parse_time(status_of(savepoint).get("startedAt")) or made) >= born
    complete = completed_at(savepoint)
    # What was asked for of this job is its own, whatever the clock of its driver's node says. What
    # was asked for before it is, too, if it waited for it; Kubernetes knows seconds alone, so that
    # what was complete in that very second may be an earlier job's.
    return complete is None or made >= born or complete > born


def _is_proven(body: Object) -> bool:
    return bool((status_of(body).get("verified") or {}).get("good"))


def _failed(savepoints: Iterable[Object], newest: datetime | None) -> Object | None:
    failed = [
        body
        for body in savepoints
        if status_of(body).get("phase") == "Failed" and _is_after(created_at(body), newest)
    ]
    return max(failed, key=lambda body: str(metadata(body).get("creationTimestamp")), default=None)


def _is_after(created: datetime | None, moment: datetime | None) -> bool:
    return moment is None or (created is not None and created > moment)
