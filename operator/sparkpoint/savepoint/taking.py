"""Taking one query: plan, copy, compare, and plan anew if Spark was faster."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass

from sparkpoint.checkpoint.endings import END_BYTES, check_end, has_end, truncated
from sparkpoint.checkpoint.errors import IncompleteError
from sparkpoint.checkpoint.model import BatchPlan, PlannedFile
from sparkpoint.checkpoint.plan import plan_batch
from sparkpoint.checkpoint.reader import NEAR
from sparkpoint.savepoint.errors import DamagedError, DoubtfulStateError, MovingTargetError
from sparkpoint.savepoint.leases import Lease
from sparkpoint.savepoint.lineage import Known
from sparkpoint.savepoint.objects import PACK_SIZE, SMALL, Content, ObjectWriter
from sparkpoint.savepoint.progress import Amount, Progress, Steps
from sparkpoint.savepoint.table import FileRecord
from sparkpoint.storage import Store
from sparkpoint.storage.digest import is_md5
from sparkpoint.storage.errors import ChangedError, NotFoundError, TooLargeError
from sparkpoint.storage.interface import SMALL_FILE, Children, Entry, Moved

__all__ = ["QueryTaker", "TakenQuery"]

_GROUP = 256
"""Small files that one thread takes in a row at most: a task costs more than a file."""
_FIRST = 4
_TURNS = 16
"""Tasks that each thread gets at least, while there are files enough: on S3 a file is a request,
and the last ones should not keep one thread busy while all others wait."""


class _VanishedError(Exception):
    """A planned file is gone or is another one now."""


@dataclass(frozen=True, slots=True)
class TakenQuery:
    """A query whose files are all stored."""

    prefix: str
    plan: BatchPlan
    contents: dict[str, Content]
    tries: int
    read_bytes: int

    def records(self, writer: ObjectWriter) -> Iterator[FileRecord]:
        """The rows of the table; only after the writer was flushed."""
        start = _start_of(self.prefix)
        # A source's log entry may be planned twice, for the batch and for the pending one; the
        # reversed order lets the first, stronger role win.
        for file in {file.path: file for file in reversed(self.plan.files)}.values():
            content = self.contents[file.path]
            location = writer.locate(content.digest)
            yield FileRecord(
                start + file.path,
                content.size,
                content.digest,
                location.object,
                location.offset,
                file.role,
                content.stamp,
            )


class _Planned:
    """The checkpoint as the planner sees it; small files that it reads need not be read again.

    What it keeps is as true as what a second read would find: it counts only for the very version
    that the listing showed. It keeps no more than a pack.
    """

    def __init__(self, source: Store) -> None:
        self._source = source
        self._kept: dict[tuple[str, str], bytes] = {}
        self._room = PACK_SIZE
        self._lock = threading.Lock()

    @property
    def parallelism(self) -> int:
        """That of the store."""
        return self._source.parallelism

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Every file below the folder `prefix`."""
        return self._source.list(prefix)

    def children(self, prefix: str = "") -> Children:
        """Names of folders, and files, directly in `prefix`."""
        return self._source.children(prefix)

    def read(self, path: str, *, limit: int = SMALL_FILE) -> bytes:
        """The whole content."""
        data, stamp = self._source.read_stamped(path, limit=limit)
        with self._lock:
            if len(data) < SMALL and len(data) <= self._room and (path, stamp) not in self._kept:
                self._kept[path, stamp] = data
                self._room -= len(data)
        return data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """These bytes of the file; fewer if it ends before."""
        return self._source.read_range(path, offset, length)

    def release(self, file: PlannedFile) -> bytes | None:
        """The content of this version, if the planner read it; it is forgotten here."""
        data = self._kept.pop((file.path, file.stamp), None)
        if data is not None:
            with self._lock:
                self._room += len(data)
        return data


class QueryTaker:
    """Takes one query of a checkpoint into the repository."""

    def __init__(
        self,
        source: Store,
        *,
        prefix: str,
        writer: ObjectWriter,
        known: Known,
        progress: Progress,
        lease: Lease,
    ) -> None:
        self._source = source
        self._planned = _Planned(source)
        self._prefix, self._start = prefix, _start_of(prefix)
        self._writer = writer
        self._known = known
        self._progress = progress
        self._lease = lease
        self._read: dict[str, Content] = {}
        self._read_bytes = 0
        self._counting = threading.Lock()

    def take(
        self, *, batch: int | None, tries: int, max_chain: int, accept_doubtful: bool
    ) -> TakenQuery:
        """Everything that the batch needs; MovingTargetError if Spark wins every time.

        IncompleteError as soon as the same batch lacks the same files again: Spark purges only what
        newer batches made superfluous, so they are lost, and no try would find them.
        """
        problem: Exception | None = None
        for number in range(1, tries + 1):
            try:
                plan = plan_batch(
                    self._planned,
                    batch=batch,
                    held=self._known.held(self._source),
                    max_chain=max_chain,
                )
                self._refuse_lost(plan)
                if not accept_doubtful:
                    self._refuse_doubtful(plan)
                contents = self._take_files(plan)
            except IncompleteError as error:
                if isinstance(problem, IncompleteError) and _is_same(problem, error):
                    raise
                problem = error
                continue
            except _VanishedError as error:
                problem = error
                continue
            return TakenQuery(self._prefix, plan, contents, number, self._read_bytes)
        raise MovingTargetError(
            f"{self._source.uri} could not be captured in {tries} tries: {_sentence(problem)} "
            "If the query runs, raise spark.sql.streaming.minBatchesToRetain, or capture more "
            "often so that less is copied each time; if it does not, the checkpoint is incomplete."
        ) from problem

    def _refuse_lost(self, plan: BatchPlan) -> None:
        """IncompleteError if the parent knows stateful operators of this query that are not there.

        Wherever the checkpoint is now, and whatever Spark has purged: it never removes a folder of
        state, and without one it would begin from nothing.
        """
        parent = self._known.query
        if parent is None or parent.id != plan.query_id:
            return
        present = {operator.id for operator in plan.operators}
        if lost := sorted({operator.id for operator in parent.operators} - present):
            raise IncompleteError([f"state/{each}" for each in lost], batch=plan.batch)

    def _refuse_doubtful(self, plan: BatchPlan) -> None:
        if plan.doubts:
            raise DoubtfulStateError(
                f"{self._source.uri} is not captured, as its state may be wrong: {plan.doubts[0]} "
                "No older snapshot is there to start from. Restore a savepoint from before the "
                "rewind into a new place and run the query there. If the logs were never edited, "
                "for example because the files were copied and have new times, accept it with "
                "--accept-doubtful."
            )

    def _take_files(self, plan: BatchPlan) -> dict[str, Content]:
        total = Amount(len(plan.files), sum(file.size for file in plan.files))
        self._progress.start(f"batch {plan.batch}", total)
        contents: dict[str, Content] = {}
        rest: list[PlannedFile] = []
        for file in plan.files:
            content = self._without_reading(file)
            if content is None:
                rest.append(file)
            else:
                contents[file.path] = content
        known = sum(content.size for content in contents.values())
        self._progress.advance(Amount(len(contents), known))
        contents |= self._read_files(rest, plan.offsets.conf)
        return contents

    def _without_reading(self, file: PlannedFile) -> Content | None:
        if file.held:
            record = self._known.records.get(file.path)
            if record is None or record.size != file.size:
                raise DamagedError(f"The parent savepoint does not hold {file.path}.")
            return Content(record.digest, record.size, "")
        read = self._read.get(file.path)
        if read is not None and read.size == file.size and read.stamp == file.stamp:
            return read
        digest = self._known.digest_of(file.path, size=file.size, stamp=file.stamp)
        return Content(digest, file.size, file.stamp) if digest else None

    def _read_files(self, files: list[PlannedFile], conf: Mapping[str, str]) -> dict[str, Content]:
        contents, is_near = self._take_first(files, conf)
        rest = [file for file in files if file.path not in contents]
        here: list[Sequence[PlannedFile]] = []
        with ThreadPoolExecutor(self._source.parallelism, "capture") as pool:
            futures = []
            for group in _groups(rest, threads=self._source.parallelism):
                if is_near and group[0].size < SMALL:
                    here.append(group)
                else:
                    futures.append(pool.submit(self._take_group, group, conf))
            try:
                for group in here:
                    contents |= self._take_group(group, conf)
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                # Also when interrupted: leaving the pool waits for all that is not cancelled.
                for future in futures:
                    future.cancel()
        # Whatever was read keeps its worth for the next try, so failures are raised last.
        failed = [f.exception() for f in futures if not f.cancelled() and f.exception()]
        for future in futures:
            if not future.cancelled() and future.exception() is None:
                contents |= future.result()
        if failed and failed[0] is not None:
            raise failed[0]
        return contents

    def _take_first(
        self, files: Sequence[PlannedFile], conf: Mapping[str, str]
    ) -> tuple[dict[str, Content], bool]:
        """Take a few small files, and tell by them how to go on: whether they are near."""
        first = [file for file in files if file.size < SMALL][:_FIRST]
        begun = time.monotonic()
        contents = self._take_group(first, conf)
        return contents, time.monotonic() - begun < NEAR * len(first)

    def _take_group(
        self, group: Sequence[PlannedFile], conf: Mapping[str, str]
    ) -> dict[str, Content]:
        self._lease.check()
        steps = Steps(self._progress)
        contents = {
            f.path: self._take_file(f, ends=has_end(f.path, conf), moved=steps.moved) for f in group
        }
        read = sum([each.size for each in contents.values() if not is_md5(each.digest)])
        with self._counting:
            self._read_bytes += read
        steps.end(Amount(len(group), sum([file.size for file in group])))
        return contents

    def _take_file(self, file: PlannedFile, *, ends: bool, moved: Moved) -> Content:
        """Store a file; one that `ends` in a way that can be told must do so."""
        try:
            content, tail = self._small(file) if file.size < SMALL else self._large(file, moved)
        except (NotFoundError, ChangedError, TooLargeError) as error:
            raise _VanishedError(f"{file.path} was purged or rewritten meanwhile") from error
        if content.size != file.size or content.stamp != file.stamp:
            raise _VanishedError(f"{file.path} was rewritten meanwhile")
        if ends:
            # Of a large one out of what was stored: the checkpoint may have moved on.
            end = self._writer.tail(content, END_BYTES) if tail is None else tail
            check_end(file.path, end)
        before = self._known.records.get(file.path)
        if before is not None and content.size < before.size:
            self._refuse_cut(file, content, before)
        self._read[file.path] = content
        return content

    def _refuse_cut(self, file: PlannedFile, content: Content, before: FileRecord) -> None:
        """DamagedError if the file is what the parent's begins with. One that is shorter and
        another was written again, as a task does that outlived its batch. So was the log of a
        source that ends with one of its lines: after going back, a batch may have fewer files."""
        if file.path.startswith("sources/") and self._writer.is_line_end(before, content.size):
            return
        if self._writer.is_beginning(content, before):
            raise truncated(file.path)

    def _small(self, file: PlannedFile) -> tuple[Content, bytes]:
        """Stored, and itself."""
        data, stamp = self._planned.release(file), file.stamp
        if data is None:
            data, stamp = self._source.read_stamped(file.path, limit=SMALL)
        digest = self._writer.add(data, called=self._start + file.path)
        return Content(digest, len(data), stamp), data

    def _large(self, file: PlannedFile, moved: Moved) -> tuple[Content, None]:
        """Stored, unread."""
        called = self._start + file.path
        return self._writer.take(self._source, file.path, called=called, moved=moved), None


def _start_of(prefix: str) -> str:
    """How the savepoint's paths of a query in this folder begin."""
    return f"{prefix}/" if prefix else ""


def _is_same(one: IncompleteError, other: IncompleteError) -> bool:
    return (one.batch, one.missing) == (other.batch, other.missing)


def _sentence(problem: Exception | None) -> str:
    return f"{problem}".rstrip(".") + "."


def _groups(files: Sequence[PlannedFile], *, threads: int) -> Iterator[Sequence[PlannedFile]]:
    """Runs of small files, and large ones by themselves, in the order of the plan."""
    small = sum(file.size < SMALL for file in files)
    longest = min(_GROUP, max(1, small // (threads * _TURNS)))
    group: list[PlannedFile] = []
    for file in files:
        if file.size < SMALL:
            group.append(file)
        if group and (file.size >= SMALL or len(group) == longest):
            yield group
            group = []
        if file.size >= SMALL:
            yield [file]
    if group:
        yield group
