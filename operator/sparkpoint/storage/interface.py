"""The small interface that every store keeps; `tests/unit/storage` runs one suite over all of them.

Paths are relative to the store's root, `/`-separated, without `.` or `..` parts or NUL bytes; a
store refuses any other with BadLocationError before it touches anything. Stores are safe to use
from threads.

A write is atomic (whole or not at all) as soon as the call returns; it is durable after `create`,
`replace` or `sync`. Trying again belongs to the store, never to its callers.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol, TypeAlias

from sparkpoint.storage.errors import BadLocationError

__all__ = [
    "SMALL_FILE",
    "Children",
    "Entry",
    "Moved",
    "Store",
    "Taken",
    "check_path",
    "unwatched",
]

SMALL_FILE = 64 * 1024 * 1024
"""Default bound for files read whole into memory: logs and manifests, never state."""

_LONGEST_PATH = 1024


@dataclass(slots=True, unsafe_hash=True)
class Entry:
    """One file as a listing shows it.

    There are tens of thousands of them, and of some records made of them. A frozen dataclass takes
    four times as long to make, so these are frozen for the type checker alone.
    """

    path: Final[str]
    size: Final[int]
    stamp: Final[str]
    """Differs whenever other content was written: the ETag, or mtime and inode."""
    modified: Final[float]
    """Seconds since the epoch, by the store's clock."""


Moved: TypeAlias = Callable[[int], None]
"""Is told of so many bytes more; from several threads, and of less than none if it has to begin
again."""


def unwatched(count: int) -> None:
    """For whoever does not want to know how far it is."""


Children: TypeAlias = tuple[list[str], list[Entry]]
"""Names of folders, and files."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What `take` found, and under which name it is now."""

    digest: str
    """Digest of the bytes that were taken (digest.py)."""
    size: int
    stamp: str
    """The source's stamp of exactly the version that was taken."""
    path: str | None
    """Where the content is now; None if the caller did not want it stored."""
    existed: bool
    """A file of this name was there before; it has the right content and is young now."""


class Store(Protocol):
    """Bytes under names."""

    @property
    def uri(self) -> str:
        """The root as a person would write it: `/data/ck`, `s3://bucket/prefix`."""
        ...

    @property
    def hadoop_uri(self) -> str:
        """The root as Hadoop and Spark write it: `file:/data/ck`, `s3a://bucket/prefix`."""
        ...

    @property
    def parallelism(self) -> int:
        """How many threads it pays to use at once."""
        ...

    def child(self, prefix: str) -> "Store":
        """The same store rooted at the folder `prefix`; itself if that is empty."""
        ...

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Every file below the folder `prefix`, in path order; maybe none."""
        ...

    def children(self, prefix: str = "") -> Children:
        """Names of folders, and files, directly in `prefix`; maybe none."""
        ...

    def stat(self, path: str) -> Entry:
        """The file's entry, or NotFoundError."""
        ...

    def sizes(self, folder: str, paths: Collection[str]) -> Mapping[str, int | None]:
        """The sizes of these files below `folder`; None for one that does not exist.

        It takes few requests, whatever the number of files: where those do not tell, one is left
        out.
        """
        ...

    def read(self, path: str, *, limit: int = SMALL_FILE) -> bytes:
        """The whole content, or NotFoundError, or TooLargeError above `limit` bytes."""
        ...

    def read_stamped(self, path: str, *, limit: int = SMALL_FILE) -> tuple[bytes, str]:
        """The content, and the stamp of exactly the version it belongs to; errors as for `read`."""
        ...

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """These bytes of the file; fewer if it ends before."""
        ...

    def open(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A stream over the content; NotFoundError at the latest on entering."""
        ...

    def open_stamped(self, path: str) -> AbstractContextManager[tuple[BinaryIO, Entry]]:
        """A stream, and the entry of exactly the version that it reads."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Write a new file, durably, whole or not at all; AlreadyExistsError if taken."""
        ...

    def replace(self, path: str, data: bytes, *, stamp: str) -> None:
        """Write over the version that has this stamp, durably, else ChangedError."""
        ...

    def put(self, path: str, chunks: Iterable[bytes], *, draft: bool = False) -> int:
        """Write a file from a stream, atomically, over whatever is there; the number of bytes.

        A draft need not be atomic, which is faster: for a place where everything counts as
        unfinished until a note that is written last.
        """
        ...

    def take(
        self,
        source: "Store",
        path: str,
        *,
        name: Callable[[str], str | None],
        scope: str | None = None,
        like: str = "",
        moved: Moved = unwatched,
    ) -> Taken:
        """Copy a file of another store in, under the name that `name` makes of its digest.

        A name that exists is refreshed as by `touch`; for None the content is only hashed. The
        server copies by itself, or the file system shares blocks, where source and target allow
        it. With a `scope`, what a server copies by itself and vouches for the MD5 of is not even
        read: its digest is one within that scope. Any other is of the kind of `like`. `moved` is
        told of bytes as they come through, where they do; maybe of fewer than there are.
        """
        ...

    def copy(
        self,
        path: str,
        source: "Store",
        source_path: str,
        *,
        digest: str,
        size: int,
        draft: bool = False,
        verify: bool = False,
        moved: Moved = unwatched,
    ) -> None:
        """Put another store's file here, over whatever is there; `draft` as for `put`, `moved` as
        for `take`.

        ChangedError if the bytes that came through do not have this digest. Where an S3 server
        copies by itself, none come through and the source is trusted, unless `verify` has it read
        first.
        """
        ...

    def touch(self, path: str) -> bool:
        """Set the file's modification time to now; whether it exists."""
        ...

    def delete(self, path: str) -> None:
        """Remove the file; nothing happens if there is none."""
        ...

    def remove_folder(self, folder: str, *, removed: Callable[[int], None]) -> None:
        """Remove the folder and everything below it, also what no listing shows; nothing happens
        if there is none. `removed` is called, maybe from several threads, with the size of each
        file. UnavailableError if somebody keeps writing there.
        """
        ...

    def sync(self) -> None:
        """Make every `put`, `take` and `copy` before this call survive a power failure."""
        ...

    def abandoned(self, prefix: str = "") -> Iterator[Entry]:
        """What killed writers left behind; no listing shows it. Young ones may be in use.

        Only what was to be written below the folder `prefix`, where the store can tell.
        """
        ...

    def discard(self, entry: Entry) -> None:
        """Remove something that `abandoned` showed; nothing happens if it is gone."""
        ...


def check_path(path: str) -> str:
    """The path itself if it is a proper relative one, else BadLocationError."""
    # Asked for every file that is opened: parts are looked for between slashes, not split off.
    whole = f"/{path}/"
    # Some S3 servers take a backslash for a slash, so such a name would come back as another.
    if (
        "\\" in path
        or "//" in whole
        or "/./" in whole
        or "/../" in whole
        or "\0" in path
        or len(path) > _LONGEST_PATH
    ):
        raise BadLocationError(
            f"{path[:200]!r} is not a path inside a store: it must be relative, without empty, "
            f"'.' or '..' parts, backslashes or NUL, and at most {_LONGEST_PATH} characters long."
        )
    return path
