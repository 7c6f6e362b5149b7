"""What a restored checkpoint consists of: the savepoint's files, some left out, some rewritten.

Pure but for reading the few files that change: the query's id in a fork, schema paths in operator
metadata, source logs that must be cut at the batch, and the lineage in the last changelogs of state
in format 2, if the savepoint starts from an older snapshot than they name.
"""

import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from functools import partial

from sparkpoint.checkpoint.lineage import lineages_to_restore, rewrite_lineage
from sparkpoint.checkpoint.model import Role
from sparkpoint.checkpoint.names import CODEC, DECODABLE, codec_name
from sparkpoint.checkpoint.rewrite import (
    is_operator_metadata_v2,
    rewrite_operator,
    rewrite_query_id,
    split_compact,
)
from sparkpoint.savepoint.errors import DamagedError
from sparkpoint.savepoint.manifest import Manifest, QueryInfo, SourceCut
from sparkpoint.savepoint.table import FileRecord, Table
from sparkpoint.storage.digest import digest_of
from sparkpoint.storage.errors import BadLocationError
from sparkpoint.storage.interface import check_path

__all__ = ["Mode", "Piece", "new_query_ids", "pieces_of"]

Read = Callable[[FileRecord], bytes]

_READERS = 16


class Mode(Enum):
    """What the restored query is to the one that was captured."""

    RESUME = "resume"
    """The same query goes on: same id, the batch in flight is replayed as it was."""
    REWIND = "rewind"
    """The same query goes back: same id, whatever was in flight is forgotten."""
    FORK = "fork"
    """Another query starts from the same state: new id, nothing in flight."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A file of the target: stored content, or bytes made for this target."""

    path: str
    size: int
    digest: str
    record: FileRecord | None
    make: Callable[[], bytes] | None
    """Called when the bytes are needed, and no sooner: a thousand changelogs fill the memory."""

    @property
    def data(self) -> bytes | None:
        """What was made for this target; None for stored content."""
        return self.make() if self.make else None


def new_query_ids(manifest: Manifest, mode: Mode) -> dict[str, str]:
    """Folder -> id of the query in the target."""
    if mode is Mode.FORK:
        return {query.prefix: str(uuid.uuid4()) for query in manifest.queries}
    return {query.prefix: query.id for query in manifest.queries}


def pieces_of(
    manifest: Manifest,
    table: Table,
    *,
    mode: Mode,
    query_ids: Mapping[str, str],
    root: str,
    read: Read,
) -> dict[str, Piece]:
    """Path -> file of a target whose root is `root` in Hadoop's words."""
    pieces: dict[str, Piece] = {}
    for query in manifest.queries:
        start = f"{query.prefix}/" if query.prefix else ""
        records = {p[len(start) :]: r for p, r in table.files.items() if p.startswith(start)}
        made = _made(query, records, mode=mode, root=_below(root, query.prefix), read=read)
        if mode is Mode.FORK:
            made["metadata"] = rewrite_query_id(
                read(_required(records, "metadata")), query_ids[query.prefix]
            )
        changelogs = _changelogs(query, records, start=start, read=read)
        dropped = {cut.path for cut in _cuts(query, mode)}
        # Spark compares a changelog with its sidecar if there is one, and does without it else.
        dropped |= {f"{path}.crc" for path in changelogs}
        for path, record in records.items():
            if _wanted(record, mode) and path not in made and path not in dropped:
                full = start + path
                pieces[full] = Piece(full, record.size, record.digest, record, None)
        for path, data in made.items():
            full = _checked(start + path)
            pieces[full] = _piece(full, data, partial(bytes, data))
        pieces |= {piece.path: piece for piece in changelogs.values()}
    return pieces


def _piece(path: str, data: bytes, make: Callable[[], bytes]) -> Piece:
    return Piece(path, len(data), digest_of(data), None, make)


def _below(root: str, prefix: str) -> str:
    return f"{root}/{prefix}" if prefix else root


def _wanted(record: FileRecord, mode: Mode) -> bool:
    return mode is Mode.RESUME or record.role is not Role.PENDING


def _cuts(query: QueryInfo, mode: Mode) -> list[SourceCut]:
    # A replay of the batch in flight needs the newer entries, and Spark copes with them then: it
    # always writes a source's log before the offsets.
    return [] if mode is Mode.RESUME and query.pending else query.source_cuts


def _made(
    query: QueryInfo, records: Mapping[str, FileRecord], *, mode: Mode, root: str, read: Read
) -> dict[str, bytes]:
    made = {
        path: rewrite_operator(read(record), path, root=root)
        for path, record in records.items()
        if is_operator_metadata_v2(path)
    }
    for cut in _cuts(query, mode):
        data = read(_required(records, cut.path))
        entries = split_compact(data, cut.path, last=cut.last, interval=cut.interval)
        made |= {f"sources/{cut.source}/{name}": content for name, content in entries.items()}
    return made


def _changelogs(
    query: QueryInfo, records: Mapping[str, FileRecord], *, start: str, read: Read
) -> dict[str, Piece]:
    """Changelogs that do not name the versions back to the savepoint's base, and now will."""
    if codec_name(query.conf.get(CODEC, DECODABLE)) != DECODABLE:
        return {}

    def rewritten(path: str, lineage: Mapping[int, str]) -> Piece | None:
        make, stored = partial(_with_lineage, records[path], path, lineage, read), records[path]
        data = make()
        same = digest_of(data, like=stored.digest) == stored.digest
        return None if same else _piece(start + path, data, make)

    wanted = lineages_to_restore({path: record.size for path, record in records.items()})
    with ThreadPoolExecutor(_READERS, "lineage") as pool:
        pieces = pool.map(rewritten, wanted.keys(), wanted.values())
        return {p: piece for p, piece in zip(wanted, pieces, strict=True) if piece is not None}


def _with_lineage(record: FileRecord, path: str, lineage: Mapping[int, str], read: Read) -> bytes:
    return rewrite_lineage(read(record), path, lineage)


def _required(records: Mapping[str, FileRecord], path: str) -> FileRecord:
    if path not in records:
        raise DamagedError(f"The savepoint has no {path}, so it cannot be restored.")
    return records[path]


def _checked(path: str) -> str:
    try:
        return check_path(path)
    except BadLocationError as error:
        raise DamagedError(f"The savepoint would restore a file outside: {error}") from error
