"""Which operation a line of the log, an Event, a pod or a request to an agent belongs to.

The id follows from the resource's uid and the operation's name, so that every operator that works
on the operation says the same one. It is kept for the length of a pass, beside the calls: whoever
logs need not know of it.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from sparkpoint.controller.cluster import Object
from sparkpoint.controller.keys import CORRELATION, OPERATION, Key

__all__ = [
    "Topic",
    "annotations",
    "correlation_id",
    "current",
    "given_id",
    "mark",
    "relate",
    "topic_of",
]

_LENGTH: Final = 12
_ID: Final = re.compile(rf"[0-9a-f]{{{_LENGTH}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What is being worked on."""

    resource: str
    """Namespace and name."""
    operation: str = ""
    """Empty while nothing is under way."""
    id: str = ""


_current: ContextVar[Topic | None] = ContextVar("topic", default=None)


def correlation_id(uid: str, operation: str) -> str:
    """Of this operation on the resource with this uid; the same whoever asks."""
    return hashlib.sha256(f"{uid}/{operation}".encode()).hexdigest()[:_LENGTH]


def current() -> Topic | None:
    """What this task is working on; None outside of a pass."""
    return _current.get()


@contextmanager
def topic_of(key: Key) -> Iterator[None]:
    """While a pass over this resource runs."""
    token = _current.set(Topic(resource=str(key)))
    try:
        yield
    finally:
        _current.reset(token)


def relate(key: Key, operation: str, correlation: str) -> None:
    """The rest of the pass is about this operation: also what is logged when it fails."""
    _current.set(Topic(resource=str(key), operation=operation, id=correlation))


def annotations(operation: str, correlation: str) -> dict[str, str]:
    """By which an object says what it was made for."""
    return {OPERATION: operation, CORRELATION: correlation}


def given_id(body: Object) -> str:
    """What an object is annotated with; empty for anything that is no id, as people edit objects,
    and it goes into logs and headers."""
    given = (body["metadata"].get("annotations") or {}).get(CORRELATION) or ""
    return given if _ID.fullmatch(given) else ""


def mark(body: Object, uid: str, operation: str) -> Object:
    """The object, as made for this operation on the resource with this uid."""
    known = body["metadata"].get("annotations") or {}
    marks = annotations(operation, correlation_id(uid, operation))
    return {**body, "metadata": {**body["metadata"], "annotations": {**known, **marks}}}
