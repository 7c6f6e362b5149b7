"""What can be wrong with a checkpoint.

CheckpointError
├── NotACheckpointError      neither `metadata` nor `offsets/` where a query should be
├── NothingCommittedError    no batch is committed, or not the one that was asked for
├── UnknownFormatError       a log version, layout, provider or codec that we refuse by name
├── CannotRewindError        a sink's log cannot be cut at the batch
├── DamagedError             a file that is truncated, unparsable or contradicts another one
└── IncompleteError          a file that the batch needs is gone; a newer batch may be whole
"""

from collections.abc import Iterable

__all__ = [
    "CannotRewindError",
    "CheckpointError",
    "DamagedError",
    "IncompleteError",
    "NotACheckpointError",
    "NothingCommittedError",
    "UnknownFormatError",
]

_NAMED = 5


class CheckpointError(Exception):
    """Base of this tree. `retry_helps` tells callers whether planning anew may succeed."""

    retry_helps = False


class NotACheckpointError(CheckpointError):
    """There is no streaming query here."""


class NothingCommittedError(CheckpointError):
    """The batch is not committed, so there is no consistent state to take."""


class UnknownFormatError(CheckpointError):
    """Spark wrote something that this version does not know. It is never guessed."""


class CannotRewindError(CheckpointError):
    """A file sink's log no longer has what a reader would need at the batch."""


class DamagedError(CheckpointError):
    """A file does not hold what its name promises."""


class IncompleteError(CheckpointError):
    """Files that the batch needs are missing: purged meanwhile, or lost."""

    retry_helps = True

    def __init__(self, missing: Iterable[str], *, batch: int) -> None:
        self.missing = tuple(missing)
        self.batch = batch
        named = ", ".join(self.missing[:_NAMED])
        more = len(self.missing) - _NAMED
        rest = f" and {more} more" if more > 0 else ""
        super().__init__(
            f"batch {batch} is not whole: {named}{rest} missing. If the query is running, it may "
            "have purged them just now: run this again, which takes a newer batch. If it has "
            "stopped, they are lost: restore an older savepoint."
        )
