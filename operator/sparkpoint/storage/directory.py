"""A store in a directory: local disk, or a volume that several hosts mount.

Files are written beside (`.sparkpoint-tmp/` in the root, shown by no listing) and then linked or
renamed into place, so that a reader sees a whole file or none.

Only `create` and `replace` flush by themselves: they are the commit points. Everything else is made
durable by one `sync` before a commit point, because a flush per file would cost more than the copy.
"""

import contextlib
import os
import stat as mode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import BinaryIO

from sparkpoint.storage._files import (
    chunks_of,
    copy_and_hash,
    watched,
    write_all,
    write_and_hash,
    write_parts,
)
from sparkpoint.storage._posix import explain, explained
from sparkpoint.storage._root import LOCK, TEMPORARY, Root
from sparkpoint.storage._unsynced import Unsynced
from sparkpoint.storage.errors import (
    AlreadyExistsError,
    BadLocationError,
    ChangedError,
    NotFoundError,
    TooLargeError,
)
from sparkpoint.storage.interface import (
    SMALL_FILE,
    Children,
    Entry,
    Moved,
    Store,
    Taken,
    unwatched,
)

__all__ = ["DirectoryStore"]

_PATH = attrgetter("path")
_STEP = 16 * 1024 * 1024
"""Bytes that are read at once."""


class DirectoryStore:
    """Files below one directory, which need not exist until something is written."""

    def __init__(self, path: Path | str, *, unsynced: Unsynced | None = None) -> None:
        """`unsynced`: of the store that this one is a part of."""
        self._root = Root(str(path), unsynced)

    def __repr__(self) -> str:
        return f"DirectoryStore({self._root.path!r})"

    @property
    def uri(self) -> str:
        """The absolute path."""
        return self._root.path

    @property
    def hadoop_uri(self) -> str:
        """As Hadoop's local file system writes it: one slash, nothing escaped."""
        return f"file:{self._root.path}"

    @property
    def parallelism(self) -> int:
        """As many threads as cores, but at least two, so that reading and hashing overlap."""
        return max(2, min(8, os.cpu_count() or 2))

    def child(self, prefix: str) -> "DirectoryStore":
        """The store of a sub-directory."""
        if not prefix:
            return self
        target = self._root.locate(prefix)
        self._root.check_inside(target)
        return DirectoryStore(target, unsynced=self._root.unsynced)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Every file below, in path order, except what is still being written."""
        with explained(self.uri, prefix):
            top = self._root.locate(prefix) if prefix else self._root.path
            yield from self._walk(top, f"{prefix}/" if prefix else "")

    def _walk(self, top: str, prefix: str) -> Iterator[Entry]:
        # Not by recursion: every file would be handed up through all the folders above it.
        ahead: list[tuple[str, Entry | None]] = [(prefix, None)]
        while ahead:
            path, entry = ahead.pop()
            if entry is not None:
                yield entry
                continue
            folders, files = self._scan(f"{top}/{path[len(prefix) :]}", path)
            if not folders:
                yield from sorted(files, key=_PATH)
                continue
            # A folder sorts as "name/", so that the walk comes in the order of whole paths.
            found: list[tuple[str, Entry | None]] = [(file.path, file) for file in files]
            found += [(f"{path}{name}/", None) for name in folders]
            ahead += sorted(found, key=itemgetter(0), reverse=True)

    def _scan(self, folder: str, prefix: str) -> Children:
        folders: list[str] = []
        files: list[Entry] = []
        try:
            with os.scandir(folder) as scan:
                for each in scan:
                    path = f"{prefix}{each.name}"
                    if each.is_dir(follow_symlinks=False):
                        if path != TEMPORARY:
                            folders.append(each.name)
                    elif (info := self._status(each)) and mode.S_ISREG(info.st_mode):
                        files.append(_entry(path, info))
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        return folders, files

    def _status(self, found: "os.DirEntry[str]") -> os.stat_result | None:
        if found.is_symlink():
            if found.is_dir():
                # To follow it could go round in circles; to skip it would lose files.
                raise BadLocationError(
                    f"{found.path} is a symbolic link to a folder, and listings follow none. Put "
                    "the folder itself there, or mount it."
                )
            self._root.check_inside(found.path)
        try:
            return found.stat()
        except FileNotFoundError:
            return None  # purged between listing and looking: as if it had never been listed

    def children(self, prefix: str = "") -> Children:
        """Sorted names of folders, and files sorted by path."""
        with explained(self.uri, prefix):
            top = self._root.locate(prefix) if prefix else self._root.path
            folders, files = self._scan(top, f"{prefix}/" if prefix else "")
            return sorted(folders), sorted(files, key=_PATH)

    def stat(self, path: str) -> Entry:
        """The entry of a regular file."""
        with explained(self.uri, path):
            return _entry(path, self._root.stat(path))

    def sizes(self, folder: str, paths: Collection[str]) -> Mapping[str, int | None]:
        """Of all of them, as looking costs next to nothing here."""
        return {path: self._size(path) for path in paths}

    def _size(self, path: str) -> int | None:
        try:
            with explained(self.uri, path):
                return self._root.stat(path).st_size
        except NotFoundError:
            return None

    def read(self, path: str, *, limit: int = SMALL_FILE) -> bytes:
        """The whole content."""
        return self.read_stamped(path, limit=limit)[0]

    def read_stamped(self, path: str, *, limit: int = SMALL_FILE) -> tuple[bytes, str]:
        """The content; ChangedError if it was written to while we read."""
        try:
            descriptor, before = self._root.open(path)
            try:
                size = before.st_size
                if size > limit:
                    raise TooLargeError(f"{self.uri}/{path} has {size} bytes, more than {limit}.")
                data = os.read(descriptor, size + 1)
                while len(data) < size and (more := os.read(descriptor, size + 1 - len(data))):
                    data += more
                after = os.fstat(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise explain(error, self.uri, path) from error
        if len(data) != after.st_size:
            raise ChangedError(f"{self.uri}/{path} changed while it was read.")
        return data, _stamp_of(after)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """A part of the content."""
        with explained(self.uri, path), self._root.reading(path) as descriptor:
            parts: list[bytes] = []
            # In steps: room for all of `length` is made before anything is read, and a damaged
            # table may ask for more than any machine has.
            while length and (part := os.pread(descriptor, min(length, _STEP), offset)):
                parts.append(part)
                offset, length = offset + len(part), length - len(part)
            return b"".join(parts)

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """A buffered stream."""
        with self.open_stamped(path) as (stream, _):
            yield stream

    @contextlib.contextmanager
    def open_stamped(self, path: str) -> Iterator[tuple[BinaryIO, Entry]]:
        """A buffered stream, and the entry of the file it reads."""
        with contextlib.ExitStack() as stack:
            # Only opening is explained: an error of the caller's own block is none of this file.
            with explained(self.uri, path):
                descriptor = stack.enter_context(self._root.reading(path))
                entry = _entry(path, os.fstat(descriptor))
            with os.fdopen(descriptor, "rb", closefd=False) as stream:
                yield stream, entry

    def create(self, path: str, data: bytes) -> None:
        """Write, flush, then link into place: the kernel lets only one writer win."""
        with explained(self.uri, path), self._root.temporary() as (temporary, descriptor):
            write_all(descriptor, data)
            os.fsync(descriptor)
            try:
                self._root.link(temporary, path)
            except FileExistsError:
                raise AlreadyExistsError(f"{self.uri}/{path} exists already.") from None
            self._root.flush_folder(path)

    def replace(self, path: str, data: bytes, *, stamp: str) -> None:
        """Compare and rename under a lock that all processes on this file system share."""
        with (
            explained(self.uri, path),
            self._root.locked(),
            self._root.temporary() as (temporary, descriptor),
        ):
            if self._stamp(path) != stamp:
                raise ChangedError(f"{self.uri}/{path} was changed by somebody else.")
            write_all(descriptor, data)
            os.fsync(descriptor)
            self._root.move(temporary, path)
            self._root.flush_folder(path)

    def _stamp(self, path: str) -> str | None:
        try:
            return self.stat(path).stamp
        except NotFoundError:
            return None

    def put(self, path: str, chunks: Iterable[bytes], *, draft: bool = False) -> int:
        """Write beside, then rename; a draft in its place."""
        with explained(self.uri, path), self._writing(path, draft=draft) as descriptor:
            if isinstance(chunks, list):
                return write_parts(descriptor, chunks)
            size = 0
            for chunk in chunks:
                write_all(descriptor, chunk)
                size += len(chunk)
            return size

    @contextlib.contextmanager
    def _writing(self, path: str, *, draft: bool) -> Iterator[int]:
        if draft:
            with self._root.drafting(path) as descriptor:
                yield descriptor
            return
        with self._root.temporary() as (temporary, descriptor):
            yield descriptor
            self._root.move(temporary, path)

    def take(
        self,
        source: Store,
        path: str,
        *,
        name: Callable[[str], str | None],
        scope: str | None = None,
        like: str = "",
        moved: Moved = unwatched,
    ) -> Taken:
        """Copy beside while hashing, then rename to the name that the digest gives."""
        # What is written here has no name yet; errors of the source are explained in `_fill`.
        with explained(self.uri), self._root.temporary() as (temporary, descriptor):
            digest, size, stamp = _fill(descriptor, source, path, like=like, moved=moved)
            wanted = name(digest)
            existed = wanted is not None and self._stamp(wanted) is not None
            if wanted is not None:
                # Over an existing one too: it may be what a power failure left of a write.
                self._root.move(temporary, wanted)
            return Taken(digest, size, stamp, wanted, existed)

    def copy(
        self,
        path: str,
        source: Store,
        source_path: str,
        *,
        digest: str,
        size: int,
        draft: bool = False,
        verify: bool = False,
        moved: Moved = unwatched,
    ) -> None:
        """Copy beside, check, rename; a draft in its place. All bytes are read in any case."""
        with explained(self.uri, path), self._writing(path, draft=draft) as descriptor:
            # The digest tells all: a file that was only touched meanwhile is as good.
            found, _, _ = _pour(descriptor, source, source_path, like=digest, moved=moved)
            if found != digest:
                raise ChangedError(
                    f"{source.uri}/{source_path} is damaged: its digest is {found}, not {digest}."
                )

    def touch(self, path: str) -> bool:
        """Refresh the modification time."""
        try:
            with explained(self.uri, path):
                target = self._root.locate(path)
                os.utime(target, follow_symlinks=False)
                # Whoever wrote it may not have brought it to the disk yet.
                self._root.unsynced.written(target)
        except NotFoundError:
            return False
        return True

    def delete(self, path: str) -> None:
        """Unlink, and remove the folders that this leaves empty."""
        with explained(self.uri, path):
            self._root.remove(path)

    def remove_folder(self, folder: str, *, removed: Callable[[int], None]) -> None:
        """Unlink everything below, then the folders."""
        with explained(self.uri, folder):
            self._root.remove_tree(folder, removed)

    def sync(self) -> None:
        """Flush what was changed here; much of it together with all of the file system."""
        with explained(self.uri):
            self._root.unsynced.sync()

    def abandoned(self, prefix: str = "") -> Iterator[Entry]:
        """Temporary files, those of living writers included; which are for `prefix`, none tells."""
        with explained(self.uri):
            found = self._scan(f"{self._root.path}/{TEMPORARY}", f"{TEMPORARY}/")[1]
            yield from (entry for entry in found if entry.path != f"{TEMPORARY}/{LOCK}")

    def discard(self, entry: Entry) -> None:
        """Remove one temporary file."""
        if not entry.path.startswith(f"{TEMPORARY}/"):
            raise BadLocationError(f"{entry.path!r} is not a temporary file of {self.uri}.")
        with explained(self.uri, entry.path), contextlib.suppress(FileNotFoundError):
            Path(self._root.path, entry.path).unlink()


def _entry(path: str, info: os.stat_result) -> Entry:
    return Entry(path, info.st_size, _stamp_of(info), info.st_mtime)


def _stamp_of(info: os.stat_result) -> str:
    return f"{info.st_mtime_ns:x}-{info.st_ino:x}"


def _fill(
    descriptor: int, source: Store, path: str, *, like: str, moved: Moved
) -> tuple[str, int, str]:
    """Copy a file of any store; digest, size and the stamp of what was read."""
    digest, size, (before, after) = _pour(descriptor, source, path, like=like, moved=moved)
    if before != after or size != after.size:
        raise ChangedError(f"{source.uri}/{path} changed while it was read.")
    return digest, size, after.stamp


def _pour(
    descriptor: int, source: Store, path: str, *, like: str, moved: Moved
) -> tuple[str, int, tuple[Entry, Entry]]:
    """Copy a file of any store; digest, size, and its entry before and after."""
    if not isinstance(source, DirectoryStore):
        with source.open_stamped(path) as (stream, entry):
            chunks = watched(chunks_of(stream), moved)
            return *write_and_hash(descriptor, chunks, like=like), (entry, entry)
    reading = explained(source.uri, path)
    with contextlib.ExitStack() as stack:
        with reading:
            origin = stack.enter_context(source._root.reading(path))
        before = _entry(path, os.fstat(origin))
        digest, size = copy_and_hash(origin, descriptor, reading=reading, like=like, moved=moved)
        return digest, size, (before, _entry(path, os.fstat(origin)))
