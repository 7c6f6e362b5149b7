"""What can go wrong with savepoints; each message says what, where, and the way out.

SavepointError
├── NotARepositoryError      nothing, or something else, where a repository should be
├── NewerFormatError         written by a newer version of Sparkpoint
├── DamagedError             a manifest, table or object that is not what it should be
├── BadNameError             a namespace, job, name or tag that cannot be one
├── NameTakenError           a savepoint of this name exists
├── NoSuchSavepointError     no savepoint has this name or id
├── AmbiguousError           several have it
├── NoQueryError             the checkpoint has no such query
├── DoubtfulStateError       state that may be left from before a rewind by hand
├── MovingTargetError        the running query purged files faster than they could be copied
├── UnsafeStoreError         the store ignores conditions on writes
├── LeaseLostError           we were too slow to renew what protects our work; run again
├── CollectorBusyError       another collection is under way
├── ProtectedError           something still uses the savepoint
├── MisplacedError           a place inside a repository, or inside a checkpoint
├── TargetNotEmptyError      a restore would mix with other files
├── TargetChangedError       somebody wrote into a restored directory
├── TargetBusyError          another restore fills the target
└── SinkConflictError        the sink and the savepoint do not fit: batches would be missing
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparkpoint.savepoint.catalogue import Savepoint

__all__ = [
    "AmbiguousError",
    "BadNameError",
    "CollectorBusyError",
    "DamagedError",
    "DoubtfulStateError",
    "LeaseLostError",
    "MisplacedError",
    "MovingTargetError",
    "NameTakenError",
    "NewerFormatError",
    "NoQueryError",
    "NoSuchSavepointError",
    "NotARepositoryError",
    "ProtectedError",
    "SavepointError",
    "SinkConflictError",
    "TargetBusyError",
    "TargetChangedError",
    "TargetNotEmptyError",
    "UnsafeStoreError",
]


class SavepointError(Exception):
    """Base of this tree. `retry_helps` tells callers whether the same call may succeed later."""

    retry_helps = False


class NotARepositoryError(SavepointError):
    """There is no repository here."""


class NewerFormatError(SavepointError):
    """A newer version wrote this; reading it by guesswork would be worse than refusing."""


class DamagedError(SavepointError):
    """Bytes in the repository are not what their name or their reader requires."""


class BadNameError(SavepointError):
    """This cannot be a name."""


class NameTakenError(SavepointError):
    """A savepoint of this name exists already; `existing` is it."""

    def __init__(self, message: str, existing: "Savepoint | None" = None) -> None:
        super().__init__(message)
        self.existing = existing


class NoSuchSavepointError(SavepointError):
    """Nothing goes by this name or id."""


class AmbiguousError(SavepointError):
    """More than one savepoint goes by this name or id."""


class NoQueryError(SavepointError):
    """The checkpoint does not hold this query, or none at all."""


class DoubtfulStateError(SavepointError):
    """The state that a savepoint would hold may be that of batches which were undone."""


class MovingTargetError(SavepointError):
    """A live capture lost the race against Spark's purge in every try."""

    retry_helps = True


class UnsafeStoreError(SavepointError):
    """Two writers could overwrite each other here."""


class LeaseLostError(SavepointError):
    """The lease ran out: a collection may have removed what we relied on."""

    retry_helps = True


class CollectorBusyError(SavepointError):
    """Only one collection may run at a time."""

    retry_helps = True


class ProtectedError(SavepointError):
    """The savepoint is in use."""


class MisplacedError(SavepointError):
    """What would be written there would mix with what another owns."""


class TargetNotEmptyError(SavepointError):
    """The place for a restore, or for a new repository, holds files that are none of ours."""


class TargetChangedError(SavepointError):
    """The target was changed since it was restored."""


class TargetBusyError(SavepointError):
    """Another restore into the same target is under way, or may be."""

    retry_helps = True


class SinkConflictError(SavepointError):
    """The sink has batches that the savepoint has not, or lacks some that it has."""
