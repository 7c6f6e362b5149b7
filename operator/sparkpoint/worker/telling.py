"""How far a task is: a line on standard error at each phase, and every few seconds in between."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

from sparkpoint.runtime.orders import Line
from sparkpoint.runtime.termination import say
from sparkpoint.savepoint.progress import Amount

__all__ = ["Telling"]

_PAUSE = 5.0
"""Seconds between two lines: often enough to see that it lives, rarely enough for a log."""
_STEP = 1024
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class Telling(AbstractContextManager["Telling"]):
    """Whoever works calls `start` and `advance`, from any thread; lines come by themselves."""

    def __init__(
        self, task: str, *, write: Callable[[str], None] = say, pause: float = _PAUSE
    ) -> None:
        self._task, self._write, self._pause = task, write, pause
        self._lock = threading.Lock()
        self._what, self._done, self._total = "", Amount(), Amount()
        self._begun = time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="telling", daemon=True)

    def __enter__(self) -> "Telling":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()

    def start(self, what: str, total: Amount) -> None:
        """A phase begins."""
        with self._lock:
            self._what, self._done, self._total = what, Amount(), total
            self._begun = time.monotonic()
        self._say()

    def advance(self, done: Amount) -> None:
        """This much more is done."""
        with self._lock:
            self._done = self._done.plus(done)

    def note(self, text: str) -> None:
        """Something that a person should know."""
        self._write(f"sparkpoint: {self._task}: {text}")

    def heard(self, line: Line) -> None:
        """The same from a capture as the agent runs it, which counts by itself."""
        if line.stage is None:
            return
        if line.stage != self._what:
            self.start(line.stage, Amount(0, line.total_bytes))
        with self._lock:
            self._done, self._total = Amount(0, line.done_bytes), Amount(0, line.total_bytes)

    def _tell(self) -> None:
        while not self._end.wait(self._pause):
            if self._what:
                self._say()

    def _say(self) -> None:
        with self._lock:
            parts = [self._what, _so_far(self._done, self._total)]
            seconds = time.monotonic() - self._begun
        told = ", ".join(part for part in parts if part)
        self._write(f"sparkpoint: {self._task}: {told} ({seconds:.0f} s)")


def _so_far(done: Amount, total: Amount) -> str:
    files = _of(str(done.files), str(total.files), "files") if done.files or total.files else ""
    size = _of(_size(done.bytes), _size(total.bytes), "") if done.bytes or total.bytes else ""
    return ", ".join(part for part in (files, size) if part)


def _of(done: str, total: str, what: str) -> str:
    known = total not in ("0", _size(0))
    return f"{done} of {total} {what}".rstrip() if known else f"{done} {what}".rstrip()


def _size(count: int) -> str:
    amount, index = float(count), 0
    while amount >= _STEP and index < len(_UNITS) - 1:
        amount, index = amount / _STEP, index + 1
    return f"{amount:.1f} {_UNITS[index]}" if index else f"{count} B"
