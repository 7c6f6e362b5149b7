"""What can go wrong with the state in savepoints; each message says what, where, the way out.

StateError
├── UnsupportedStateError    an operator, provider, codec or type that we refuse by name
├── MisplacedStateError      rows are not where Spark looks for them, or where we think it does
├── NothingToDoError         the state has that many partitions already
├── PendingBatchError        a batch was begun and not committed when the savepoint was taken
├── WorkFolderError          no room, or no right, to write the copy that is worked on
└── UnfaithfulError          what was written is not what was read; nothing was published

Files that are cut off or damaged are the DamagedError of `checkpoint/`.
"""

__all__ = [
    "MisplacedStateError",
    "NothingToDoError",
    "PendingBatchError",
    "StateError",
    "UnfaithfulError",
    "UnsupportedStateError",
    "WorkFolderError",
]


class StateError(Exception):
    """Base of this tree. `retry_helps` tells callers whether the same call may succeed later."""

    retry_helps = False


class UnsupportedStateError(StateError):
    """State of a kind that this version cannot read or change. It is never guessed."""


class MisplacedStateError(StateError):
    """The audit found rows in another partition than the one that their key hashes to."""


class NothingToDoError(StateError):
    """The savepoint is as it should become already."""


class PendingBatchError(StateError):
    """The savepoint was taken in the middle of a batch, whose replay would mix partitionings."""


class WorkFolderError(StateError):
    """The folder for the copy cannot be written, or has too little room."""

    retry_helps = True


class UnfaithfulError(StateError):
    """Rows were lost, changed or doubled while they were rewritten: a fault of ours."""
