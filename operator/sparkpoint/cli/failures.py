"""The one place where errors become exit codes and sentences.

The packages below and `jobs/` have a tree of errors each; their messages name the place and the way
out. A class that is not in the table takes the code of its nearest ancestor that is.
"""

import sys
from dataclasses import dataclass
from typing import Final

from sparkpoint.cli.exits import Exit

__all__ = ["Failure", "as_document", "explain"]

_EXITS: Final = {
    "sparkpoint.storage.errors": {
        "StorageError": Exit.FAILED,
        "NotFoundError": Exit.NOT_FOUND,
        "BadLocationError": Exit.USAGE,
        "AlreadyExistsError": Exit.REFUSED,
        "ChangedError": Exit.REFUSED,
        "UnsupportedError": Exit.REFUSED,
        "TooLargeError": Exit.DAMAGED,
    },
    "sparkpoint.checkpoint.errors": {
        "CheckpointError": Exit.FAILED,
        "NotACheckpointError": Exit.NOT_FOUND,
        "NothingCommittedError": Exit.NOT_FOUND,
        "UnknownFormatError": Exit.REFUSED,
        "CannotRewindError": Exit.REFUSED,
        "DamagedError": Exit.DAMAGED,
        "IncompleteError": Exit.DAMAGED,
    },
    "sparkpoint.savepoint.errors": {
        "SavepointError": Exit.FAILED,
        "NotARepositoryError": Exit.NOT_FOUND,
        "NoSuchSavepointError": Exit.NOT_FOUND,
        "NoQueryError": Exit.NOT_FOUND,
        "BadNameError": Exit.USAGE,
        "NewerFormatError": Exit.REFUSED,
        "NameTakenError": Exit.REFUSED,
        "AmbiguousError": Exit.REFUSED,
        "UnsafeStoreError": Exit.REFUSED,
        "CollectorBusyError": Exit.REFUSED,
        "ProtectedError": Exit.REFUSED,
        "MisplacedError": Exit.REFUSED,
        "TargetNotEmptyError": Exit.REFUSED,
        "TargetChangedError": Exit.REFUSED,
        "TargetBusyError": Exit.REFUSED,
        "SinkConflictError": Exit.REFUSED,
        "DoubtfulStateError": Exit.REFUSED,
        "DamagedError": Exit.DAMAGED,
    },
    "sparkpoint.state.errors": {
        "StateError": Exit.FAILED,
        "UnsupportedStateError": Exit.REFUSED,
        "MisplacedStateError": Exit.REFUSED,
        "NothingToDoError": Exit.REFUSED,
        "PendingBatchError": Exit.REFUSED,
        "NoSuchStateError": Exit.NOT_FOUND,
        "AmbiguousStateError": Exit.REFUSED,
        "BadQueryError": Exit.USAGE,
    },
    "sparkpoint.api.errors": {
        "InvalidResourceError": Exit.REFUSED,
    },
    "sparkpoint.cli.jobs.errors": {
        "ClusterError": Exit.FAILED,
        "NoClusterError": Exit.USAGE,
        "NotFoundError": Exit.NOT_FOUND,
        "AlreadyExistsError": Exit.REFUSED,
        "ConflictError": Exit.REFUSED,
        "RefusedError": Exit.REFUSED,
    },
    "sparkpoint.cli.work.newfile": {
        "UnwritableError": Exit.FAILED,
    },
}
"""Module -> class -> how the command ends; by name, so that nothing is loaded for it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, for a person and for a script."""

    kind: str
    message: str
    exit: Exit
    retry_helps: bool = False
    candidates: tuple[str, ...] = ()
    foreseen: bool = True


def as_document(failure: Failure) -> dict[str, object]:
    """The shape that `--json` prints."""
    error: dict[str, object] = {
        "kind": failure.kind,
        "message": failure.message,
        "exitCode": int(failure.exit),
        "retryHelps": failure.retry_helps,
    }
    if failure.candidates:
        error["candidates"] = list(failure.candidates)
    return {"error": error}


def explain(error: Exception) -> Failure:
    """Say what an error means; one of no tree is a bug, or an accident nobody foresaw."""
    exits = _exits()
    code = next((exits[kind] for kind in type(error).__mro__ if kind in exits), None)
    name = type(error).__name__.removesuffix("Error")
    if code is None:
        return Failure(
            name,
            f"Unexpected {type(error).__name__}: {error}. Set SPARKPOINT_DEBUG=1 to see where it "
            "came from. Nothing half-done is in the way of running this again.",
            Exit.FAILED,
            foreseen=False,
        )
    return Failure(
        name,
        _sentence(error),
        code,
        retry_helps=bool(getattr(error, "retry_helps", False)),
        candidates=tuple(getattr(error, "candidates", ())),
    )


def _sentence(error: Exception) -> str:
    """The message, with the place in front that a note may name (see work/places.py)."""
    places = getattr(error, "__notes__", [])
    message = str(error)
    if places and places[0] not in message:
        return f"{places[0]}: {message}"
    # Only a word may be capitalised, never a path or a URI.
    is_word = message.split(" ", 1)[0].isalpha()
    return message[:1].upper() + message[1:] if is_word else message


def _exits() -> dict[type, Exit]:
    """Of the trees that are loaded: an error of another one cannot have been raised."""
    return {
        getattr(sys.modules[module], name): code
        for module, codes in _EXITS.items()
        if module in sys.modules
        for name, code in codes.items()
    }
