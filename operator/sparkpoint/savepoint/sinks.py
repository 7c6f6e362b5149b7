"""Sinks that remember batches: what a restore must check, and may do, so that none is skipped.

A file sink skips every batch up to the newest in its `_spark_metadata`, before running it: output
*and* state are then lost without a word. Delta and Iceberg tables do likewise by query id and
batch. A log that ends before the savepoint, as an earlier rewind cut it, never gets what is
between. Every batch leaves an entry, also one without rows: no log at all is that of another sink.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.checkpoint.logs import parse_query_id
from sparkpoint.checkpoint.names import source_log_id
from sparkpoint.checkpoint.sink import SINK_LOG, SinkLog, read_sink_log, seed_sink
from sparkpoint.savepoint.contents import Mode
from sparkpoint.savepoint.errors import SinkConflictError
from sparkpoint.savepoint.manifest import Manifest, QueryInfo
from sparkpoint.storage import Entry, Store
from sparkpoint.storage.errors import AlreadyExistsError, NotFoundError, StorageError

__all__ = [
    "SinkAction",
    "SinkPolicy",
    "apply_sink",
    "check_planned",
    "cut_log",
    "doubts",
    "plan_sinks",
]


class SinkPolicy(Enum):
    """What to do when the sink and the savepoint do not fit."""

    REFUSE = "refuse"
    TRUNCATE = "truncate"
    """Cut the file sink's log at the batch; files of later batches stay, unseen by Spark."""
    SEED = "seed"
    """Write an empty log up to the batch into a new sink, so that Spark can read it."""
    IGNORE = "ignore"
    """The caller takes care: rolled the table back, say, or wants duplicates."""


@dataclass(frozen=True, slots=True)
class SinkAction:
    """What will be done to one file sink's log; paths are relative to the sink."""

    query: str
    uri: str
    delete: tuple[str, ...] = ()
    create: tuple[tuple[str, bytes], ...] = ()


_DEDUPING = {"delta", "iceberg"}
_SKIPPING = {"file", "delta", "unknown"}
"""Sinks that may not even run a batch which they have."""


def plan_sinks(
    manifest: Manifest,
    sinks: Mapping[str, Store],
    *,
    mode: Mode,
    policy: SinkPolicy,
    origin: Store | None = None,
) -> list[SinkAction]:
    """Look at every query's sink; SinkConflictError if it would skip batches unasked.

    With the `origin` of the savepoint also if its query has gone on there, with the batch that was
    in flight.
    """
    if policy is SinkPolicy.IGNORE:
        return []
    actions = []
    for query in manifest.queries:
        _check_kind(query, mode)
        store = sinks.get(query.prefix)
        if store is not None and mode is Mode.FORK:
            _check_own(manifest, store)
        if store is None:
            continue
        action = _plan(query, store, mode=mode, policy=policy)
        if action is not None:
            if policy is not SinkPolicy.TRUNCATE and mode is Mode.RESUME and _cuts(action):
                _check_not_gone_on(query, store, origin)
            actions.append(action)
    return actions


def _check_kind(query: QueryInfo, mode: Mode) -> None:
    if mode is Mode.REWIND and query.sink is not None and query.sink.kind in _DEDUPING:
        raise SinkConflictError(
            f"The sink of query {query.prefix or query.id} is a {query.sink.kind} table, which "
            f"skips batches it has seen: its output after batch {query.batch} would be lost. "
            "Roll the table back and restore with --mode fork (in a job: restoreFrom with "
            "sink: Fork), so that it meets a query which it does not know; or, if it has "
            "forgotten these batches, say --sink-policy ignore (in a job: sink: Resume)."
        )


def _check_own(manifest: Manifest, store: Store) -> None:
    """Refuse a fork that would write where the query does which it leaves."""
    recorded = (query.sink for query in manifest.queries if query.sink is not None)
    if any(sink.kind == "file" and sink.uri == store.uri for sink in recorded):
        raise SinkConflictError(
            f"{store.uri} is where the savepoint's own query writes, and two queries cannot write "
            "to one file sink: the fork needs a new place. To let the same query go on, restore "
            "with --mode resume or rewind; if it is gone for good, say --sink-policy ignore."
        )


def _plan(query: QueryInfo, store: Store, *, mode: Mode, policy: SinkPolicy) -> SinkAction | None:
    files = {entry.path.rsplit("/", 1)[-1]: entry for entry in store.children(SINK_LOG)[1]}
    log = read_sink_log(files)
    if policy is SinkPolicy.SEED and _is_seed(query, store, log, files):
        return _plan_seed(query, store, files)
    if log.latest is None:
        raise _no_log(query, store, mode=mode)
    # The batch in flight may have reached the sink; resuming replays the very same rows.
    begun = query.batch + (1 if mode is Mode.RESUME and query.pending else 0)
    # Its state is not in the savepoint: only without state may Spark skip it.
    last = query.batch if query.operators else begun
    _check_not_behind(query, store, log, allowed=last)
    if log.latest > begun and policy is not SinkPolicy.TRUNCATE:
        raise SinkConflictError(
            f"{store.uri} has output up to batch {log.latest}, the savepoint ends at batch "
            f"{query.batch}: Spark would skip the batches between, and lose their state too. Say "
            "--sink-policy truncate (in a job: restoreFrom with sink: Rewind) to forget that "
            "output, or restore to another sink."
        )
    return cut_log(query.prefix, store.uri, files, batch=last, committed=query.batch)


def _cuts(action: SinkAction) -> bool:
    """Whether it takes output away, and not only what somebody left behind."""
    return any(not path.rsplit("/", 1)[-1].startswith(".") for path in action.delete)


def _check_not_gone_on(query: QueryInfo, store: Store, origin: Store | None) -> None:
    """Refuse to cut the batch that was in flight from under a query that runs yet."""
    if origin is None:
        return
    begun = query.batch + 1
    try:
        has_gone_on = _has_committed(origin.child(query.prefix), query.id, begun)
    except StorageError as error:
        kind = type(error) if error.retry_helps else SinkConflictError
        raise kind(
            f"{store.uri} has batch {begun}, which was in flight when the savepoint was taken. "
            f"Whether the query has committed it since cannot be seen: {error} If it runs no more, "
            "say --sink-policy truncate; else restore with --mode fork, to another sink."
        ) from error
    if has_gone_on:
        raise SinkConflictError(
            f"{store.uri} has batch {begun}, which was in flight when the savepoint was taken, and "
            f"the query has committed it since in {origin.uri}: it has gone on, and its output is "
            "not cut unasked. To try something, restore with --mode fork; to go back, stop the "
            "query and restore with --mode rewind and --sink-policy truncate. If this is a copy of "
            "its output, say --sink-policy truncate."
        )


def _has_committed(checkpoint: Store, query_id: str, batch: int) -> bool:
    """What is not there, or is of another query, goes on elsewhere, if at all."""
    try:
        checkpoint.stat(f"commits/{batch}")
        return parse_query_id(checkpoint.read("metadata")) == query_id
    except (NotFoundError, CheckpointError):
        return False


def cut_log(
    query: str, uri: str, names: Collection[str], *, batch: int, committed: int
) -> SinkAction | None:
    """What makes a log of these files end at the batch, None if it does; CannotRewindError.

    No batch after the `committed` one leaves a checksum without its entry there.
    """
    log = read_sink_log(names)
    newer = log.rewind(batch).delete if log.latest is not None and log.latest > batch else ()
    # Hadoop keeps a hidden checksum beside each entry on a local disk. Left behind, it makes Spark
    # refuse to write the entry again: "Multiple streaming queries are concurrently using". It goes
    # first, and so do those that somebody left behind: a kill in between leaves none.
    paired = [each for name in newer for each in (_checksum(name), name) if each in names]
    delete = tuple(f"{SINK_LOG}/{name}" for name in (*_orphans(names, after=committed), *paired))
    return SinkAction(query, uri, delete) if delete else None


def _checksum(name: str) -> str:
    return f".{name}.crc"


def _orphans(names: Collection[str], *, after: int) -> list[str]:
    """Checksums of entries after a batch, without the entries."""
    entries = {name[1:].removesuffix(".crc") for name in names if name.startswith(".")}
    return [
        _checksum(entry)
        for entry in sorted(entries)
        if entry not in names and _checksum(entry) in names and _number(entry) > after
    ]


def _number(entry: str) -> int:
    number = source_log_id(entry)
    return -1 if number is None else number


def _check_not_behind(query: QueryInfo, store: Store, log: SinkLog, *, allowed: int) -> None:
    """Refuse a log that lacks the savepoint's batch: nothing would ever write that one again."""
    last = max((number for number in log.entries if number <= allowed), default=None)
    if last is not None and last < query.batch:
        raise SinkConflictError(
            f"{store.uri} has output up to batch {last} only, and the savepoint goes on after "
            f"batch {query.batch}: the output between was cut off, and would be missing for good. "
            "Choose a savepoint of that batch or earlier, restore to another sink (in a job: "
            "restoreFrom with sink: Fork), or say --sink-policy ignore."
        )


def _is_seed(query: QueryInfo, store: Store, log: SinkLog, files: Mapping[str, Entry]) -> bool:
    """Whether nothing but the seed was ever written there: all of it, a part, or nothing yet."""
    seeds = seed_sink(query.batch)
    return all(
        name in seeds
        and files[name].size == len(seeds[name])
        and store.read(f"{SINK_LOG}/{name}") == seeds[name]
        for name in log.entries.values()
    )


def _plan_seed(query: QueryInfo, store: Store, names: Collection[str]) -> SinkAction | None:
    seeds = seed_sink(query.batch)
    missing = tuple((f"{SINK_LOG}/{n}", data) for n, data in seeds.items() if n not in names)
    stale = tuple(f"{SINK_LOG}/{name}" for name in _orphans(names, after=-1))
    return SinkAction(query.prefix, store.uri, stale, missing) if stale or missing else None


def _no_log(query: QueryInfo, store: Store, *, mode: Mode) -> SinkConflictError:
    if mode is Mode.FORK:
        return SinkConflictError(
            f"{store.uri} is new, but the query goes on at batch {query.batch + 1}: Spark could "
            "not read what it writes, as the log would lack its beginning. Say --sink-policy seed "
            "to put an empty beginning there, or ignore."
        )
    return SinkConflictError(
        f"{store.uri} has no {SINK_LOG}, and the savepoint goes on after batch {query.batch}: the "
        "query has written elsewhere, or its output is gone. Check the path; if the output was "
        "moved, name the place with --sink. If the query is to write to a new place from here on, "
        "say --sink-policy seed; to go on without a look at the sink, ignore (in a job: "
        "restoreFrom with sink: Resume)."
    )


def doubts(manifest: Manifest, looked_at: Collection[str], *, mode: Mode) -> list[str]:
    """What to tell who resumes: batches in flight that a sink may skip, and so their state.

    Iceberg lets a batch run that it has, and drops its output alone: that was there already.
    """
    return [
        f"Batch {query.batch + 1} of query {query.prefix or query.id} was in flight, and its sink "
        f"({_kind(query)}) was not looked at. If it has that batch already, Spark skips it, and "
        "its state will be missing. Name a file sink with --sink; of a table, roll that batch back "
        "and restore with --mode fork (in a job: restoreFrom with sink: Fork)."
        for query in manifest.queries
        if mode is Mode.RESUME and query.pending and query.operators
        if _kind(query) in _SKIPPING and query.prefix not in looked_at
    ]


def _kind(query: QueryInfo) -> str:
    return "unknown" if query.sink is None else query.sink.kind


def check_planned(planned: list[SinkAction], now: list[SinkAction]) -> None:
    """SinkConflictError if a sink is no longer what it was when it was planned for."""
    for action in (*planned, *now):
        if (action in planned) != (action in now):
            raise SinkConflictError(
                f"{action.uri} was written to since this restore began: a query runs there, or "
                "another restore. Nothing is cut that was not planned. Stop it, and restore again."
            )


def apply_sink(action: SinkAction, store: Store) -> None:
    """Do it; doing it again does nothing more."""
    for path in action.delete:
        store.delete(path)
    for path, data in action.create:
        try:
            store.create(path, data)
        except AlreadyExistsError:
            continue
