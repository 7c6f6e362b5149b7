"""How far a long operation is, and what it has to say, for whoever draws the bar."""

import threading
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Amount", "Progress", "Silent", "Steps"]


@dataclass(frozen=True, slots=True)
class Amount:
    """Files and bytes."""

    files: int = 0
    bytes: int = 0

    def plus(self, other: "Amount") -> "Amount":
        """Their sum."""
        return Amount(self.files + other.files, self.bytes + other.bytes)


class Progress(Protocol):
    """Called from several worker threads at once: whoever draws takes a lock."""

    def start(self, what: str, total: Amount) -> None:
        """A phase begins; a capture that starts anew calls this again."""
        ...

    def advance(self, done: Amount) -> None:
        """This much more is done."""
        ...

    def note(self, text: str) -> None:
        """Something that a person should know, whatever comes of the operation."""
        ...


class Steps:
    """Tells of the bytes of a large file as they come through, and of the rest at its end."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._told = 0

    def moved(self, count: int) -> None:
        """So many bytes more."""
        with self._lock:
            self._told += count
        self._progress.advance(Amount(0, count))

    def end(self, done: Amount) -> None:
        """All of it is done now."""
        self._progress.advance(Amount(done.files, done.bytes - self._told))


class Silent:
    """Draws nothing."""

    def start(self, what: str, total: Amount) -> None:
        """Ignore it."""

    def advance(self, done: Amount) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""
