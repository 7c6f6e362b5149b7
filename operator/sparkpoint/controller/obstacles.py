"""What the API server refused to make, kept until the next pass so that it can be decided upon.

In memory alone: an operator that starts anew is refused anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sparkpoint.controller.errors import (
    ClusterError,
    ForbiddenError,
    TakenError,
    UnprocessableError,
)
from sparkpoint.controller.keys import Key
from sparkpoint.lifecycle.naming import driver_name
from sparkpoint.lifecycle.record import Run
from sparkpoint.lifecycle.world import DriverExit, PodFact

__all__ = ["Obstacle", "Obstacles", "explained", "refused_driver"]

_PATIENCE = timedelta(minutes=5)
"""For a quota to be lifted, or a right to be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Something that could not be made."""

    message: str
    since: datetime
    final: bool
    """Waiting does not help, or was tried for long enough."""
    run: tuple[int, int] | None = None
    """Epoch and attempt, if it was a driver."""


class Obstacles:
    """The present obstacle of each job."""

    def __init__(self) -> None:
        self._present: dict[Key, Obstacle] = {}

    def of(self, job: Key) -> Obstacle | None:
        """What stands in the way of this job."""
        return self._present.get(job)

    def note(self, job: Key, error: ClusterError, *, run: Run | None, now: datetime) -> None:
        """It was refused."""
        attempt = (run.epoch, run.attempt) if run is not None else None
        known = self._present.get(job)
        same = known is not None and known.run == attempt
        since = known.since if known is not None and same else now
        final = isinstance(error, UnprocessableError) or now - since > _PATIENCE
        message = explained(error)
        self._present[job] = Obstacle(message=message, since=since, final=final, run=attempt)

    def clear(self, job: Key) -> None:
        """Everything was done."""
        self._present.pop(job, None)


def explained(error: ClusterError) -> str:
    """What was refused and why, as the API server says it, and what to do about it."""
    words = str(error).rstrip()
    if isinstance(error, TakenError):
        return words
    if isinstance(error, UnprocessableError):
        remedy = "Change what it names in the spec, such as the pod template."
    elif isinstance(error, ForbiddenError) and "exceeded quota" in words:
        remedy = "Raise the quota, or free some of it; it is tried again."
    elif isinstance(error, ForbiddenError):
        remedy = "Let the operator's account do it, or let the policy pass; it is tried again."
    else:
        return words
    return f"{words}{'' if words.endswith('.') else '.'} {remedy}"


def refused_driver(
    obstacle: Obstacle | None, job: str, run: Run | None, seen: Sequence[PodFact]
) -> tuple[PodFact, ...]:
    """A driver that can never be is one that ended: what follows is the same."""
    if obstacle is None or run is None or not obstacle.final:
        return ()
    if obstacle.run != (run.epoch, run.attempt):
        return ()
    name = driver_name(job, run)
    if any(pod.name == name for pod in seen):
        return ()
    ended = DriverExit(code=None, reason="PodRefused", message=obstacle.message)
    return (
        PodFact(
            name=name,
            uid="",
            role="driver",
            epoch=run.epoch,
            attempt=run.attempt,
            over=True,
            exit=ended,
        ),
    )
