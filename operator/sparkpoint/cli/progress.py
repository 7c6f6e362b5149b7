"""A progress bar on stderr, for people only: drawn on a terminal, and never into a pipe."""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from sparkpoint.cli.answer import Settings
from sparkpoint.cli.render.text import bar_line

__all__ = ["Bar", "Counter", "shown_progress"]

_PAUSE = 0.1
"""Seconds between two drawings: more often would only make it flicker."""
_CLEAR = "\r\x1b[K"


class _Amount(Protocol):
    @property
    def files(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class Counter:
    """Counts what was done, and draws nothing."""

    def __init__(self) -> None:
        self.what = ""
        self.files = self.bytes = self.total_files = self.total_bytes = 0
        self.notes: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def start(self, what: str, total: _Amount) -> None:
        """Begin a phase, from zero."""
        with self._lock:
            self.what, self.files, self.bytes = what, 0, 0
            self.total_files, self.total_bytes = total.files, total.bytes
            self.changed()

    def advance(self, done: _Amount) -> None:
        """Add to what is done; called from several threads."""
        with self._lock:
            self.files += done.files
            self.bytes += done.bytes
            self.changed()

    def note(self, text: str) -> None:
        """Keep it for the answer."""
        with self._lock:
            self.notes += (text,)

    def changed(self) -> None:
        """Nothing to show."""


class Bar(Counter):
    """One line that is drawn over and over."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._stream, self._clock = stream, clock
        self._begun = clock()
        self._drawn = float("-inf")

    def changed(self) -> None:
        """Draw, unless that was just done."""
        now = self._clock()
        if now - self._drawn < _PAUSE:
            return
        self._drawn = now
        width = shutil.get_terminal_size().columns
        self._stream.write(_CLEAR + bar_line(self, seconds=now - self._begun, width=width))
        self._stream.flush()

    def clear(self) -> None:
        """Leave no trace."""
        if self._drawn > float("-inf"):
            self._stream.write(_CLEAR)
            self._stream.flush()


def _is_drawn_on(stream: TextIO | None) -> bool:
    """Whether a line can be drawn over again there: not on a terminal that says it is dumb."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def shown_progress(settings: Settings) -> Iterator[Counter]:
    """A bar where a person looks at a terminal; elsewhere only the counting."""
    if settings.quiet or not _is_drawn_on(sys.stderr):
        yield Counter()
        return
    bar = Bar(sys.stderr)
    try:
        yield bar
    finally:
        bar.clear()
