"""What the operating system's errors mean, in our words."""

import contextlib
import errno
from collections.abc import Iterator

from sparkpoint.storage.errors import (
    AccessDeniedError,
    BadLocationError,
    FullError,
    NotFoundError,
    StorageError,
    UnavailableError,
)

__all__ = ["explained"]

_KINDS: dict[int, tuple[type[StorageError], str]] = {
    errno.ENOENT: (NotFoundError, "does not exist."),
    errno.ENOTDIR: (NotFoundError, "does not exist: a part of its path is a file."),
    errno.EISDIR: (BadLocationError, "is a directory, not a file."),
    errno.EACCES: (AccessDeniedError, "may not be accessed by this user; check its permissions."),
    errno.EPERM: (AccessDeniedError, "may not be changed by this user; check its permissions."),
    errno.EROFS: (AccessDeniedError, "is on a read-only file system."),
    errno.ENOSPC: (FullError, "cannot be written: no space left. Free some and run this again."),
    errno.EDQUOT: (
        FullError,
        "cannot be written: the quota is used up. Raise it and run this again.",
    ),
    errno.ENAMETOOLONG: (BadLocationError, "has too long a name for this file system."),
    errno.ELOOP: (BadLocationError, "is a symbolic link where a file was expected."),
}


@contextlib.contextmanager
def explained(root: str, path: str = "") -> Iterator[None]:
    """Turn an OSError into the StorageError that says what to do."""
    try:
        yield
    except OSError as error:
        where = f"{root}/{path}" if path else root
        kind, sentence = _KINDS.get(
            error.errno or 0, (UnavailableError, f"could not be used: {error.strerror or error}.")
        )
        raise kind(f"{where} {sentence}") from error
