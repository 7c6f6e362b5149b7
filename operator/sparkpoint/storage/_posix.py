"""What the operating system's errors mean, in our words."""

import errno
from types import TracebackType

from sparkpoint.storage.errors import (
    AccessDeniedError,
    BadLocationError,
    FullError,
    NotFoundError,
    StorageError,
    UnavailableError,
)

__all__ = ["explain", "explained"]

_KINDS: dict[int, tuple[type[StorageError], str]] = {
    errno.ENOENT: (NotFoundError, "does not exist."),
    errno.ENOTDIR: (NotFoundError, "does not exist: a part of its path is a file."),
    errno.EISDIR: (BadLocationError, "is a directory, not a file."),
    errno.EACCES: (AccessDeniedError, "may not be accessed by this user; check its permissions."),
    errno.EPERM: (AccessDeniedError, "may not be changed by this user; check its permissions."),
    errno.EROFS: (AccessDeniedError, "is on a read-only file system."),
    errno.ENOSPC: (FullError, "cannot be written: no space left. Free some first."),
    errno.EDQUOT: (
        FullError,
        "cannot be written: the quota is used up. Raise it first.",
    ),
    errno.ENAMETOOLONG: (BadLocationError, "has too long a name for this file system."),
    errno.ELOOP: (BadLocationError, "is a symbolic link where a file was expected."),
}


class explained:  # noqa: N801 - it reads as a verb where it is used
    """Turn an OSError into the StorageError that says what to do.

    A class, as a generator would cost as much as reading a small file does.
    """

    __slots__ = ("_path", "_root")

    def __init__(self, root: str, path: str = "") -> None:
        self._root, self._path = root, path

    def __enter__(self) -> None:
        """Nothing happens before there is an error."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raise it in our words."""
        if isinstance(error, OSError):
            raise explain(error, self._root, self._path) from error


def explain(error: OSError, root: str, path: str) -> StorageError:
    """The StorageError that says what to do."""
    where = f"{root}/{path}" if path else root
    kind, sentence = _KINDS.get(
        error.errno or 0, (UnavailableError, f"could not be used: {error.strerror or error}.")
    )
    return kind(f"{where} {sentence}")
