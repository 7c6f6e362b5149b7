"""Spark's micro-batch loop as a model: it moves on by chance whenever it is looked at.

It keeps to what MicroBatchExecution does: both logs are written under the lock, the flag is looked
at when a turn begins, after planning, and when a turn ends.
"""

import random
from enum import Enum, auto

from sparkpoint.runtime.execution import Positions, Where

__all__ = ["ModelLoop"]


class _At(Enum):
    INITIALIZING = auto()
    OUTSIDE = auto()
    ASLEEP = auto()
    LOOKED = auto()
    AT_DOOR = auto()
    PLANNING = auto()
    EXECUTING = auto()
    COMMITTING = auto()
    COMMITTED = auto()
    SIGNALLING = auto()
    TURN_ENDS = auto()
    DEAD = auto()


_SHOWN = {
    _At.INITIALIZING: Where.OUTSIDE,
    _At.OUTSIDE: Where.OUTSIDE,
    _At.ASLEEP: Where.WAITING,
    _At.LOOKED: Where.BETWEEN,
    _At.AT_DOOR: Where.CONSTRUCTING,
    _At.PLANNING: Where.PLANNING,
    _At.EXECUTING: Where.EXECUTING,
    _At.COMMITTING: Where.EXECUTING,
    _At.COMMITTED: Where.BETWEEN,
    _At.SIGNALLING: Where.LEAVING,
    _At.TURN_ENDS: Where.BETWEEN,
    _At.DEAD: Where.GONE,
}
_NEEDS_LOCK = (_At.AT_DOOR, _At.COMMITTING, _At.SIGNALLING)


class ModelLoop:
    """A query whose every step is drawn from a seed."""

    def __init__(self, seed: int, *, pending: bool = False) -> None:
        self._chance = random.Random(seed)
        self.commits = self._chance.randrange(5)
        self.offsets = self.commits + pending
        self._at, self._terminated, self._locked = _At.INITIALIZING, False, False
        self._woken = False
        for _ in range(self._chance.randrange(40)):
            self._step()

    @property
    def is_dead(self) -> bool:
        return self._at is _At.DEAD

    def run_to_its_end(self) -> None:
        """Let it go on alone; it must end soon."""
        for _ in range(100):
            self._step()

    def where(self) -> Where:
        self._move()
        return _SHOWN[self._at]

    def lock(self, seconds: float) -> bool:
        self._move()
        self._locked = True
        return True

    def unlock(self) -> None:
        assert self._locked
        self._locked = False
        # The lock is fair.
        if self._at in _NEEDS_LOCK:
            self._step()

    def positions(self) -> Positions:
        self._move()
        return self.offsets, self.commits

    def end_before_first_turn(self) -> bool:
        self._move()
        if self._at is _At.INITIALIZING:
            self._terminated = True
        return self._at is _At.INITIALIZING

    def end_after_turn(self) -> None:
        self._move()
        self._terminated = True
        self._move()

    def go_on(self) -> None:
        self._move()
        self._terminated = False

    def wake(self) -> None:
        self._move()
        self._woken = True

    def _move(self) -> None:
        for _ in range(self._chance.randrange(4)):
            self._step()

    def _step(self) -> None:
        if self._at in _NEEDS_LOCK and self._locked:
            return
        self._at = self._next()

    def _next(self) -> _At:  # noqa: C901 - as many branches as Spark's loop has
        match self._at:
            case _At.INITIALIZING:
                return _At.DEAD if self._terminated else _At.OUTSIDE
            case _At.OUTSIDE if self._terminated:
                return _At.DEAD
            case _At.OUTSIDE:
                return _At.LOOKED
            case _At.ASLEEP:
                return self._wakes()
            case _At.LOOKED:
                # A batch that an earlier driver left needs no door.
                return _At.PLANNING if self.offsets > self.commits else _At.AT_DOOR
            case _At.AT_DOOR if self._chance.random() < 0.7:
                self.offsets += 1
                return _At.PLANNING
            case _At.AT_DOOR:
                return _At.COMMITTED
            case _At.PLANNING if self._terminated:
                return _At.DEAD  # SPARK-57963: the batch is thrown away.
            case _At.PLANNING:
                return _At.EXECUTING
            case _At.EXECUTING:
                return _At.EXECUTING if self._chance.random() < 0.5 else _At.COMMITTING
            case _At.COMMITTING:
                self.commits = self.offsets
                return _At.COMMITTED
            case _At.COMMITTED:
                return _At.SIGNALLING
            case _At.SIGNALLING:
                return _At.TURN_ENDS
            case _At.TURN_ENDS if self._terminated:
                return _At.DEAD
            case _At.TURN_ENDS:
                return self._chance.choice([_At.OUTSIDE, _At.ASLEEP])
            case _:
                return _At.DEAD

    def _wakes(self) -> _At:
        if self._woken and self._terminated:
            return _At.DEAD
        return _At.OUTSIDE if self._chance.random() < 0.3 else _At.ASLEEP
