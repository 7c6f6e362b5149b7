"""What can go wrong between us and the bytes.

StorageError
├── NotFoundError            no such file; ordinary while Spark purges
├── AlreadyExistsError       a create-only write lost the race
├── ChangedError             a conditional write or a checked copy found another content
├── TooLargeError            a file that should be small is not
├── BadLocationError         the URI or path makes no sense, or points outside the root
├── UnsupportedError         the store cannot do what we rely on, such as create-only writes
├── AccessDeniedError        credentials missing or refused
├── FullError                no space left
└── UnavailableError         time-outs and 5xx; trying again may help
"""

__all__ = [
    "AccessDeniedError",
    "AlreadyExistsError",
    "BadLocationError",
    "ChangedError",
    "FullError",
    "NotFoundError",
    "StorageError",
    "TooLargeError",
    "UnavailableError",
    "UnsupportedError",
]


class StorageError(Exception):
    """Base of this tree. `retry_helps` tells callers whether the same call may succeed later."""

    retry_helps = False


class NotFoundError(StorageError):
    """There is no such file."""


class AlreadyExistsError(StorageError):
    """Somebody wrote this name before us."""


class ChangedError(StorageError):
    """The file is not the one that was read: somebody wrote it in between."""


class TooLargeError(StorageError):
    """The file exceeds the bound its reader set."""


class BadLocationError(StorageError):
    """The location cannot be used: malformed, of an unknown scheme, or outside the root."""


class UnsupportedError(StorageError):
    """The file system or server lacks something that safety needs."""


class AccessDeniedError(StorageError):
    """The store refused our credentials, or we have none."""


class FullError(StorageError):
    """The store has no space left."""


class UnavailableError(StorageError):
    """The store did not answer as it should."""

    retry_helps = True
