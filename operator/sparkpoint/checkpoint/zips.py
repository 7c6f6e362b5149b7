"""A RocksDB snapshot `v.zip`: which SST and log files it needs. Of the data it holds the number."""

import io
import lzma
import struct
import zipfile
import zlib
from dataclasses import dataclass

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.checkpoint.jsonlog import (
    Json,
    as_int,
    as_list,
    as_object,
    as_text,
    lines_of,
    parse,
    version_of,
)
from sparkpoint.checkpoint.names import is_plain_name

__all__ = ["Snapshot", "SnapshotFile", "parse_zip"]

_METADATA = "metadata"
_MAX_METADATA = 64 * 1024 * 1024
_MOST_ROWS = 2**48
"""More are none that somebody counted, and the sum over all partitions must stay a number."""
_FOLDERS = {".sst": "SSTs", ".log": "logs"}


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A file that the snapshot refers to; the path is relative to the store's folder."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a snapshot tells."""

    files: tuple[SnapshotFile, ...]
    rows: int | None
    """Without those that Spark keeps for itself; None if the query was told not to count."""


def parse_zip(data: bytes, path: str) -> Snapshot:
    """What the snapshot in `data` tells."""
    where = f"{path}!{_METADATA}"
    lines = lines_of(_metadata(data, path), where)
    # Spark 4.0 writes 2 where state has unique ids, and the content is the same.
    version_of(lines[0], where, known=(1, 2))
    content = as_object(parse("\n".join(lines[1:]), where), where, "the content")
    # Spark leaves logFiles out, or writes null, when there are none.
    ssts = as_list(content.get("sstFiles") or [], where, "sstFiles")
    logs = as_list(content.get("logFiles") or [], where, "logFiles")
    files = (
        *(_file(entry, "dfsSstFileName", where) for entry in ssts),
        *(_file(entry, "dfsLogFileName", where) for entry in logs),
    )
    return Snapshot(files, _count(content.get("numKeys")))


def _count(value: Json) -> int | None:
    """Spark says -1 for what it did not count. Nothing is lost without it, so all else is that."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < _MOST_ROWS else None


def _metadata(data: bytes, path: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(_METADATA) as member:
            content = member.read(_MAX_METADATA + 1)
    except KeyError as error:
        raise DamagedError(f"{path} has no member {_METADATA!r}: no RocksDB snapshot.") from error
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        struct.error,
        EOFError,
        OSError,
        ValueError,
        OverflowError,
        NotImplementedError,  # an unknown compression method
        RuntimeError,  # an encrypted member
    ) as error:
        raise DamagedError(f"{path} is no whole zip file: {error}. Use an older batch.") from error
    if len(content) > _MAX_METADATA:
        raise DamagedError(f"{path}: its {_METADATA} exceeds {_MAX_METADATA} bytes.")
    return content


def _file(entry: Json, key: str, where: str) -> SnapshotFile:
    fields = as_object(entry, where, "a file")
    name = as_text(fields.get(key), where, key)
    if not is_plain_name(name):
        raise DamagedError(f"{where}: {name[:80]!r} cannot be the name of a file.")
    folder = _FOLDERS.get(name[-4:])
    size = as_int(fields.get("sizeBytes"), where, "sizeBytes")
    return SnapshotFile(f"{folder}/{name}" if folder else name, size)
