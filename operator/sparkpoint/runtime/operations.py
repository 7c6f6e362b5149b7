"""Named operations: the same name again is the same operation, and never a second one.

One table holds one kind of operation. It is used from the agent's event loop only, so it needs no
lock; whatever takes time is done elsewhere and told here with `update`.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from sparkpoint.runtime.model import Document, OperationState

__all__ = ["ConflictError", "Operations"]

_REMEMBERED = 256
"""Ended operations that are kept: a savepoint that fell out is found in its repository again."""


class _HasState(Protocol):
    @property
    def state(self) -> OperationState: ...


Request = TypeVar("Request", bound=Document)
Answer = TypeVar("Answer", bound=_HasState)


class ConflictError(Exception):
    """The name belongs to another request; `existing` and `wanted` are both."""

    def __init__(self, message: str, existing: Document, wanted: Document) -> None:
        super().__init__(message)
        self.existing, self.wanted = existing, wanted


@dataclass(slots=True)
class _Entry(Generic[Request, Answer]):
    request: Request
    answer: Answer
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Operations(Generic[Request, Answer]):
    """Operations of one kind by name."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._entries: dict[str, _Entry[Request, Answer]] = {}

    def get(self, name: str) -> Answer | None:
        """How far it is; None if there is none of this name."""
        entry = self._entries.get(name)
        return entry.answer if entry else None

    def is_new(self, name: str, request: Request) -> bool:
        """Whether this request would begin something; ConflictError if the name is another's.

        A failed operation has made nothing, so its name is free: the same request tries again, and
        a corrected one may take its place.
        """
        entry = self._entries.get(name)
        if entry is None or entry.answer.state is OperationState.FAILED:
            return True
        if entry.request != request:
            raise ConflictError(
                f"{self._what} {name} was asked for before, with another request.",
                entry.request,
                request,
            )
        return False

    def begin(self, name: str, request: Request, answer: Answer) -> None:
        """Write down that it is under way; before anything is done for it."""
        # Put at the end again, so that the oldest is always first.
        self._entries.pop(name, None)
        self._entries[name] = _Entry(request, answer)
        self._forget()

    def running(self, name: str) -> Answer:
        """How far it is, for the one who does it: it was begun, so it is there."""
        return self._entries[name].answer

    def update(self, name: str, answer: Answer) -> None:
        """Write down how far it is; those who wait are told of the end."""
        entry = self._entries[name]
        entry.answer = answer
        if answer.state is not OperationState.RUNNING:
            entry.ended.set()

    def names(self, state: OperationState) -> list[str]:
        """Which ones are in this state, oldest first."""
        return [name for name, each in self._entries.items() if each.answer.state is state]

    async def settled(self, name: str, seconds: float) -> Answer | None:
        """The answer when it has ended, or as it is when so much time is over."""
        entry = self._entries.get(name)
        if entry is not None and seconds > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await entry.ended.wait()
        return self.get(name)

    def close(self) -> None:
        """Let nobody wait any longer: they are answered with how far it is."""
        for entry in self._entries.values():
            entry.ended.set()

    def _forget(self) -> None:
        running = set(self.names(OperationState.RUNNING))
        ended = [name for name in self._entries if name not in running]
        for name in ended[: max(0, len(ended) - _REMEMBERED)]:
            del self._entries[name]
