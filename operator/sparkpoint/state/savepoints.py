"""Repartition a savepoint: a new one, child of the first, with the same state in other partitions.

The first is never changed: going back is restoring it. The work is done on a copy in a folder of
its own, which is removed whatever happens; nothing is published before the copy has been read
again and found faithful.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sparkpoint.savepoint import Progress, Repository, Savepoint
from sparkpoint.savepoint.manifest import OperatorInfo, QueryInfo
from sparkpoint.savepoint.progress import Amount, Silent
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
    UnsupportedStateError,
    WorkFolderError,
)
from sparkpoint.state.querystate import placed_stores, refusal_to_move
from sparkpoint.state.repartition import MovedStore, repartition_query
from sparkpoint.state.sparkmove import (
    ROCKSDB,
    refusal_by_spark,
    repartition_by_spark,
    require_spark_to_move,
)
from sparkpoint.state.survey import SavepointFiles, operator_of

__all__ = ["MAX_PARTITIONS", "RepartitionRequest", "check_repartition", "repartition"]

MAX_PARTITIONS = 10_000
"""Every partition costs files and some memory; more are hardly meant."""
_ROOM = 4
"""Free space per byte of the savepoint: the copy, and new files that may compress worse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepartitionRequest:
    """What to make."""

    partitions: int
    name: str | None = None
    """Of the new savepoint; `<name>-p<partitions>` if None, so that asking twice makes one."""
    work_folder: Path | None = None
    """Where the copy is made; the system's folder for temporary files if None."""


def repartition(
    repository: Repository,
    savepoint: Savepoint,
    request: RepartitionRequest,
    *,
    progress: Progress | None = None,
) -> ChildResult:
    """Make a savepoint whose queries have so many state partitions."""
    progress = progress or Silent()
    manifest = savepoint.manifest
    queries = _queries_to_change(repository, savepoint, request.partitions)
    name = request.name or child_name(manifest.name, f"-p{request.partitions}")
    check_free(repository, manifest, name)
    plan = ChildPlan(
        name=name,
        what="repartition",
        work_folder=request.work_folder,
        room=_ROOM * manifest.files.bytes,
        change=lambda copy, folder: _moved(queries, copy, folder, request.partitions, progress),
    )
    return make_child(repository, savepoint, plan, progress=progress)


def check_repartition(repository: Repository, savepoint: Savepoint, partitions: int) -> str:
    """Whether a later savepoint of the same queries can be repartitioned here: in words, or raised.

    That this one was taken in the middle of a batch says nothing about a later one.
    """
    queries = _queries_in_other_partitions(repository, savepoint, partitions)
    if any(_is_for_spark(query) for query in queries):
        require_spark_to_move()
    if not queries:
        return f"There is no state, or it is in {partitions} partitions already."
    return f"The state of {len(queries)} queries can be brought to {partitions} partitions."


def _moved(
    queries: list[QueryInfo], copy: Path, folder: Path, partitions: int, progress: Progress
) -> dict[str, list[MovedStore]]:
    """Change the copy; query -> its stores."""
    by_spark = [query for query in queries if _is_for_spark(query)]
    moved = {
        query.prefix: _moved_by_us(copy / query.prefix, partitions, progress)
        for query in queries
        if query not in by_spark
    }
    if by_spark:
        progress.start("repartitioning with Spark", Amount())
        moved |= repartition_by_spark(by_spark, copy=copy, scratch=folder, partitions=partitions)
    return moved


def _moved_by_us(root: Path, partitions: int, progress: Progress) -> list[MovedStore]:
    try:
        return repartition_query(root, partitions=partitions, progress=progress)
    except OSError as error:
        raise WorkFolderError(f"{root} could not be written: {error.strerror}.") from error


def _is_for_spark(query: QueryInfo) -> bool:
    return any(operator.provider == ROCKSDB for operator in query.operators)


def _queries_to_change(
    repository: Repository, savepoint: Savepoint, partitions: int
) -> list[QueryInfo]:
    """The same, of a savepoint that is to be repartitioned itself."""
    changing = _queries_in_other_partitions(repository, savepoint, partitions)
    name = savepoint.manifest.name
    if not changing:
        has_state = any(query.operators for query in savepoint.manifest.queries)
        how = f"has its state in {partitions} partitions already" if has_state else "has no state"
        raise NothingToDoError(f"Savepoint {name} {how}.")
    check_settled(name, changing)
    return changing


def _queries_in_other_partitions(
    repository: Repository, savepoint: Savepoint, partitions: int
) -> list[QueryInfo]:
    """The queries with state in another number of partitions; every obstacle at once."""
    manifest = savepoint.manifest
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise UnsupportedStateError(
            f"{partitions} partitions: a number from 1 to {MAX_PARTITIONS} is possible."
        )
    changing = [query for query in manifest.queries if _pinned(query) not in (None, partitions)]
    records = repository.files(savepoint).files
    problems = [
        text
        for query in changing
        for text in _problems(
            query, SavepointFiles(repository.store, records, prefix=query.prefix), partitions
        )
    ]
    if problems:
        raise UnsupportedStateError(
            f"Savepoint {manifest.name} cannot be repartitioned: {' '.join(problems)}"
        )
    return changing


def _problems(query: QueryInfo, files: SavepointFiles, partitions: int) -> Iterator[str]:
    for operator in query.operators:
        if operator.provider == ROCKSDB:
            reason = refusal_by_spark(query, operator, partitions=partitions, read=files.read)
        else:
            reason = refusal_to_move(operator_of(operator), query.conf)
            reason = reason or _unplaceable(query, operator, files)
        if reason is not None:
            yield f"operator {_called(query, operator)}: {reason}."


def _unplaceable(query: QueryInfo, operator: OperatorInfo, files: SavepointFiles) -> str | None:
    """Why it is not known where its keys belong; schemas tell, before a job is stopped for it."""
    version = query.batch + 1
    try:
        for store in placed_stores(operator_of(operator), version=version, read=files.read):
            store.placement.hasher()
    except UnsupportedStateError as error:
        return str(error).removesuffix(".")
    return None


def _called(query: QueryInfo, operator: OperatorInfo) -> str:
    where = f" of query {query.prefix}" if query.prefix else ""
    return f"{operator.id} ({operator.name or 'unnamed'}){where}"


def _pinned(query: QueryInfo) -> int | None:
    """The number that the query goes on with; None without state. Operators may have fewer."""
    if not query.operators:
        return None
    text = query.conf.get("spark.sql.shuffle.partitions", "")
    return int(text) if text.isdigit() else max(each.partitions for each in query.operators)
