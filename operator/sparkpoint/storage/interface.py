"""The small interface that every store keeps; `tests/unit/storage` runs one suite over all of them.

Paths are relative to the store's root, `/`-separated, without `.` or `..` parts or NUL bytes; a store
refuses any other with BadLocationError before it touches anything. Stores are safe to use from threads.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

__all__ = ["SMALL_FILE", "Entry", "Store"]

SMALL_FILE = 64 * 1024 * 1024
"""Default bound for files read whole into memory: logs and manifests, never state."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file as a listing shows it."""

    path: str
    size: int
    stamp: str
    """Differs whenever the content was written anew: the ETag on S3, mtime and inode in a directory."""
    modified: float
    """Seconds since the epoch, by the store's clock."""


class Store(Protocol):
    """Bytes under names."""

    @property
    def uri(self) -> str:
        """The root as a person would write it: `/data/ck`, `s3://bucket/prefix`."""
        ...

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Every file below the folder `prefix`, in path order; nothing if there is no such folder."""
        ...

    def children(self, prefix: str = "") -> tuple[list[str], list[Entry]]:
        """Names of folders, and files, directly in `prefix`; two empty lists if it does not exist."""
        ...

    def stat(self, path: str) -> Entry:
        """The file's entry, or NotFoundError."""
        ...

    def read(self, path: str, *, limit: int = SMALL_FILE) -> bytes:
        """The whole content, or NotFoundError, or TooLargeError above `limit` bytes."""
        ...

    def open(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A stream over the content; NotFoundError at the latest on entering."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Write a new file, atomically: it appears whole or not at all; AlreadyExistsError if taken."""
        ...

    def replace(self, path: str, data: bytes, *, stamp: str) -> None:
        """Write over the version that has this stamp, atomically; ChangedError if it is another one."""
        ...

    def put(self, path: str, chunks: Iterable[bytes]) -> int:
        """Write a file from a stream, atomically, over whatever is there; the number of bytes."""
        ...

    def delete(self, path: str) -> None:
        """Remove the file; nothing happens if there is none."""
        ...
