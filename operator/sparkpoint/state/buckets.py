"""Two sets of rows compared key by key, in memory that does not grow with them.

Rows are dealt into buckets by a checksum of their key, on disk if there is more than one bucket;
then each bucket is compared by itself. Only the keys and values of one side of one bucket, and the
keys of the other, are in memory at a time.
"""

import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sparkpoint.state.errors import UnsupportedStateError, WorkFolderError
from sparkpoint.state.records import Record

__all__ = ["Difference", "Totals", "buckets_for", "counted", "differences", "room_for"]

_BUCKET = 32 * 1024 * 1024
"""Bytes of keys and values of one side that are held; Python needs about three times as much."""
_MOST = 500
"""Files that are open at a time, for each side."""
_EXPANDS = 8
"""How much larger rows may be than the files that they are in."""
_SIZES = struct.Struct("<II")
_BUFFER = 64 * 1024


@dataclass(frozen=True, slots=True)
class Difference:
    """A key that is not the same on both sides."""

    key: bytes
    before: bytes | None
    """None: it was added."""
    after: bytes | None
    """None: it was removed."""


@dataclass(slots=True)
class Totals:
    """How many keys there are of each kind."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    same: int = 0


def buckets_for(stored: int) -> int:
    """How many buckets suit rows that are in files of so many bytes."""
    return min(_MOST, 1 + stored * _EXPANDS // _BUCKET)


def room_for(stored: int) -> int:
    """Bytes that buckets of such rows may take on disk."""
    return 0 if buckets_for(stored) == 1 else stored * _EXPANDS


def counted(records: Iterable[Record]) -> Iterator[Record]:
    """How often each key occurs, in place of what it has."""
    times = Counter(key for key, _ in records)
    return ((key, str(number).encode()) for key, number in times.items())


def differences(
    before: Iterable[Record],
    after: Iterable[Record],
    *,
    totals: Totals,
    buckets: int,
    folder: Path,
    gather: Callable[[Iterable[Record]], Iterable[Record]] = iter,
) -> Iterator[Difference]:
    """Every key that differs; `totals` is right when all have been gone through.

    `gather` makes of all records of a bucket those to compare, of which no two have one key.
    """
    if buckets == 1:
        yield from _compared(gather(before), gather(after), totals)
        return
    try:
        _deal(before, folder, "before", buckets)
        _deal(after, folder, "after", buckets)
    except OSError as error:
        raise WorkFolderError(
            f"{folder} cannot hold the rows: {error.strerror}. Give another folder with --work-dir."
        ) from error
    for number in range(buckets):
        old, new = folder / f"before-{number}", folder / f"after-{number}"
        yield from _compared(gather(_read(old)), gather(_read(new)), totals)
        old.unlink()
        new.unlink()


def _compared(
    before: Iterable[Record], after: Iterable[Record], totals: Totals
) -> Iterator[Difference]:
    """UnsupportedStateError if a key occurs twice on a side, as in joins of format 4: one of its
    values would be lost."""
    left: dict[bytes, bytes | None] = {}
    for key, value in before:
        if key in left:
            raise _several()
        left[key] = value
    for key, value in after:
        is_new, was = key not in left, left.get(key)
        # It has been seen on this side.
        left[key] = None
        if is_new:
            totals.added += 1
            yield Difference(key, None, value)
        elif was is None:
            raise _several()
        elif was != value:
            totals.changed += 1
            yield Difference(key, was, value)
        else:
            totals.same += 1
    for key, was in left.items():
        if was is not None:
            totals.removed += 1
            yield Difference(key, was, None)


def _several() -> UnsupportedStateError:
    return UnsupportedStateError(
        "a key of this state occurs several times, so that it cannot be compared key by key. "
        "Choose other state with --query, --operator and --store."
    )


def _deal(records: Iterable[Record], folder: Path, name: str, buckets: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    crc32, pack = zlib.crc32, _SIZES.pack
    with ExitStack() as stack:
        paths = [folder / f"{name}-{number}" for number in range(buckets)]
        files = [stack.enter_context(path.open("wb", buffering=_BUFFER)) for path in paths]
        for key, value in records:
            files[crc32(key) % buckets].write(pack(len(key), len(value)) + key + value)


def _read(path: Path) -> Iterator[Record]:
    with path.open("rb", buffering=_BUFFER) as file:
        while head := file.read(_SIZES.size):
            key, value = _SIZES.unpack(head)
            yield file.read(key), file.read(value)
