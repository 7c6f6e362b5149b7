"""The minimal complete file set of one committed batch, for every layout that Spark writes.

The core, `plan_files`, is pure: a listing and a way to read small files go in, the plan comes out.
Verifying a savepoint runs the same code over the manifest's files. Nothing is copied here.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from operator import itemgetter

from sparkpoint.checkpoint.errors import IncompleteError, NotACheckpointError, NothingCommittedError
from sparkpoint.checkpoint.layout import OperatorFiles, group_state, stateful_operators
from sparkpoint.checkpoint.logs import parse_commit, parse_offsets, parse_query_id
from sparkpoint.checkpoint.model import (
    BatchPlan,
    CommitEntry,
    OffsetEntry,
    PlannedFile,
    Role,
)
from sparkpoint.checkpoint.names import batch_number, is_visible
from sparkpoint.checkpoint.operatorplan import PlannedOperator, plan_operator
from sparkpoint.checkpoint.reader import BatchReader, CheckpointStore, Reader, StoreReader
from sparkpoint.checkpoint.sources import source_files
from sparkpoint.storage.interface import Entry

__all__ = [
    "DEFAULT_MAX_CHAIN",
    "batch_numbers",
    "list_checkpoint",
    "missing_files",
    "plan_batch",
    "plan_files",
]

DEFAULT_MAX_CHAIN = 50
"""Changes replayed on a restore before a newer snapshot is worth its bytes."""


def plan_batch(
    store: CheckpointStore,
    *,
    batch: int | None = None,
    held: Mapping[str, int] | None = None,
    max_chain: int = DEFAULT_MAX_CHAIN,
) -> BatchPlan:
    """Plan a batch of the query at the store's root; by default the last committed one.

    `held` are the sizes of the files that a parent savepoint of the same lineage stores: its base
    snapshots are used again while every change since is still to be had.
    """
    files = list_checkpoint(store)
    return plan_files(files, StoreReader(store), batch=batch, held=held, max_chain=max_chain)


def list_checkpoint(store: CheckpointStore) -> dict[str, Entry]:
    """Everything below a query's root that a plan may name, by path."""
    # The order is the point. What the commits say is durable before they exist, so whatever is
    # listed after them includes all that the newest of them needs, unless it is purged.
    listed: list[Entry] = [*store.children("commits")[1]]
    listed += store.children("offsets")[1]
    listed += store.children("")[1]
    for folder in ("state", "sources"):
        listed += store.list(folder)
    return {entry.path: entry for entry in listed if is_visible(entry.path)}


def plan_files(
    files: Mapping[str, Entry],
    reader: Reader,
    *,
    batch: int | None = None,
    held: Mapping[str, int] | None = None,
    max_chain: int = DEFAULT_MAX_CHAIN,
    as_stored: bool = False,
) -> BatchPlan:
    """Plan a batch out of a listing; IncompleteError names every file found missing.

    `as_stored`: the files are those of a savepoint. What a restore repairs is then no fault.
    """
    number = _choose(files, batch)
    reading = BatchReader(reader, batch=number)
    query_id = parse_query_id(reading.read("metadata"))
    offsets = parse_offsets(reading.read(f"offsets/{number}"), number)
    commit = parse_commit(reading.read(f"commits/{number}"), number)
    pending = _pending(files, reading, number)
    sources = source_files(files, offsets, pending)
    operators = [
        plan_operator(
            operator,
            offsets,
            commit,
            reading,
            max_chain=max_chain,
            listed=files,
            as_stored=as_stored,
        )
        for operator in _operators(files, held or {}, commit)
    ]
    logs, missing = _log_files(files, number, stateful=bool(operators), pending=pending)
    missing += [*sources.missing, *(path for op in operators for path in op.missing)]
    missing += [path for path in held or {} if _is_permanent(path) and path not in files]
    if missing:
        raise IncompleteError(missing, batch=number)
    return BatchPlan(
        query_id=query_id,
        batch=number,
        offsets=offsets,
        commit=commit,
        operators=tuple(op.operator for op in operators),
        files=(
            *logs,
            *_state_files(operators),
            *_planned(files, sources.needed, Role.SOURCE),
            *_planned(files, sources.pending, Role.PENDING),
            *(file for op in operators for file in op.files),
            *_planned(files, ["metadata"], Role.METADATA),
        ),
        warnings=(
            *sources.warnings,
            *(warning for op in operators for warning in op.warnings),
            *([] if operators else _lost_state(files, reading, offsets, commit, pending)),
        ),
        doubts=tuple(doubt for op in operators for doubt in op.doubts),
        rewrites=sources.rewrites,
    )


def missing_files(files: Mapping[str, Entry], reader: Reader, *, batch: int) -> tuple[str, ...]:
    """The files that batch `batch` needs and `files` lacks; empty if it is complete."""
    try:
        plan_files(files, reader, batch=batch)
    except IncompleteError as error:
        return error.missing
    except NothingCommittedError:
        return (f"commits/{batch}",)
    return ()


def batch_numbers(files: Iterable[str], folder: str) -> list[int]:
    """The batches that a log, `commits` or `offsets`, holds, in order."""
    prefix = f"{folder}/"
    names = (path[len(prefix) :] for path in files if path.startswith(prefix))
    return sorted(number for name in names if (number := batch_number(name)) is not None)


def _choose(files: Mapping[str, Entry], batch: int | None) -> int:
    commits = batch_numbers(files, "commits")
    if not commits:
        if "metadata" not in files and not batch_numbers(files, "offsets"):
            raise NotACheckpointError(
                "neither metadata nor offsets/ here: this is not the checkpoint of a query. "
                "Give the folder that contains them."
            )
        raise NothingCommittedError(
            "the query has not committed a batch yet, so there is no state to take. "
            "Let it finish its first batch."
        )
    if batch is not None and batch not in commits:
        raise NothingCommittedError(
            f"batch {batch} is not committed; the commit log holds {commits[0]} to {commits[-1]}."
        )
    return commits[-1] if batch is None else batch


def _operators(
    files: Mapping[str, Entry], held: Mapping[str, int], commit: CommitEntry
) -> list[OperatorFiles]:
    """The stateful operators, in order.

    One that only the commit or the parent savepoint names has lost its folder. Spark numbers them
    from 0 without gaps, so one before the last may not be missing either.
    """
    grouped = group_state(files.values(), held)
    for number in (*commit.state_ids, *stateful_operators(held)):
        grouped.setdefault(number, OperatorFiles(number))
    for expected, number in enumerate(sorted(grouped)):
        if expected != number:
            raise IncompleteError([f"state/{expected}"], batch=commit.batch)
    return [grouped[number] for number in sorted(grouped)]


def _is_permanent(path: str) -> bool:
    """Operator metadata of version 1 and its schemas: written once, never purged.

    Without them the operator would look like one of Spark 3.5, its stores told by the folders that
    are left.
    """
    return path.startswith("state/") and path.endswith(("/_metadata/metadata", "/_metadata/schema"))


def _lost_state(
    files: Mapping[str, Entry],
    reader: BatchReader,
    offsets: OffsetEntry,
    commit: CommitEntry,
    pending: OffsetEntry | None,
) -> list[str]:
    """A warning if a query without state has traces of some in its logs.

    Spark runs a batch without new input only to let state time out. A watermark only serves to
    forget state, but a query may have one and none to forget. Logs of format 1 have no other
    traces, so their absence proves nothing. Format 2 tells by the commit itself, and real-time
    mode, which ends batches by the clock, writes no format 1.
    """
    if commit.version != 1:
        return []
    trace = _idle_batch(files, reader, offsets, pending) or _watermark(offsets, commit)
    if trace is None:
        return []
    return [
        f"{trace} Restoring this would then start from empty state; look for an older savepoint or "
        "a copy."
    ]


def _watermark(offsets: OffsetEntry, commit: CommitEntry) -> str | None:
    if max(offsets.watermark_ms, commit.next_watermark_ms) <= 0:
        return None
    return (
        f"batch {offsets.batch} has a watermark, but there is no state/: if the query has an "
        "aggregation, join or deduplication, its state is lost; a watermark alone needs none."
    )


def _idle_batch(
    files: Mapping[str, Entry],
    reader: BatchReader,
    offsets: OffsetEntry,
    pending: OffsetEntry | None,
) -> str | None:
    earlier = max((n for n in batch_numbers(files, "offsets") if n < offsets.batch), default=None)
    known = [offsets] if pending is None else [offsets, pending]
    if earlier is not None:
        known.insert(0, parse_offsets(reader.read(f"offsets/{earlier}"), earlier))
    for before, after in pairwise(known):
        read = any(offset is not None for _, offset in after.sources)
        if read and before.sources == after.sources:
            return (
                f"batch {after.batch} has no new input, which only happens in queries with state, "
                "but there is no state/: it seems to be lost."
            )
    return None


def _pending(files: Mapping[str, Entry], reader: BatchReader, batch: int) -> OffsetEntry | None:
    """The next batch, if it was begun and is not committed."""
    following = batch + 1
    if f"offsets/{following}" not in files or f"commits/{following}" in files:
        return None
    return parse_offsets(reader.read(f"offsets/{following}"), following)


def _log_files(
    files: Mapping[str, Entry], batch: int, *, stateful: bool, pending: OffsetEntry | None
) -> tuple[list[PlannedFile], list[str]]:
    earlier = [number for number in batch_numbers(files, "offsets") if number < batch]
    # Asynchronous progress tracking leaves gaps, and only queries without state may use it.
    previous = batch - 1 if stateful or not earlier else earlier[-1]
    wanted = [(f"offsets/{batch}", Role.OFFSETS), (f"commits/{batch}", Role.COMMITS)]
    if previous >= 0:
        before = [(f"offsets/{previous}", Role.OFFSETS)]
        if f"commits/{previous}" in files:
            before.append((f"commits/{previous}", Role.COMMITS))
        wanted = [*before, *wanted]
    if pending is not None:
        wanted.append((f"offsets/{pending.batch}", Role.PENDING))
    missing = [path for path, _ in (*wanted, ("metadata", Role.METADATA)) if path not in files]
    planned = [_file(files[path], role) for path, role in wanted if path in files]
    return planned, missing


def _state_files(operators: Iterable[PlannedOperator]) -> list[PlannedFile]:
    """All state files, oldest version first: the order in which maintenance purges them."""
    aged = [aged for operator in operators for aged in operator.state]
    # Twice, as sorting keeps the order of equals: half the time of making pairs to compare.
    aged.sort(key=lambda pair: pair[1].path)
    aged.sort(key=itemgetter(0))
    return [file for _, file in aged]


def _planned(files: Mapping[str, Entry], paths: Iterable[str], role: Role) -> list[PlannedFile]:
    return [_file(files[path], role) for path in paths]


def _file(entry: Entry, role: Role) -> PlannedFile:
    return PlannedFile(entry.path, entry.size, entry.stamp, role)
