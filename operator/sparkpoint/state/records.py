"""Keys and values of one store of the HDFS-backed provider, out of a snapshot and what follows it.

A file is a compressed run of (length, key, length, value), ended by a length of -1; in a delta a
value's length of -1 removes the key. Keys and values are UnsafeRows, which nothing here looks into.

A snapshot alone is streamed. Over one with deltas, the changed keys are kept in memory, each with
its newest value, and the snapshot is streamed past them: memory is bounded by what changed since
the snapshot, not by the state. A store without any snapshot is all change. `CHANGES_LIMIT` says how
much is too much.
"""

import struct
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from sparkpoint.checkpoint.errors import DamagedError, IncompleteError
from sparkpoint.state.blocks import inflate
from sparkpoint.state.errors import UnsupportedStateError
from sparkpoint.storage.errors import NotFoundError

__all__ = [
    "CHANGES_LIMIT",
    "FINISH",
    "Files",
    "Record",
    "StoreVersion",
    "encode",
    "read_file",
    "read_store",
]

CHANGES_LIMIT = 512 * 1024 * 1024
"""Bytes of keys and values that the deltas of one store may add up to; Python needs about three
times as much memory for them."""
_OVERHEAD = 16
_SIZE = struct.Struct(">i")
FINISH = _SIZE.pack(-1)
"""What ends a file, inside of its compression."""

Record = tuple[bytes, bytes]
Change = tuple[bytes, bytes | None]


class Files(Protocol):
    """Where state files can be opened by their path: a directory, a savepoint."""

    def open(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A stream over the content; NotFoundError at the latest on entering."""
        ...


@dataclass(frozen=True, slots=True)
class StoreVersion:
    """One store of one partition at one version."""

    folder: str
    base: int
    """The version of the snapshot; 0 for none."""
    version: int

    @property
    def snapshot(self) -> str | None:
        """The path of the snapshot; None if it begins from empty."""
        return f"{self.folder}/{self.base}.snapshot" if self.base else None

    @property
    def deltas(self) -> list[str]:
        """The paths of the changes since, oldest first."""
        return [f"{self.folder}/{v}.delta" for v in range(self.base + 1, self.version + 1)]


def encode(key: bytes, value: bytes) -> bytes:
    """A key and its value as they stand in a file."""
    return b"".join((_SIZE.pack(len(key)), key, _SIZE.pack(len(value)), value))


def read_store(
    files: Files, store: StoreVersion, *, changes_limit: int = CHANGES_LIMIT
) -> Iterator[Record]:
    """Every key and value of the version, in no order."""
    changes = _changes(files, store, changes_limit)
    if store.snapshot is not None:
        for key, value in read_file(files, store.snapshot, store):
            if value is None:
                raise DamagedError(f"{store.snapshot} is damaged: a snapshot removes no keys.")
            if key not in changes:
                yield key, value
    for key, value in changes.items():
        if value is not None:
            yield key, value


def _changes(files: Files, store: StoreVersion, limit: int) -> dict[bytes, bytes | None]:
    changes: dict[bytes, bytes | None] = {}
    size = 0
    for path in store.deltas:
        for key, value in read_file(files, path, store):
            changes[key] = value
            size += len(key) + len(value or b"") + _OVERHEAD
            if size > limit:
                raise UnsupportedStateError(
                    f"{store.folder} has more than {limit >> 20} MiB of changes since its last "
                    "snapshot, too many to keep in memory. Let the query write a snapshot (see "
                    "spark.sql.streaming.stateStore.minDeltasForSnapshot) and take a new savepoint."
                )
    return changes


def read_file(files: Files, path: str, store: StoreVersion) -> Iterator[Change]:
    """The entries of one delta or snapshot, in order; None for a key that is removed."""
    try:
        with files.open(path) as stream:
            yield from _entries(inflate(stream, path), path)
    except NotFoundError as error:
        raise IncompleteError([path], batch=store.version - 1) from error


def _entries(pieces: Iterable[bytes], path: str) -> Iterator[Change]:
    unpack = _SIZE.unpack_from
    rest = b""
    for piece in pieces:
        data = rest + piece if rest else piece
        at, end = 0, len(data)
        # An entry that does not end in this piece is parsed again with the next one.
        while at + 4 <= end:
            size = unpack(data, at)[0]
            if size == -1:
                return
            middle = at + 4 + size
            _check(size, path)
            if middle + 4 > end:
                break
            size = unpack(data, middle)[0]
            if size == -1:
                yield data[at + 4 : middle], None
                at = middle + 4
                continue
            _check(size, path)
            after = middle + 4 + size
            if after > end:
                break
            yield data[at + 4 : middle], data[middle + 4 : after]
            at = after
        rest = data[at:]
    raise DamagedError(f"{path} is truncated: it does not say where it ends.")


def _check(size: int, path: str) -> None:
    if size < 0:
        raise DamagedError(f"{path} is damaged: an entry of {size} bytes.")
