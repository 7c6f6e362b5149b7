"""The one place where errors become exit codes and sentences.

The packages below and `jobs/` have a tree of errors each; their messages name the place and the way
out. A class that is not in the table takes the code of its nearest ancestor that is.
"""

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
    # Imported late: whoever has such an error to explain has loaded these modules already.
    from sparkpoint.api import errors as api
    from sparkpoint.checkpoint import errors as checkpoint
    from sparkpoint.cli.jobs import errors as jobs
    from sparkpoint.savepoint import errors as savepoint
    from sparkpoint.state import errors as state
    from sparkpoint.storage import errors as storage

    return {
        storage.StorageError: Exit.FAILED,
        storage.NotFoundError: Exit.NOT_FOUND,
        storage.BadLocationError: Exit.USAGE,
        storage.AlreadyExistsError: Exit.REFUSED,
        storage.ChangedError: Exit.REFUSED,
        storage.UnsupportedError: Exit.REFUSED,
        storage.TooLargeError: Exit.DAMAGED,
        checkpoint.CheckpointError: Exit.FAILED,
        checkpoint.NotACheckpointError: Exit.NOT_FOUND,
        checkpoint.NothingCommittedError: Exit.NOT_FOUND,
        checkpoint.UnknownFormatError: Exit.REFUSED,
        checkpoint.CannotRewindError: Exit.REFUSED,
        checkpoint.DamagedError: Exit.DAMAGED,
        checkpoint.IncompleteError: Exit.DAMAGED,
        savepoint.SavepointError: Exit.FAILED,
        savepoint.NotARepositoryError: Exit.NOT_FOUND,
        savepoint.NoSuchSavepointError: Exit.NOT_FOUND,
        savepoint.NoQueryError: Exit.NOT_FOUND,
        savepoint.BadNameError: Exit.USAGE,
        savepoint.NewerFormatError: Exit.REFUSED,
        savepoint.NameTakenError: Exit.REFUSED,
        savepoint.AmbiguousError: Exit.REFUSED,
        savepoint.UnsafeStoreError: Exit.REFUSED,
        savepoint.CollectorBusyError: Exit.REFUSED,
        savepoint.ProtectedError: Exit.REFUSED,
        savepoint.MisplacedError: Exit.REFUSED,
        savepoint.TargetNotEmptyError: Exit.REFUSED,
        savepoint.TargetChangedError: Exit.REFUSED,
        savepoint.TargetBusyError: Exit.REFUSED,
        savepoint.SinkConflictError: Exit.REFUSED,
        savepoint.DoubtfulStateError: Exit.REFUSED,
        savepoint.DamagedError: Exit.DAMAGED,
        state.StateError: Exit.FAILED,
        state.UnsupportedStateError: Exit.REFUSED,
        state.MisplacedStateError: Exit.REFUSED,
        state.NothingToDoError: Exit.REFUSED,
        state.PendingBatchError: Exit.REFUSED,
        state.NoSuchStateError: Exit.NOT_FOUND,
        state.AmbiguousStateError: Exit.REFUSED,
        state.BadQueryError: Exit.USAGE,
        api.InvalidResourceError: Exit.REFUSED,
        jobs.ClusterError: Exit.FAILED,
        jobs.NoClusterError: Exit.USAGE,
        jobs.NotFoundError: Exit.NOT_FOUND,
        jobs.AlreadyExistsError: Exit.REFUSED,
        jobs.ConflictError: Exit.REFUSED,
        jobs.RefusedError: Exit.REFUSED,
    }
