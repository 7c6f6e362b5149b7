"""Content in the repository: whole objects for large files, packs for small ones.

An object is named by a digest of its bytes. Small files are put together into packs, objects
like any other, so that twenty thousand of them cost a handful of writes. Nothing is kept whole in
memory but the pack that is being filled and those that are being written.
"""

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Self

from sparkpoint.savepoint.errors import DamagedError
from sparkpoint.savepoint.names import OBJECTS, object_path
from sparkpoint.savepoint.table import FileRecord
from sparkpoint.storage import Store, Taken
from sparkpoint.storage.digest import digest_of, digest_of_parts, new_digester
from sparkpoint.storage.errors import NotFoundError
from sparkpoint.storage.interface import Moved, unwatched

__all__ = [
    "PACK_SIZE",
    "SMALL",
    "Content",
    "Location",
    "ObjectWriter",
    "lacking",
    "read_record",
]

SMALL = 256 * 1024
"""Files below this go into packs."""
PACK_SIZE = 16 * 1024 * 1024
"""A pack is closed when it reaches this; a dead file inside wastes at most so much."""


@dataclass(slots=True, unsafe_hash=True)
class Location:
    """Where content is: an object, and the place inside of it. Frozen as Entry is."""

    object: Final[str]
    offset: Final[int]


@dataclass(slots=True, unsafe_hash=True)
class Content:
    """What a file was found to hold. Frozen as Entry is."""

    digest: Final[str]
    size: Final[int]
    stamp: Final[str]


@dataclass(slots=True)
class _Pack:
    parts: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """By digest: the first, in their order, of the names of files with this content, and that."""
    size: int = 0

    def in_order(self) -> list[tuple[str, bytes]]:
        """Digests and contents as they are stored: in the order of their names and not of their
        arrival, so that the same files make the same pack, whoever captures them."""
        # Twice, as sorting keeps the order of equals: digests decide between equal names.
        digests = sorted(self.parts)
        digests.sort(key=lambda digest: self.parts[digest][0])
        return [(digest, self.parts[digest][1]) for digest in digests]


class ObjectWriter:
    """Stores content once; `known` is content that is safe to rely on without looking.

    What is not known is written even if an object of its name exists, because that object may be
    about to be collected; such names are remembered in `refreshed` (docs/repository-format.md).
    """

    def __init__(
        self, store: Store, known: Mapping[str, Location], *, scope: str | None = None
    ) -> None:
        """`scope` is who the content is for, where content may stay unread that an S3 server
        vouches for; None where every byte is to be read."""
        self._store = store
        self._scope = scope
        self._located = dict(known)
        self._waiting: set[str] = set()
        """Content of packs that are full and not written yet."""
        self._pack = _Pack()
        self._lock = threading.Lock()
        self._beside = ThreadPoolExecutor(store.parallelism, "pack")
        self._seals: list[Future[None]] = []
        self.refreshed: set[str] = set()
        self.new_bytes = 0
        self.new_objects = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is written any more afterwards."""
        self._beside.shutdown(cancel_futures=True)

    def take(self, source: Store, path: str, *, called: str, moved: Moved = unwatched) -> Content:
        """Store a file of another store as an object; it is `called` so in the savepoint.

        The MD5 of a server names it only under that name and for whom the savepoint is of, so that
        nobody can put a content of theirs in the place of another's.
        """
        scope = None if self._scope is None else f"{self._scope}/{called}"
        taken = self._store.take(source, path, name=self._wanted, scope=scope, moved=moved)
        return self._kept(taken)

    def take_object(self, origin: Store, digest: str, *, moved: Moved = unwatched) -> Content:
        """Store an object of another repository; what it was found to hold tells whether it is
        whole."""
        path = object_path(digest)
        taken = self._store.take(origin, path, name=self._wanted, like=digest, moved=moved)
        return self._kept(taken)

    def _kept(self, taken: Taken) -> Content:
        if taken.path is not None:
            with self._lock:
                self._located.setdefault(taken.digest, Location(taken.digest, 0))
                self._count(taken.digest, taken.size, existed=taken.existed)
        return Content(taken.digest, taken.size, taken.stamp)

    def tail(self, content: Content, size: int) -> bytes:
        """The last bytes of content that `take` has stored, or found to be stored."""
        location = self.locate(content.digest)
        start = max(0, content.size - size)
        path = object_path(location.object)
        return self._store.read_range(path, location.offset + start, content.size - start)

    def is_beginning(self, content: Content, record: FileRecord) -> bool:
        """Whether content that is shorter is what that of the record begins with."""
        digester = new_digester(like=content.digest)
        for start in range(0, content.size, PACK_SIZE):
            length = min(PACK_SIZE, content.size - start)
            offset = record.offset + start
            digester.update(self._store.read_range(object_path(record.object), offset, length))
        return digester.hexdigest() == content.digest

    def is_line_end(self, record: FileRecord, size: int) -> bool:
        """Whether the first bytes of the record's content, so many, are whole lines of JSON."""
        path, last = object_path(record.object), record.offset + size - 1
        return size > 0 and self._store.read_range(path, last, 2) == b"}\n"

    def knows(self, digest: str) -> bool:
        """Whether the content is stored already, or relied upon."""
        with self._lock:
            return digest in self._located

    def _wanted(self, digest: str) -> str | None:
        with self._lock:
            return None if digest in self._located else object_path(digest)

    def add(self, data: bytes, *, called: str) -> str:
        """Put the content of a small file into a pack; its digest. It is `called` so in the
        savepoint."""
        digest = digest_of(data)
        full: _Pack | None = None
        with self._lock:
            pack = self._pack
            if digest in pack.parts:
                pack.parts[digest] = min(pack.parts[digest], (called, data))
            elif digest not in self._located and digest not in self._waiting:
                pack.parts[digest] = called, data
                pack.size += len(data)
            if pack.size >= PACK_SIZE:
                full, self._pack = pack, _Pack()
                self._waiting |= pack.parts.keys()
        if full is not None:
            self._seal_beside(full)
        return digest

    def add_object(self, data: bytes) -> str:
        """Store bytes as an object of their own; the digest."""
        return self._put([data])

    def _put(self, parts: list[bytes]) -> str:
        """Store an object that consists of these; its digest."""
        digest = digest_of_parts(parts)
        path = object_path(digest)
        existed = _exists(self._store, path)
        size = self._store.put(path, parts)
        with self._lock:
            self._located[digest] = Location(digest, 0)
            self._count(digest, size, existed=existed)
        return digest

    def _seal_beside(self, pack: _Pack) -> None:
        """Write a full pack while the next one is filled.

        Whoever has filled one waits for the one before it, so that nobody is more than one ahead
        and packs do not heap up in memory.
        """
        with self._lock:
            before = self._seals[-1:]
            self._seals.append(self._beside.submit(self._seal, pack))
        for seal in before:
            seal.result()

    def _seal(self, pack: _Pack) -> None:
        if not pack.parts:
            return
        parts = pack.in_order()
        name = self._put([data for _, data in parts])
        located, offset = {}, 0
        for digest, data in parts:
            located[digest] = Location(name, offset)
            offset += len(data)
        with self._lock:
            self._located |= located
            self._waiting -= located.keys()

    def _count(self, digest: str, size: int, *, existed: bool) -> None:
        if existed:
            self.refreshed.add(digest)
        else:
            self.new_bytes += size
            self.new_objects += 1

    def flush(self) -> None:
        """Write the pack that is not full; afterwards every digest has a location."""
        with self._lock:
            rest, self._pack = self._pack, _Pack()
        self._seal(rest)
        # All of them: whoever should have waited for one may have failed before.
        for seal in self._seals:
            seal.result()

    def locate(self, digest: str) -> Location:
        """Where the content is; only after `flush`."""
        return self._located[digest]


def _exists(store: Store, path: str) -> bool:
    try:
        store.stat(path)
    except NotFoundError:
        return False
    return True


def lacking(store: Store, records: Iterable[FileRecord]) -> frozenset[str]:
    """The objects of these records that are missing or have another size, as far as few requests
    tell. Whether the bytes are right takes reading them: `verify` does."""
    ends: dict[str, int] = {}
    packs: set[str] = set()
    for record in records:
        ends[record.object] = max(ends.get(record.object, 0), record.offset + record.size)
        if record.object != record.digest:
            packs.add(record.object)
    paths = {object_path(digest): digest for digest in ends}
    bad = set()
    for path, size in store.sizes(OBJECTS, paths).items():
        digest, found = paths[path], -1 if size is None else size
        # A pack may hold more, of other savepoints.
        longer = found > ends[digest] and digest in packs
        if found != ends[digest] and not longer:
            bad.add(digest)
    return frozenset(bad)


def read_record(store: Store, record: FileRecord) -> bytes:
    """The content of a small file, checked."""
    path = object_path(record.object)
    try:
        data = store.read_range(path, record.offset, record.size)
    except NotFoundError as error:
        raise DamagedError(_missing(store, record)) from error
    if digest_of(data, like=record.digest) != record.digest:
        raise DamagedError(
            f"{store.uri}/{path} is damaged: {record.path} in it does not have the digest "
            f"{record.digest}. Restore the object from a copy of the repository."
        )
    return data


def _missing(store: Store, record: FileRecord) -> str:
    return (
        f"{store.uri}/{object_path(record.object)} is missing, which holds {record.path}. "
        "Restore the object from a copy of the repository, or use another savepoint."
    )
