"""Whether our clock agrees with the API server's, which every answer of it tells.

What is written down has times of the operator that wrote it, and is judged by the one that acts
next: deadlines, back-offs, schedules, ages. Nothing is refused for a wrong clock: a job that is not
looked after is worse than a time-out that comes too early. But it is told.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

__all__ = ["OwnClock"]

logger = logging.getLogger(__name__)

_TOLERATED: Final = timedelta(seconds=15)
"""Times to the second are not told apart, and nobody's deadlines are that close."""


class OwnClock:
    """Ours, compared with what answers say."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._told = ""

    def hear(self, date: str | None, took: float) -> None:
        """What time it was for the API server when it answered, in the words of HTTP; it was so at
        some time of the seconds that the answer took."""
        theirs = _time(date)
        if theirs is None:
            return
        now = self._now()
        ahead = min(now - theirs, max(now - timedelta(seconds=took) - theirs, timedelta(0)))
        if abs(ahead) <= _TOLERATED:
            self._told = ""
        elif not self._told:
            self._told = _sentence(ahead)
            logger.warning("%s", self._told)

    def notes(self) -> Sequence[str]:
        """A sentence while the two differ."""
        return [self._told] if self._told else []


def _sentence(ahead: timedelta) -> str:
    seconds = ahead.total_seconds()
    return (
        f"This operator's clock is {abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} "
        "the API server's, and deadlines, schedules and ages go by it: set the clocks of the "
        "nodes (NTP)."
    )


def _time(date: str | None) -> datetime | None:
    try:
        found = parsedate_to_datetime(date) if date else None
    except ValueError:
        return None
    # Without a zone, it is said to be UTC of unknown origin; HTTP has no other.
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found
