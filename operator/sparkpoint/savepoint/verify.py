"""Verify: is everything there, is it what it should be, and is it enough to restore the batch.

Every object is read once, however many savepoints share it. The planner that captured a batch runs
again over the savepoint's own files, so a missing delta is found without Spark.
"""

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.checkpoint.plan import plan_files
from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.errors import DamagedError, NoSuchSavepointError
from sparkpoint.savepoint.names import object_path
from sparkpoint.savepoint.objects import PACK_SIZE, SMALL, read_record
from sparkpoint.savepoint.progress import Amount, Progress, Silent
from sparkpoint.savepoint.table import FileRecord, Table
from sparkpoint.storage import Entry, Store, chunks_of
from sparkpoint.storage.errors import NotFoundError, TooLargeError
from sparkpoint.storage.interface import SMALL_FILE

__all__ = ["Verification", "verify"]

_PACK_LIMIT = PACK_SIZE + SMALL


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found out about one savepoint."""

    savepoint: Savepoint
    files: int
    bytes: int
    problems: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether it can be restored."""
        return not self.problems


def verify(
    store: Store, savepoints: Iterable[Savepoint], *, progress: Progress | None = None
) -> list[Verification]:
    """Check savepoints; one that is deleted meanwhile is left out."""
    tables: list[tuple[Savepoint, Table | None, list[str]]] = []
    for savepoint in savepoints:
        try:
            tables.append((savepoint, catalogue.read_table(store, savepoint), []))
        except DamagedError as error:
            tables.append((savepoint, None, [str(error)]))
    damaged = _check_objects(store, [t for _, t, _ in tables if t], progress or Silent())
    found = []
    for savepoint, table, problems in tables:
        if table is not None:
            problems += _check_table(store, savepoint, table, damaged)
        if problems and _is_gone(store, savepoint):
            continue
        count, size = savepoint.manifest.files.count, savepoint.manifest.files.bytes
        found.append(Verification(savepoint, count, size, tuple(problems)))
    return found


def _is_gone(store: Store, savepoint: Savepoint) -> bool:
    try:
        catalogue.reread(store, savepoint)
    except NoSuchSavepointError:
        return True
    return False


def _check_objects(
    store: Store, tables: list[Table], progress: Progress
) -> Mapping[FileRecord, str]:
    """The records whose content is wrong, and how."""
    by_object: dict[str, set[FileRecord]] = {}
    for table in tables:
        for record in table.files.values():
            by_object.setdefault(record.object, set()).add(record)
    size = sum(max(r.offset + r.size for r in records) for records in by_object.values())
    progress.start("verify", Amount(len(by_object), size))
    with ThreadPoolExecutor(store.parallelism, "verify") as pool:
        results = pool.map(
            lambda item: _check_object(store, item[0], item[1], progress), by_object.items()
        )
        return {record: problem for each in results for record, problem in each.items()}


def _check_object(
    store: Store, digest: str, records: set[FileRecord], progress: Progress
) -> dict[FileRecord, str]:
    path = object_path(digest)
    try:
        if all(record.object == record.digest for record in records):
            problems = _check_whole(store, path, records)
        else:
            problems = _check_pack(store, path, records)
    except NotFoundError:
        problems = dict.fromkeys(records, f"{path} is missing")
    progress.advance(Amount(1, max(record.offset + record.size for record in records)))
    return problems


def _check_whole(store: Store, path: str, records: set[FileRecord]) -> dict[FileRecord, str]:
    digest, size = hashlib.sha256(), 0
    with store.open(path) as stream:
        for chunk in chunks_of(stream):
            digest.update(chunk)
            size += len(chunk)
    found = digest.hexdigest()
    return {
        record: f"{path} is damaged ({size} bytes with SHA-256 {found[:12]}…)"
        for record in records
        if (record.size, record.digest) != (size, found)
    }


def _check_pack(store: Store, path: str, records: set[FileRecord]) -> dict[FileRecord, str]:
    try:
        data = memoryview(store.read(path, limit=_PACK_LIMIT))
    except TooLargeError:
        return dict.fromkeys(records, f"{path} is too large for a pack")
    return {
        record: f"{path} is damaged where it holds {record.path}"
        for record in records
        if hashlib.sha256(data[record.offset :][: record.size]).hexdigest() != record.digest
        or record.offset + record.size > len(data)
    }


def _check_table(
    store: Store, savepoint: Savepoint, table: Table, damaged: Mapping[FileRecord, str]
) -> list[str]:
    problems = [f"{r.path}: {damaged[r]}" for r in table.files.values() if r in damaged]
    files = savepoint.manifest.files
    total = sum(record.size for record in table.files.values())
    if (files.count, files.bytes) != (len(table.files), total):
        problems.append("the manifest counts other files than its table lists")
    if problems:
        return problems
    for query in savepoint.manifest.queries:
        start = f"{query.prefix}/" if query.prefix else ""
        records = {p[len(start) :]: r for p, r in table.files.items() if p.startswith(start)}
        problems += _check_query(store, records, batch=query.batch, name=query.prefix)
    return problems


def _check_query(
    store: Store, records: Mapping[str, FileRecord], *, batch: int, name: str
) -> list[str]:
    entries = {p: Entry(p, r.size, r.stamp, 0.0) for p, r in records.items()}
    reader = RecordReader(store, records)
    try:
        # The savepoint may have been planned with a longer chain than the default.
        plan_files(entries, reader, batch=batch, max_chain=len(entries) + 1)
    except (CheckpointError, DamagedError) as error:
        return [f"{name}: {error}" if name else str(error)]
    return []


class RecordReader:
    """Reads a savepoint's files for the planner."""

    def __init__(self, store: Store, records: Mapping[str, FileRecord]) -> None:
        self._store = store
        self._records = records

    @property
    def parallelism(self) -> int:
        """That of the store."""
        return self._store.parallelism

    def read(self, path: str) -> bytes:
        """The whole content of a small file."""
        record = self._record(path)
        if record.size > SMALL_FILE:
            raise TooLargeError(f"{path} has {record.size} bytes.")
        return read_record(self._store, record)

    def head(self, path: str, size: int) -> bytes:
        """The first bytes, unchecked."""
        record = self._record(path)
        where = object_path(record.object)
        return self._store.read_range(where, record.offset, min(size, record.size))

    def _record(self, path: str) -> FileRecord:
        if path not in self._records:
            raise NotFoundError(f"The savepoint has no {path}.")
        return self._records[path]
