"""How far a long operation is, and what it has to say, for whoever draws the bar."""

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Amount", "Progress", "Silent"]


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


class Silent:
    """Draws nothing."""

    def start(self, what: str, total: Amount) -> None:
        """Ignore it."""

    def advance(self, done: Amount) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""
