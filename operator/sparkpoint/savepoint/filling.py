"""Copying pieces into a target, in parallel; small ones are cut out of their packs in runs.

All of them are drafts: until the note in the target says "complete", nothing in it counts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial

from sparkpoint.savepoint.contents import Piece
from sparkpoint.savepoint.errors import DamagedError
from sparkpoint.savepoint.names import object_path
from sparkpoint.savepoint.progress import Amount, Progress, Steps
from sparkpoint.savepoint.table import FileRecord
from sparkpoint.storage import Store
from sparkpoint.storage.digest import digest_of
from sparkpoint.storage.errors import ChangedError, NotFoundError

__all__ = ["fill", "run_all"]

_SPAN = 4 * 1024 * 1024
"""How much of a pack is read at once."""
_GAP = 64 * 1024
"""Bytes between two wanted files that are read for nothing rather than asked around."""


@dataclass(frozen=True, slots=True)
class _Span:
    object: str
    start: int
    end: int
    pieces: tuple[tuple[Piece, FileRecord], ...]


def fill(
    target: Store,
    repository: Store,
    pieces: Iterable[Piece],
    progress: Progress,
    *,
    before: Callable[[], None],
    verify: bool = False,
) -> None:
    """Write every piece to the target; DamagedError if stored content is not what it should be.

    With `verify`, also what an S3 server copies by itself is read first. `before` is called before
    every file or run of small files, and may end it all by raising.
    """
    whole: list[Piece] = []
    packed: list[tuple[Piece, FileRecord]] = []
    made: list[Piece] = []
    for piece in pieces:
        if piece.record is None:
            made.append(piece)
        elif piece.record.object == piece.digest:
            whole.append(piece)
        else:
            packed.append((piece, piece.record))
    largest_first = sorted(whole, key=lambda piece: -piece.size)
    tasks = [
        *(
            partial(_copy, target, repository, piece, progress, verify=verify)
            for piece in largest_first
        ),
        *(partial(_unpack, target, repository, span, progress) for span in _spans(packed)),
        *(partial(_write, target, piece, progress) for piece in made),
    ]
    threads = max(target.parallelism, repository.parallelism)
    run_all(tasks, threads=threads, name="restore", before=before)


def run_all(
    tasks: Sequence[Callable[[], None]],
    *,
    threads: int,
    name: str,
    before: Callable[[], None] | None = None,
) -> None:
    """Run them in parallel; the first failure stops those that have not begun."""

    def run(task: Callable[[], None]) -> None:
        if before is not None:
            before()
        task()

    with ThreadPoolExecutor(threads, name) as pool:
        futures: list[Future[None]] = [pool.submit(run, task) for task in tasks]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            # Also when interrupted: leaving the pool waits for everything that is not cancelled.
            for future in futures:
                future.cancel()
    for future in futures:
        if not future.cancelled():
            future.result()


def _copy(
    target: Store, repository: Store, piece: Piece, progress: Progress, *, verify: bool
) -> None:
    path, steps = object_path(piece.digest), Steps(progress)
    try:
        target.copy(
            piece.path,
            repository,
            path,
            digest=piece.digest,
            size=piece.size,
            draft=True,
            verify=verify,
            moved=steps.moved,
        )
    except ChangedError as error:
        raise DamagedError(f"{error} Restore the object from a copy of the repository.") from error
    except NotFoundError as error:
        raise _missing(repository, path, piece) from error
    steps.end(Amount(1, piece.size))


def _write(target: Store, piece: Piece, progress: Progress) -> None:
    target.put(piece.path, [piece.data or b""], draft=True)
    progress.advance(Amount(1, piece.size))


def _unpack(target: Store, repository: Store, span: _Span, progress: Progress) -> None:
    path = object_path(span.object)
    try:
        data = memoryview(repository.read_range(path, span.start, span.end - span.start))
    except NotFoundError as error:
        raise _missing(repository, path, span.pieces[0][0]) from error
    for piece, record in span.pieces:
        content = data[record.offset - span.start :][: record.size]
        if digest_of(content) != piece.digest:
            raise DamagedError(
                f"{repository.uri}/{path} is damaged: {piece.path} in it has another digest. "
                "Restore the object from a copy of the repository."
            )
        target.put(piece.path, [bytes(content)], draft=True)
    size = sum(piece.size for piece, _ in span.pieces)
    progress.advance(Amount(len(span.pieces), size))


def _spans(packed: list[tuple[Piece, FileRecord]]) -> Iterator[_Span]:
    """Neighbouring files of a pack together."""
    group: list[tuple[Piece, FileRecord]] = []
    for piece, record in sorted(packed, key=lambda pair: (pair[1].object, pair[1].offset)):
        if group and not _near(group, record):
            yield _span(group)
            group = []
        group.append((piece, record))
    if group:
        yield _span(group)


def _near(group: list[tuple[Piece, FileRecord]], record: FileRecord) -> bool:
    first, last = group[0][1], group[-1][1]
    end = record.offset + record.size
    return (
        record.object == first.object
        and record.offset - (last.offset + last.size) <= _GAP
        and end - first.offset <= _SPAN
    )


def _span(group: list[tuple[Piece, FileRecord]]) -> _Span:
    records = [record for _, record in group]
    end = max(record.offset + record.size for record in records)
    return _Span(records[0].object, records[0].offset, end, tuple(group))


def _missing(repository: Store, path: str, piece: Piece) -> DamagedError:
    return DamagedError(
        f"{repository.uri}/{path} is missing, which holds {piece.path}. Restore the object from a "
        "copy of the repository, or use another savepoint."
    )
