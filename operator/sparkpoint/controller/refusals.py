"""Worker pods that the API server refuses to make: to an operation they are pods that failed.

Without that it would wait for ever, in a phase that no newer wish may interrupt. In memory alone:
an operator that starts anew is refused anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sparkpoint.controller.errors import ClusterError, UnprocessableError
from sparkpoint.controller.keys import Key
from sparkpoint.controller.obstacles import explained
from sparkpoint.lifecycle.world import WorkerFact, WorkerState

__all__ = ["Refusal", "Refusals", "refused_worker"]

_PATIENCE: Final = timedelta(minutes=5)
"""For a quota to be lifted, or a right to be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A worker that could not be made."""

    worker: str
    message: str
    since: datetime
    final: bool
    """Waiting does not help, or was tried for long enough."""


class Refusals:
    """The present one of each job."""

    def __init__(self) -> None:
        self._present: dict[Key, Refusal] = {}

    def of(self, job: Key) -> Refusal | None:
        """What was refused last."""
        return self._present.get(job)

    def note(self, job: Key, worker: str, error: ClusterError, *, now: datetime) -> None:
        """It was refused."""
        known = self._present.get(job)
        since = known.since if known is not None and known.worker == worker else now
        final = isinstance(error, UnprocessableError) or now - since > _PATIENCE
        message = explained(error)
        self._present[job] = Refusal(worker=worker, message=message, since=since, final=final)

    def clear(self, job: Key) -> None:
        """Everything was done."""
        self._present.pop(job, None)


def refused_worker(refusal: Refusal | None, seen: Sequence[WorkerFact]) -> tuple[WorkerFact, ...]:
    """A worker that can never be is one that failed: what follows is the same."""
    if refusal is None or not refusal.final:
        return ()
    if any(worker.name == refusal.worker for worker in seen):
        return ()
    failed = WorkerState.FAILED
    return (WorkerFact(name=refusal.worker, state=failed, message=refusal.message, refused=True),)
