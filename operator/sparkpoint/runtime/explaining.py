"""Errors in words that fit into a status field: of our own trees, and such that nobody foresaw."""

from sparkpoint.checkpoint.errors import CheckpointError, NothingCommittedError
from sparkpoint.runtime.model import ErrorInfo
from sparkpoint.savepoint.errors import SavepointError
from sparkpoint.storage.errors import StorageError

__all__ = ["explain", "is_foreseen"]

_LONGEST = 4000
"""Characters of a message."""
_FORESEEN = (CheckpointError, SavepointError, StorageError)


def is_foreseen(error: Exception) -> bool:
    """Whether it is of one of our trees, so that its message says all there is to say."""
    return isinstance(error, _FORESEEN)


def explain(error: Exception) -> ErrorInfo:
    """The error as a document."""
    name, message = type(error).__name__.removesuffix("Error"), str(error)
    if not isinstance(error, _FORESEEN):
        return ErrorInfo(type=name, message=f"Unexpected {name}: {message}"[:_LONGEST])
    places = getattr(error, "__notes__", [])
    if places and places[0] not in message:
        message = f"{places[0]}: {message}"
    # A running query commits its first batch sooner or later.
    retry_helps = error.retry_helps or isinstance(error, NothingCommittedError)
    return ErrorInfo(type=name, message=message[:_LONGEST], retry_helps=retry_helps)
