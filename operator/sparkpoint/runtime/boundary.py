"""Stop a query between two batches, which Spark itself never does.

`query.stop()` cancels the batch that runs, and leaves `offsets/N` without `commits/N`. Instead we
set the flag that the query's loop looks at, without the interrupt, at a moment when the next look
is one after a commit:

- Spark writes either log only under its progress lock. While we hold it, no batch begins and none
  is committed, so a query's thread can go no further than the next of these two.
- A batch that runs is safe to flag: its commit is the next thing that happens. During planning it
  is not: Spark 4.2 and later (SPARK-57963) then throws the batch away. So we wait until it runs.
- Between batches the thread may have looked at the flag just before we set it, and stand at the
  door of the next batch. Then the flag is taken back and that batch is let in: one more turn.

Every wait ends with the deadline; the caller interrupts then, and reports what it had to do.
"""

import time
from collections.abc import Callable
from typing import Protocol

from sparkpoint.runtime.execution import Positions, Where

__all__ = ["Loop", "end_at_boundary"]

_POLL = 0.005


class Loop(Protocol):
    """What is asked of a running query; see execution.py."""

    def where(self) -> Where: ...
    def lock(self, seconds: float) -> bool: ...
    def unlock(self) -> None: ...
    def positions(self) -> Positions: ...
    def end_before_first_turn(self) -> bool: ...
    def end_after_turn(self) -> None: ...
    def go_on(self) -> None: ...
    def wake(self) -> None: ...


def end_at_boundary(
    loop: Loop,
    *,
    deadline: float,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Make the query end after its running batch; False if that was not possible in time.

    True means that it will end, not that it has: the running batch takes as long as it takes.
    """
    patience = _Patience(deadline, monotonic, sleep)
    while patience.left > 0:
        if not loop.lock(patience.left):
            return False
        try:
            if _flag(loop, patience):
                return True
        finally:
            loop.unlock()
        # The lock is fair: the query's thread gets it before we ask again.
        patience.pause()
    return False


class _Patience:
    def __init__(
        self, deadline: float, monotonic: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._deadline, self._monotonic, self._sleep = deadline, monotonic, sleep

    @property
    def left(self) -> float:
        return self._deadline - self._monotonic()

    def pause(self) -> None:
        self._sleep(_POLL)


def _flag(loop: Loop, patience: _Patience) -> bool:
    """Under the lock: set the flag where it is safe; False if the lock must be given up first."""
    offsets, commits = loop.positions()
    settled = offsets == commits
    if settled and loop.end_before_first_turn():
        return True
    while patience.left > 0:
        match loop.where():
            case Where.GONE:
                return True
            case Where.EXECUTING:
                loop.end_after_turn()
                return True
            case Where.CONSTRUCTING:
                return False
            case Where.PLANNING:
                pass
            case _ if settled:
                loop.end_after_turn()
                return _confirm(loop, patience)
            case _:
                pass  # An earlier driver left a batch, which has not begun again yet.
        patience.pause()
    return False


def _confirm(loop: Loop, patience: _Patience) -> bool:
    """Whether the thread will look at the flag before it begins a batch; else take it back."""
    while patience.left > 0:
        match loop.where():
            case Where.GONE | Where.LEAVING | Where.OUTSIDE:
                return True
            case Where.WAITING:
                loop.wake()
                return True
            case Where.CONSTRUCTING | Where.PLANNING | Where.EXECUTING:
                break
            case Where.BETWEEN:
                patience.pause()
    loop.go_on()
    return False
