"""Migrate a savepoint from the HDFS-backed provider to RocksDB: a new one, child of the first.

Spark pins the provider of a query when it first starts, and has no way from one to the other. Here
the rows are read without Spark and written, byte for byte, by the writer that Spark's own
repartitioning uses; then they are read again by Spark and must be the same. The first savepoint is
never changed: going back is restoring it.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparkpoint.checkpoint.names import ROCKSDB_PROVIDER
from sparkpoint.checkpoint.plan import plan_batch
from sparkpoint.savepoint import Manifest, Progress, Repository, Savepoint
from sparkpoint.savepoint.manifest import QueryInfo
from sparkpoint.savepoint.progress import Amount, Silent
from sparkpoint.state.arrow import arrow_library, no_rows, write_parquet
from sparkpoint.state.children import (
    ChildPlan,
    ChildResult,
    check_free,
    check_settled,
    child_name,
    make_child,
)
from sparkpoint.state.errors import (
    NothingToDoError,
    SparkFailedError,
    UnfaithfulError,
    UnsupportedStateError,
)
from sparkpoint.state.pinned import prefix_columns, with_conf
from sparkpoint.state.querystate import PlacedStore, placed_stores, refusal_to_move
from sparkpoint.state.records import Record, read_store
from sparkpoint.state.repartition import MovedStore
from sparkpoint.state.spark.migrating import Migrated, Migrating, QueryRows, StoreRows
from sparkpoint.state.spark.process import require_spark, run_spark
from sparkpoint.state.spark.raw import StoreName
from sparkpoint.state.spark.words import condition_in
from sparkpoint.state.sparkcopy import spark_room
from sparkpoint.state.sparkmove import compared, tallies
from sparkpoint.state.survey import operator_of
from sparkpoint.state.tally import StoreTally, Tally
from sparkpoint.storage import DirectoryStore

__all__ = ["MigrateRequest", "migrate"]

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_TOGETHER = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateRequest:
    """What to make."""

    name: str | None = None
    """Of the new savepoint; `<name>-rocksdb` if None."""
    work_folder: Path | None = None


def migrate(
    repository: Repository,
    savepoint: Savepoint,
    request: MigrateRequest,
    *,
    progress: Progress | None = None,
) -> ChildResult:
    """Make a savepoint whose state is kept by RocksDB."""
    progress = progress or Silent()
    manifest = savepoint.manifest
    queries = _queries_to_change(manifest)
    name = request.name or child_name(manifest.name, "-rocksdb")
    check_free(repository, manifest, name)
    require_spark("migrating to RocksDB")
    arrow_library("migrating to RocksDB")

    def change(copy: Path, folder: Path) -> dict[str, list[MovedStore]]:
        progress.start("writing to RocksDB with Spark", Amount())
        return _migrated(queries, copy, folder)

    plan = ChildPlan(
        name=name,
        what="migrate",
        work_folder=request.work_folder,
        room=2 * spark_room(manifest),
        change=change,
    )
    return make_child(repository, savepoint, plan, progress=progress)


def _queries_to_change(manifest: Manifest) -> list[QueryInfo]:
    """The queries with state of the other provider; every obstacle at once."""
    changing = [q for q in manifest.queries if any(o.provider == "hdfs" for o in q.operators)]
    if not changing:
        raise NothingToDoError(
            f"Savepoint {manifest.name} has no state of the HDFS-backed provider."
        )
    problems = [text for query in changing for text in _problems(query)]
    if problems:
        raise UnsupportedStateError(
            f"Savepoint {manifest.name} cannot be migrated: {' '.join(problems)}"
        )
    check_settled(manifest.name, changing)
    return changing


def _problems(query: QueryInfo) -> Iterator[str]:
    for operator in query.operators:
        reason = refusal_to_move(operator_of(operator), query.conf)
        if reason is None and operator.name is None:
            reason = "it was begun by a Spark before 4.0, which records no operators"
        if reason is None and operator.name == "globalLimit":
            reason = "Spark's reader does not know the state of `limit`, so it cannot be audited"
        if reason is not None:
            yield f"operator {operator.id} ({operator.name or 'unnamed'}): {reason}."


def _migrated(
    queries: Sequence[QueryInfo], copy: Path, scratch: Path
) -> dict[str, list[MovedStore]]:
    """Change the copy, in one start of Spark; query -> its stores."""
    before: dict[str, list[StoreTally]] = {}
    rows = []
    for number, query in enumerate(queries):
        (scratch / f"rows-{number}").mkdir()
        found = _taken_out(copy / query.prefix, query.prefix, scratch / f"rows-{number}")
        before[query.prefix], taken = found
        rows.append(taken)
    order = Migrating(scratch=str(scratch), queries=rows).model_dump_json()
    answer = run_spark("sparkpoint.state.spark.migrating", order, scratch)
    done = Migrated.model_validate_json(answer)
    if done.problem is not None:
        raise SparkFailedError(
            f"Spark cannot write this state: {condition_in(done.problem)} Nothing was published."
        )
    if any(count.misplaced for counts in done.counts.values() for count in counts):
        raise UnfaithfulError("rows are not where Spark looks for them. Nothing was published.")
    return {
        query.prefix: compared(
            {(tally.operator, tally.store): tally for tally in before[query.prefix]},
            tallies(done.counts[query.prefix], taken.partitions),
            names={operator.id: operator.name for operator in query.operators},
        )
        for query, taken in zip(queries, rows, strict=True)
    }


def _taken_out(root: Path, prefix: str, scratch: Path) -> tuple[list[StoreTally], QueryRows]:
    """Put the rows of a query into files, and let its copy say that RocksDB keeps them."""
    copy = DirectoryStore(root)
    plan = plan_batch(copy)
    stores = [
        store
        for operator in plan.operators
        for store in placed_stores(operator, version=plan.batch + 1, read=copy.read)
    ]
    before, rows = [], []
    for store in stores:
        tally, files = _written(copy, store, scratch)
        before.append(tally)
        metadata = f"state/{store.operator.id}/_metadata/metadata"
        prefix_key = prefix_columns(copy.read(metadata), metadata, store=store.name)
        name = StoreName(operator=store.operator.id, store=store.name)
        rows.append(StoreRows(name=name, prefix_columns=prefix_key, files=files))
    _forget_old_state(root, stores)
    for path in sorted((root / "offsets").iterdir()):
        changed = with_conf(path.read_bytes(), f"offsets/{path.name}", _PROVIDER, ROCKSDB_PROVIDER)
        path.write_bytes(changed)
    return before, QueryRows(
        prefix=prefix,
        checkpoint=str(root),
        batch=plan.batch,
        partitions=max(len(tally.partitions) for tally in before),
        stores=rows,
    )


def _written(
    copy: DirectoryStore, store: PlacedStore, scratch: Path
) -> tuple[StoreTally, list[str]]:
    """The rows of a store in a file for each partition, and what they are."""
    arrow = arrow_library("migrating to RocksDB")
    schema = arrow.schema([("key_bytes", arrow.binary()), ("value_bytes", arrow.binary())])
    found, files = [], []
    for number, part in enumerate(store.partitions):
        target = scratch / f"{store.operator.id}-{store.name}-{number}.parquet"
        tally = Tally()
        batches = (
            arrow.record_batch([list(column) for column in each], schema=schema)
            for each in _batches(tally.through(read_store(copy, part)))
        )
        write_parquet(itertools.chain([no_rows(schema)], batches), target)
        found.append(tally)
        files.append(str(target))
    return StoreTally(store.operator.id, store.name, tuple(found)), files


def _batches(records: Iterator[Record]) -> Iterator[tuple[tuple[bytes, ...], tuple[bytes, ...]]]:
    while several := list(itertools.islice(records, _TOGETHER)):
        keys, values = zip(*several, strict=True)
        yield keys, values


def _forget_old_state(root: Path, stores: list[PlacedStore]) -> None:
    for part in (part for store in stores for part in store.partitions):
        for pattern in ("[0-9]*.snapshot", "[0-9]*.delta", ".[0-9]*.crc"):
            for path in (root / part.folder).glob(pattern):
                path.unlink()
    for path in (root / "offsets").glob(".*.crc"):
        path.unlink()
