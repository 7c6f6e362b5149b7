"""The progress of an operation, phase by phase, on stderr: for people at a terminal only."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from sparkpoint.cli.answer import Settings, printable
from sparkpoint.cli.jobs.cluster import Object
from sparkpoint.cli.jobs.facts import is_looked_at, status_of
from sparkpoint.cli.render.text import seconds

__all__ = ["Steps", "describe", "shown_steps"]

_CLEAR = "\r\x1b[K"


def describe(body: Object) -> tuple[str, str]:
    """What a job or a savepoint is at, and what it says about it."""
    status = status_of(body)
    operation = status.get("operation")
    if operation is not None:
        return f"{operation['kind']}: {operation['phase']}", str(operation.get("message") or "")
    if not is_looked_at(body):
        return "Waiting for the operator", ""
    waiting = [
        str(each.get("message", ""))
        for each in status.get("conditions") or []
        if each.get("type") == "Progressing" and each.get("status") == "True"
    ]
    message = waiting[0] if waiting else str(status.get("message") or "")
    return str(status.get("phase") or "Pending"), message


class Steps:
    """One line for each phase that is over, and one for the present that is drawn over and over."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._present: str | None = None
        self._message = ""
        self._since = clock()

    def show(self, body: Object | None) -> None:
        """Another version of the object, or none: then only time has passed."""
        if body is not None:
            step, self._message = describe(body)
            if step != self._present:
                self._close()
                self._present, self._since = step, self._clock()
        self._draw()

    def end(self) -> None:
        """The last phase is over; the answer says the rest."""
        self._close()

    def _close(self) -> None:
        if self._present is not None:
            self._stream.write(f"{_CLEAR}  {self._line()}\n")
            self._stream.flush()
        self._present = None

    def _draw(self) -> None:
        message = f"  {self._message.splitlines()[0]}" if self._message else ""
        width = max(0, shutil.get_terminal_size().columns - 1)
        self._stream.write(_CLEAR + printable(f"> {self._line()}{message}")[:width])
        self._stream.flush()

    def _line(self) -> str:
        return printable(f"{self._present or '':<26}{seconds(self._clock() - self._since)}")


@contextmanager
def shown_steps(settings: Settings) -> Iterator[Steps | None]:
    """Where a person looks at a terminal; elsewhere nothing is shown."""
    if settings.quiet or not sys.stderr.isatty():
        yield None
        return
    steps = Steps(sys.stderr)
    try:
        yield steps
    finally:
        steps.end()
