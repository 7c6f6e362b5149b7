"""Whether passes go on: who waits, who works, and when somebody was done last.

What counts as a stall is said by a pure function, so that a probe that ends the operator can be
tried out without one.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

__all__ = ["Activity", "Pulse", "stall"]

_SILENCE: Final = 300.0
"""Seconds without the end of a pass, though one is due: each job is looked at every minute."""
_LONGEST_PASS: Final = 900.0
"""Seconds after which a pass will not end any more: each of its requests has a time limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What passes are doing at a moment; times are those of a clock that never goes back."""

    acts: bool
    """Whether this operator is the one that acts."""
    jobs: int = 0
    """How many jobs are known."""
    unlisted: int = 0
    """Lists that have not ended once: nothing is known of what is on them."""
    unlisted_since: float | None = None
    """Since when they have been asked for."""
    waiting: int = 0
    """Passes that wait for their turn."""
    waiting_since: float | None = None
    """Since when the first of them does."""
    running_since: float | None = None
    """Since when the first of those that are under way is."""
    ended: float | None = None
    """When a pass ended last; None: none has."""


def stall(now: float, seen: Activity) -> str:
    """A sentence if passes do not go on as they should; empty if they do.

    An operator that waits for its turn has nothing to do, and is well.
    """
    if not seen.acts:
        return ""
    if seen.running_since is not None and now - seen.running_since > _LONGEST_PASS:
        return f"A pass has been running for {now - seen.running_since:.0f} s."
    if seen.unlisted_since is not None and now - seen.unlisted_since > _SILENCE:
        silence = f"{now - seen.unlisted_since:.0f} s"
        return f"{seen.unlisted} kinds of resources could not be listed once for {silence}."
    since = _last_sign(seen)
    if since is None or now - since <= _SILENCE:
        return ""
    if seen.waiting:
        return f"No pass has ended for {now - since:.0f} s, and {seen.waiting} wait."
    return f"No pass has ended for {now - since:.0f} s, with {seen.jobs} jobs to look after."


def _last_sign(seen: Activity) -> float | None:
    """Since when something should have happened; None while nothing is due."""
    if seen.waiting_since is not None:
        return max(seen.waiting_since, seen.ended if seen.ended is not None else 0.0)
    return seen.ended if seen.jobs else None


class Pulse:
    """Notes when passes wait, begin and end; all from one event loop."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._monotonic, self._wall = monotonic, wall
        # In the order in which they began, so that the first one is the oldest.
        self._waiting: dict[object, float] = {}
        self._running: dict[object, float] = {}
        self._ended: float | None = None
        self._expected, self._expected_since = 0, 0.0
        self._listed: set[str] = set()
        self.ended_at: float | None = None
        """When a pass ended last, as people count time."""

    @property
    def waiting(self) -> int:
        """Passes that wait for their turn."""
        return len(self._waiting)

    @property
    def unlisted(self) -> int:
        """Lists that have not ended once."""
        return max(0, self._expected - len(self._listed))

    def expect(self, lists: int) -> None:
        """So many are asked for from now on."""
        self._expected, self._expected_since = lists, self._monotonic()

    def listed(self, path: str) -> None:
        """The list of this path has ended, be it of nothing."""
        self._listed.add(path)

    @contextmanager
    def wait(self) -> Iterator[Callable[[], None]]:
        """A pass waits for its turn, and no longer once it calls what it is given."""
        ticket = object()
        self._waiting[ticket] = self._monotonic()
        try:
            yield lambda: self._begin(ticket)
        finally:
            self._waiting.pop(ticket, None)
            if self._running.pop(ticket, None) is not None:
                self.beat()

    def beat(self) -> None:
        """Something was looked after."""
        self._ended, self.ended_at = self._monotonic(), self._wall()

    def activity(self, *, acts: bool, jobs: int) -> Activity:
        """As it is now."""
        return Activity(
            acts=acts,
            jobs=jobs,
            unlisted=self.unlisted,
            unlisted_since=self._expected_since if self.unlisted else None,
            waiting=len(self._waiting),
            waiting_since=next(iter(self._waiting.values()), None),
            running_since=next(iter(self._running.values()), None),
            ended=self._ended,
        )

    def _begin(self, ticket: object) -> None:
        self._waiting.pop(ticket, None)
        self._running[ticket] = self._monotonic()
