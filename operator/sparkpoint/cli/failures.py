"""The one place where errors become exit codes and sentences.

The packages below and `jobs/` have a tree of errors each; their messages name the place and the way
out. A class that is not in the table takes the code of its nearest ancestor that is.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from sparkpoint.cli.exits import Exit

__all__ = ["Failure", "as_document", "explain"]


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
    loaded = [tree for module, tree in _TREES.items() if module in sys.modules]
    return {kind: code for tree in loaded for kind, code in tree().items()}


def _of_storage() -> dict[type, Exit]:
    from sparkpoint.storage import errors

    return {
        errors.StorageError: Exit.FAILED,
        errors.NotFoundError: Exit.NOT_FOUND,
        errors.BadLocationError: Exit.USAGE,
        errors.AlreadyExistsError: Exit.REFUSED,
        errors.ChangedError: Exit.REFUSED,
        errors.UnsupportedError: Exit.REFUSED,
        errors.TooLargeError: Exit.DAMAGED,
    }


def _of_checkpoint() -> dict[type, Exit]:
    from sparkpoint.checkpoint import errors

    return {
        errors.CheckpointError: Exit.FAILED,
        errors.NotACheckpointError: Exit.NOT_FOUND,
        errors.NothingCommittedError: Exit.NOT_FOUND,
        errors.UnknownFormatError: Exit.REFUSED,
        errors.CannotRewindError: Exit.REFUSED,
        errors.DamagedError: Exit.DAMAGED,
        errors.IncompleteError: Exit.DAMAGED,
    }


def _of_savepoint() -> dict[type, Exit]:
    from sparkpoint.savepoint import errors

    return {
        errors.SavepointError: Exit.FAILED,
        errors.NotARepositoryError: Exit.NOT_FOUND,
        errors.NoSuchSavepointError: Exit.NOT_FOUND,
        errors.NoQueryError: Exit.NOT_FOUND,
        errors.BadNameError: Exit.USAGE,
        errors.NewerFormatError: Exit.REFUSED,
        errors.NameTakenError: Exit.REFUSED,
        errors.AmbiguousError: Exit.REFUSED,
        errors.UnsafeStoreError: Exit.REFUSED,
        errors.CollectorBusyError: Exit.REFUSED,
        errors.ProtectedError: Exit.REFUSED,
        errors.MisplacedError: Exit.REFUSED,
        errors.TargetNotEmptyError: Exit.REFUSED,
        errors.TargetChangedError: Exit.REFUSED,
        errors.TargetBusyError: Exit.REFUSED,
        errors.SinkConflictError: Exit.REFUSED,
        errors.DoubtfulStateError: Exit.REFUSED,
        errors.DamagedError: Exit.DAMAGED,
    }


def _of_state() -> dict[type, Exit]:
    from sparkpoint.state import errors

    return {
        errors.StateError: Exit.FAILED,
        errors.UnsupportedStateError: Exit.REFUSED,
        errors.MisplacedStateError: Exit.REFUSED,
        errors.NothingToDoError: Exit.REFUSED,
        errors.PendingBatchError: Exit.REFUSED,
        errors.NoSuchStateError: Exit.NOT_FOUND,
        errors.AmbiguousStateError: Exit.REFUSED,
        errors.BadQueryError: Exit.USAGE,
    }


def _of_api() -> dict[type, Exit]:
    from sparkpoint.api import errors

    return {errors.InvalidResourceError: Exit.REFUSED}


def _of_jobs() -> dict[type, Exit]:
    from sparkpoint.cli.jobs import errors

    return {
        errors.ClusterError: Exit.FAILED,
        errors.NoClusterError: Exit.USAGE,
        errors.NotFoundError: Exit.NOT_FOUND,
        errors.AlreadyExistsError: Exit.REFUSED,
        errors.ConflictError: Exit.REFUSED,
        errors.RefusedError: Exit.REFUSED,
    }


_TREES: dict[str, Callable[[], dict[type, Exit]]] = {
    "sparkpoint.storage.errors": _of_storage,
    "sparkpoint.checkpoint.errors": _of_checkpoint,
    "sparkpoint.savepoint.errors": _of_savepoint,
    "sparkpoint.state.errors": _of_state,
    "sparkpoint.api.errors": _of_api,
    "sparkpoint.cli.jobs.errors": _of_jobs,
}
