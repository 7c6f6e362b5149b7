"""Queries that do what a test tells them, in place of those of a JVM."""

import threading

from sparkpoint.runtime.execution import LostError, Positions, Where
from sparkpoint.runtime.identity import Identity
from sparkpoint.runtime.model import ErrorInfo
from sparkpoint.runtime.queries import StartedQuery

__all__ = ["FakeExecution", "started"]


class FakeExecution:
    """Runs a batch until it is told to end; `stubborn` ones must be interrupted."""

    def __init__(self, name: str = "q", *, stubborn: bool = False, deaf: bool = False) -> None:
        self.id, self.run_id = f"id-{name}", f"run-{name}"
        self.stubborn, self.deaf, self.lost = stubborn, deaf, False
        self.interrupted = False
        self.error: ErrorInfo | None = None
        self.offsets: int | None = 4
        self.commits: int | None = 3
        self._over = threading.Event()

    def die(self, error: ErrorInfo) -> None:
        """End by itself, with a batch in flight."""
        self.error = error
        self._over.set()

    def lose(self) -> None:
        """The JVM is gone."""
        self.lost = True
        self._over.set()

    def is_active(self) -> bool:
        self._answer()
        return not self._over.is_set()

    def runs_batches(self) -> bool:
        self._answer()
        return True

    def where(self) -> Where:
        return Where.EXECUTING

    def lock(self, seconds: float) -> bool:
        self._answer()
        return True

    def unlock(self) -> None:
        self._answer()

    def positions(self) -> Positions:
        self._answer()
        return self.offsets, self.commits

    def end_before_first_turn(self) -> bool:
        return False

    def end_after_turn(self) -> None:
        if not self.stubborn:
            self.commits = self.offsets
            self._over.set()

    def go_on(self) -> None:
        raise AssertionError("it was executing")

    def wake(self) -> None:
        raise AssertionError("it was not asleep")

    def interrupt(self) -> None:
        self.interrupted = True
        if not self.deaf:
            self._over.set()

    def await_end(self) -> ErrorInfo | None:
        self._over.wait(60)
        self._answer()
        return self.error

    def _answer(self) -> None:
        if self.lost:
            raise LostError("gone")


def started(name: str, execution: FakeExecution) -> StartedQuery:
    """A query that is watched."""
    query = StartedQuery(Identity(name, name), f"/e/{name}", execution, on_end=lambda _: None)
    query.watch()
    return query
