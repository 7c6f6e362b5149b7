"""The table of a savepoint's files: which, how large, with which content, and where that is stored.

Compressed JSON, an object like any other. Only whoever needs the files reads it: a capture for its
parent, a restore, a verification, a collection.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from sparkpoint.checkpoint.model import Role
from sparkpoint.savepoint.errors import DamagedError
from sparkpoint.savepoint.manifest import (
    FORMAT,
    NEWEST,
    ContentDigest,
    Count,
    Digest,
    Strict,
    format_for,
    parse_document,
)
from sparkpoint.storage.digest import is_md5
from sparkpoint.storage.errors import BadLocationError
from sparkpoint.storage.interface import check_path

__all__ = ["FileRecord", "Table", "decode_table", "encode_table"]

_LIMIT = 1024 * 1024 * 1024
"""Of the text after decompression: some five million files. A bomb stops here."""
_LEVEL = 3
_HEADER = b"SPT1"
_quoted = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(slots=True, unsafe_hash=True)
class FileRecord:
    """One file of a savepoint. Frozen as Entry is."""

    path: Final[str]
    size: Final[int]
    digest: Final[str]
    object: Final[str]
    """The object that holds the bytes: the file's own digest, or that of a pack."""
    offset: Final[int]
    """Where in a pack; 0 for a file that is an object by itself."""
    role: Final[Role]
    stamp: Final[str]
    """The source's stamp when it was read; empty if it came from the parent."""


@dataclass(frozen=True, slots=True)
class Table:
    """The files of a savepoint by path."""

    files: Mapping[str, FileRecord]

    @property
    def objects(self) -> frozenset[str]:
        """Every object that is needed."""
        return frozenset(record.object for record in self.files.values())

    @property
    def format(self) -> Literal[1, 2]:
        """The format that it is written in."""
        return _format_of(self.files.values())


def _format_of(records: Iterable[FileRecord]) -> Literal[1, 2]:
    return format_for(record.digest for record in records)


class _Row(Strict):
    path: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    size: Count
    digest: ContentDigest
    object: Digest | None = None
    offset: Count = 0
    role: Literal["metadata", "offsets", "commits", "pending", "source", "operator", "state"]
    stamp: Annotated[str, StringConstraints(max_length=1024)] = ""


class _Document(Strict):
    format: Literal[1, 2]
    files: Annotated[list[_Row], Field(max_length=10_000_000)]


def encode_table(records: Iterable[FileRecord]) -> bytes:
    """The bytes of the object."""
    in_order = sorted(records, key=attrgetter("path"))
    rows = ",".join(map(_row, in_order))
    text = f'{{"files":[{rows}],"format":{_format_of(in_order)}}}'
    return _HEADER + zlib.compress(text.encode(), _LEVEL)


def _row(record: FileRecord) -> str:
    """A row as canonical JSON.

    By hand, because there may be a hundred thousand of them: keys in their order, and what others
    have chosen in the encoder's own words.
    """
    is_whole = record.object == record.digest
    place = "" if is_whole else f'"object":"{record.object}","offset":{record.offset},'
    end = f',"stamp":{_quoted(record.stamp)}' if record.stamp else ""
    return (
        f'{{"digest":"{record.digest}",{place}"path":{_quoted(record.path)},'
        f'"role":"{record.role.value}","size":{record.size}{end}}}'
    )


def decode_table(data: bytes, where: str) -> Table:
    """The table in these bytes; DamagedError for anything that could do harm."""
    if not data.startswith(_HEADER):
        raise DamagedError(f"{where} is not a table of files.")
    text = _decompress(data[len(_HEADER) :], where)
    document = parse_document(_Document, text, where, newest=NEWEST)
    files = {row.path: _record(row, where) for row in document.files}
    if len(files) != len(document.files):
        raise DamagedError(f"{where} lists a file twice.")
    if clash := _folders(files) & files.keys():
        raise DamagedError(f"{where}: {min(clash)!r} is both a file and a folder.")
    table = Table(files)
    if document.format == FORMAT != table.format:
        raise DamagedError(f"{where} names content in a way that its format does not know.")
    return table


def _folders(paths: Iterable[str]) -> set[str]:
    """Every folder above a path; thousands of files share one, so each is walked up once."""
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _decompress(data: bytes, where: str) -> bytes:
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(data, _LIMIT)
    except zlib.error as error:
        raise DamagedError(f"{where} cannot be decompressed: {error}.") from error
    if not stream.eof or stream.unused_data:
        raise DamagedError(f"{where} is cut off, too long or followed by something else.")
    return text


def _record(row: _Row, where: str) -> FileRecord:
    try:
        check_path(row.path)
    except BadLocationError as error:
        raise DamagedError(f"{where}: {error}") from error
    whole = row.object is None or row.object == row.digest
    if whole and row.offset:
        raise DamagedError(f"{where}: {row.path!r} starts inside of itself.")
    if is_md5(row.digest) and not whole:
        raise DamagedError(f"{where}: {row.path!r} is in a pack and has no digest of ours.")
    return FileRecord(
        path=row.path,
        size=row.size,
        digest=row.digest,
        object=row.object or row.digest,
        offset=row.offset,
        role=Role(row.role),
        stamp=row.stamp,
    )
