"""The gate before the first query: a driver waits there, warm, until its epoch is opened."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum

from sparkpoint.runtime.model import GateInfo

__all__ = ["Gate", "Passage"]


class Passage(Enum):
    """How waiting at the gate ended."""

    OPEN = "open"
    TOO_LATE = "too late"
    """The deadline has passed."""
    CLOSED = "closed"
    """The epoch is over, or the driver ends."""


class Gate:
    """Whether queries may start; safe from any thread."""

    def __init__(
        self,
        epoch: int,
        *,
        gated: bool,
        deadline: float | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`deadline` is how many seconds a driver waits; None: for ever."""
        self._epoch, self._deadline = epoch, deadline
        self._now, self._monotonic = now, monotonic
        self._changed = threading.Condition()
        self._state = "waiting" if gated else "none"
        self._since: tuple[datetime, float] | None = None

    def info(self) -> GateInfo:
        """As it is now."""
        with self._changed:
            return self._info()

    @property
    def is_waiting(self) -> bool:
        """Whether a query stands before it."""
        with self._changed:
            return self._state == "waiting" and self._since is not None

    def open(self, epoch: int) -> GateInfo:
        """Open it for this epoch; a later one closes it for good, an earlier one does nothing.

        Whoever asked sees by the epoch and the state of the answer whether it was opened.
        """
        with self._changed:
            if epoch > self._epoch:
                self._state = "closed"
            elif epoch == self._epoch and self._state == "waiting":
                self._state = "open"
            self._changed.notify_all()
            return self._info()

    def close(self) -> None:
        """Let nothing through any more."""
        with self._changed:
            self._state = "closed"
            self._changed.notify_all()

    def wait(self) -> Passage:
        """Stand before it until it is opened or closed, or the deadline has passed."""
        with self._changed:
            if self._state == "waiting" and self._since is None:
                self._since = (self._now(), self._monotonic())
            while self._state == "waiting":
                left = self._left()
                if left is not None and left <= 0:
                    self._state = "closed"
                    self._changed.notify_all()
                    return Passage.TOO_LATE
                self._changed.wait(left)
            return Passage.CLOSED if self._state == "closed" else Passage.OPEN

    def _left(self) -> float | None:
        if self._deadline is None or self._since is None:
            return None
        return self._since[1] + self._deadline - self._monotonic()

    def _info(self) -> GateInfo:
        since = self._since[0] if self._since and self._state == "waiting" else None
        return GateInfo.model_validate(
            {"epoch": self._epoch, "state": self._state, "waiting_since": since}
        )
