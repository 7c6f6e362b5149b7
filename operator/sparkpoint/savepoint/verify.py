"""Verify: is everything there, is it what it should be, and is it enough to restore the batch.

Content is read once, however many savepoints share it, and one table is in memory at a time. The
planner that captured a batch runs again over the savepoint's own files, so a missing delta is found
without Spark, and so is one that was cut off before it was captured.
"""

from collections.abc import Container, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sparkpoint.checkpoint.endings import END_BYTES, has_end, is_stream, truncated
from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.checkpoint.lz4 import is_end
from sparkpoint.checkpoint.plan import plan_files
from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.errors import DamagedError, NoSuchSavepointError
from sparkpoint.savepoint.leases import hold_to_read
from sparkpoint.savepoint.names import object_path
from sparkpoint.savepoint.objects import PACK_SIZE, SMALL, read_record
from sparkpoint.savepoint.progress import Amount, Progress, Silent
from sparkpoint.savepoint.table import FileRecord, Table
from sparkpoint.storage import Entry, Store, chunks_of
from sparkpoint.storage.digest import digest_of, new_digester
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
    as_captured: bool = False
    """Whether all objects are what was captured: every copy has the same problems, if any."""

    @property
    def good(self) -> bool:
        """Whether it can be restored."""
        return not self.problems


def verify(
    store: Store, savepoints: Iterable[Savepoint], *, progress: Progress | None = None
) -> list[Verification]:
    """Check savepoints; one that was deleted before the check began is left out."""
    wanted, progress = list(savepoints), progress or Silent()
    pins = {savepoint.manifest.files.table for savepoint in wanted}
    # Without a lease a collection could take away what is being read, which looks like damage.
    with hold_to_read(store, "verify", pins=pins, progress=progress):
        return _verify_all(store, wanted, progress)


def _verify_all(store: Store, wanted: list[Savepoint], progress: Progress) -> list[Verification]:
    content = _Content(store, progress)
    # A pack is needed by the savepoint that wrote it, and less and less by those after it: with
    # the oldest first, nearly all of it is checked when it is read for the first time.
    by_age = sorted(range(len(wanted)), key=lambda index: wanted[index].order)
    found: dict[int, Verification] = {}
    for number, index in enumerate(by_age, start=1):
        verified = _verify_one(content, wanted[index], phase=f"verify {number}/{len(wanted)}")
        if verified is not None:
            found[index] = verified
    return [found[index] for index in sorted(found)]


def _verify_one(content: "_Content", savepoint: Savepoint, *, phase: str) -> Verification | None:
    """Check one savepoint; its table, which may be large, is forgotten with the return."""
    store = content.store
    try:
        table = catalogue.read_table(store, savepoint)
    except DamagedError as error:
        problems, as_captured = [str(error)], False
    else:
        damaged = content.check(table, phase=phase)
        as_captured = not damaged
        problems = _check_table(store, savepoint, table, damaged, content.cut_off(table))
    if problems and _is_gone(store, savepoint):
        return None
    count, size = savepoint.manifest.files.count, savepoint.manifest.files.bytes
    return Verification(savepoint, count, size, tuple(problems), as_captured)


def _is_gone(store: Store, savepoint: Savepoint) -> bool:
    try:
        catalogue.reread(store, savepoint)
    except NoSuchSavepointError:
        return True
    return False


class _Content:
    """What was read already, and found good or not; small, however many savepoints there are."""

    def __init__(self, store: Store, progress: Progress) -> None:
        self.store = store
        self._progress = progress
        self._good: set[bytes] = set()
        self._damaged: dict[bytes, str] = {}
        self._cut_off: set[bytes] = set()

    def check(self, table: Table, *, phase: str) -> dict[str, str]:
        """Path -> problem, of the files whose content is wrong; reads what was not read yet."""
        by_object: dict[str, set[FileRecord]] = {}
        for record in table.files.values():
            key = _key(record)
            if key not in self._good and key not in self._damaged:
                by_object.setdefault(record.object, set()).add(record)
        size = sum(max(r.offset + r.size for r in records) for records in by_object.values())
        # In bytes alone: these are objects, and only those that no savepoint before had.
        self._progress.start(phase, Amount(0, size))
        with ThreadPoolExecutor(self.store.parallelism, "verify") as pool:
            for checked in pool.map(
                lambda item: _check_object(self.store, item[0], item[1], self._progress),
                by_object.items(),
            ):
                self._damaged |= {_key(record): text for record, text in checked.problems.items()}
                self._cut_off |= {_key(record) for record in checked.cut_off}
        for records in by_object.values():
            self._good |= {key for r in records if (key := _key(r)) not in self._damaged}
        if not self._damaged:
            return {}
        keys = {path: _key(record) for path, record in table.files.items()}
        return {p: self._damaged[key] for p, key in keys.items() if key in self._damaged}

    def cut_off(self, table: Table) -> frozenset[str]:
        """Paths of state files that were read and do not end as a stream of LZ4 blocks does."""
        if not self._cut_off:
            return frozenset()
        return frozenset(p for p, r in table.files.items() if _key(r) in self._cut_off)


@dataclass(frozen=True, slots=True)
class _Checked:
    """What one object was found to hold."""

    problems: dict[FileRecord, str]
    cut_off: tuple[FileRecord, ...] = ()


def _key(record: FileRecord) -> bytes:
    """What decides whether a record is good, in few bytes: where it is, and what should be there.

    Content that is an object by itself is told apart from the same content in a pack.
    """
    place = f"{record.object} {record.offset} {record.size} {record.digest}"
    return bytes.fromhex(digest_of(place.encode()))


def _check_object(
    store: Store, digest: str, records: set[FileRecord], progress: Progress
) -> _Checked:
    path = object_path(digest)
    try:
        if all(record.object == record.digest for record in records):
            return _check_whole(store, digest, records, progress)
        checked = _check_pack(store, path, records)
    except NotFoundError:
        checked = _Checked(dict.fromkeys(records, f"{path} is missing"))
    progress.advance(Amount(0, max(record.offset + record.size for record in records)))
    return checked


def _check_whole(
    store: Store, digest: str, records: set[FileRecord], progress: Progress
) -> _Checked:
    path = object_path(digest)
    digester, size, tail = new_digester(like=digest), 0, b""
    with store.open(path) as stream:
        for chunk in chunks_of(stream):
            digester.update(chunk)
            size += len(chunk)
            progress.advance(Amount(0, len(chunk)))
            tail = (tail + bytes(chunk[-END_BYTES:]))[-END_BYTES:]
    found = digester.hexdigest()
    problems = {
        record: f"{path} is damaged ({size} bytes with the digest {found[:12]}…)"
        for record in records
        if (record.size, record.digest) != (size, found)
    }
    return _Checked(problems, tuple(r for r in records if _is_cut_off(r, tail)))


def _check_pack(store: Store, path: str, records: set[FileRecord]) -> _Checked:
    try:
        data = memoryview(store.read(path, limit=_PACK_LIMIT))
    except TooLargeError:
        return _Checked(dict.fromkeys(records, f"{path} is too large for a pack"))
    contents = {record: data[record.offset :][: record.size] for record in records}
    problems = {
        record: f"{path} is damaged at byte {record.offset}"
        for record, content in contents.items()
        if digest_of(content) != record.digest or record.offset + record.size > len(data)
    }
    cut_off = (r for r, content in contents.items() if _is_cut_off(r, content[-END_BYTES:]))
    return _Checked(problems, tuple(cut_off))


def _is_cut_off(record: FileRecord, tail: bytes | memoryview) -> bool:
    return is_stream(record.path) and not is_end(bytes(tail))


def _check_table(
    store: Store,
    savepoint: Savepoint,
    table: Table,
    damaged: Mapping[str, str],
    cut_off: Container[str],
) -> list[str]:
    problems = [f"{path}: {problem}" for path, problem in damaged.items()]
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
        ending = (p for p in records if has_end(p, query.conf))
        problems += [str(truncated(start + p)) for p in ending if start + p in cut_off]
    return problems


def _check_query(
    store: Store, records: Mapping[str, FileRecord], *, batch: int, name: str
) -> list[str]:
    entries = {p: Entry(p, r.size, r.stamp, 0.0) for p, r in records.items()}
    reader = RecordReader(store, records)
    try:
        # The savepoint may have been planned with a longer chain than the default.
        plan_files(entries, reader, batch=batch, max_chain=len(entries) + 1, as_stored=True)
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
