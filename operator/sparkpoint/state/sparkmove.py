"""Repartitioning state of RocksDB: what Spark's own repartitioning may be given, and whether what
it made is faithful.

Spark's has holes: some operators lose their state by it without a word, others cannot be started
any more. What is known to go wrong is refused by name; what is done is audited row by row.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from sparkpoint.checkpoint.layout import DEFAULT_STORE
from sparkpoint.savepoint.manifest import OperatorInfo, QueryInfo
from sparkpoint.state.errors import (
    MisplacedStateError,
    SparkFailedError,
    UnfaithfulError,
    UnsupportedStateError,
)
from sparkpoint.state.pinned import PARTITIONS
from sparkpoint.state.querystate import store_schema
from sparkpoint.state.repartition import MovedStore
from sparkpoint.state.spark.process import require_spark, run_spark
from sparkpoint.state.spark.raw import PartCount, StoreName
from sparkpoint.state.spark.repartitioning import (
    QueryMove,
    QueryMoved,
    Repartitioned,
    Repartitioning,
)
from sparkpoint.state.spark.words import condition_in
from sparkpoint.state.tally import StoreTally, Tally

__all__ = ["ROCKSDB", "StoreKey", "compared", "refusal_by_spark", "repartition_by_spark"]
__all__ += ["require_spark_to_move", "tallies"]

ROCKSDB = "rocksdb"
StoreKey = tuple[int, str]
"""Operator and store."""

_STRICT = "spark.sql.streaming.statefulOperator.useStrictDistribution"
_ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
_JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
_JOIN = "symmetricHashJoin"
_AGGREGATION = "stateStoreSave"
_PROVEN = frozenset(
    {
        *(_AGGREGATION, "dedupe", "dedupeWithinWatermark", "sessionWindowStateStoreSaveExec"),
        *(_JOIN, "flatMapGroupsWithState", "applyInPandasWithState"),
        *("transformWithStateExec", "transformWithStateInPandasExec"),
        "transformWithStateInPySparkExec",
    }
)
_WHAT = "repartitioning state of RocksDB"
_SINCE = (4, 2)
_SEED = 42
"""The hash of a row without columns: where Spark puts the state of an aggregation without any."""


def refusal_by_spark(
    query: QueryInfo, operator: OperatorInfo, *, partitions: int, read: Callable[[str], bytes]
) -> str | None:
    """Why Spark cannot be trusted to move an operator's rows; None if it can.

    `read` gives the content of a small file of the query's checkpoint.
    """
    conf = query.conf
    if operator.name is None:
        return "it was begun by a Spark before 4.0, which records no operators"
    if operator.name not in _PROVEN:
        return f"Spark cannot repartition {operator.name}, and its try would break the checkpoint"
    if operator.name == _JOIN and conf.get(_JOIN_FORMAT, "2") not in ("2", "3"):
        return f"a join of format {conf[_JOIN_FORMAT]} cannot be started any more afterwards"
    if query.commits_version not in (1, 2):
        return f"the commit log is of version {query.commits_version}, which Spark cannot rewrite"
    if not conf.get(PARTITIONS, "").isdigit():
        return f"the offset log does not say how many partitions it has ({PARTITIONS})"
    if conf.get(_STRICT) != "true":
        return f"its keys may be placed by some of their columns only ({_STRICT} is not true)"
    if conf.get(_ENCODING, "unsaferow") != "unsaferow":
        return f"its rows are encoded as {conf[_ENCODING]} ({_ENCODING})"
    return _without_key(query, operator, partitions=partitions, read=read)


def _without_key(
    query: QueryInfo, operator: OperatorInfo, *, partitions: int, read: Callable[[str], bytes]
) -> str | None:
    if operator.name != _AGGREGATION or _SEED % partitions == 0:
        return None
    if store_schema(operator.id, "default", query.batch + 1, read).key:
        return None
    safe = ", ".join(str(n) for n in range(1, _SEED + 1) if _SEED % n == 0)
    return (
        "it is an aggregation without columns, whose state Spark would put where it does not look "
        f"for it; possible are {safe} partitions"
    )


def require_spark_to_move() -> None:
    """An error unless there is a Spark here that has a repartitioning of its own."""
    require_spark(_WHAT)
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        # A Spark that was unpacked and not installed is found out when it is asked to do it.
        return
    if tuple(int(part) for part in version.split(".")[:2]) < _SINCE:
        raise UnsupportedStateError(
            f"{_WHAT} is what Spark can do from {'.'.join(map(str, _SINCE))} on, and this is "
            f"{version}."
        )


def repartition_by_spark(
    queries: Sequence[QueryInfo], *, copy: Path, scratch: Path, partitions: int
) -> dict[str, list[MovedStore]]:
    """Let Spark repartition queries of a copy, and audit it; query -> its stores."""
    require_spark(_WHAT)
    order = Repartitioning(
        scratch=str(scratch),
        partitions=partitions,
        queries=[_move(query, copy / query.prefix) for query in queries],
    )
    module = "sparkpoint.state.spark.repartitioning"
    answer = run_spark(module, order.model_dump_json(), scratch)
    done = Repartitioned.model_validate_json(answer)
    if done.problem is not None:
        raise SparkFailedError(
            f"Spark cannot repartition this state: {condition_in(done.problem)} Nothing was "
            "published."
        )
    return {
        query.prefix: _audited(done.moved[query.prefix], query, partitions) for query in queries
    }


def _move(query: QueryInfo, root: Path) -> QueryMove:
    return QueryMove(
        prefix=query.prefix,
        checkpoint=str(root),
        batch=query.batch,
        format=query.commits_version,
        before=_pinned(query),
        stores=[
            StoreName(operator=operator.id, store=store.name)
            for operator in query.operators
            for store in operator.stores
        ],
    )


def _pinned(query: QueryInfo) -> int:
    return int(query.conf[PARTITIONS])


def _audited(moved: QueryMoved, query: QueryInfo, partitions: int) -> list[MovedStore]:
    if wrong := sum(count.misplaced for count in moved.before):
        raise MisplacedStateError(
            f"{wrong} rows of state are not in the partition that their key hashes to. Spark has "
            "placed them by a rule that is not known here, or state was moved by hand. It cannot "
            "be repartitioned."
        )
    if wrong := sum(count.misplaced for count in moved.after):
        raise UnfaithfulError(
            f"Spark has put {wrong} rows where it will not look for them. Nothing was published."
        )
    names = {operator.id: operator.name for operator in query.operators}
    return compared(
        tallies(moved.before, _pinned(query)), tallies(moved.after, partitions), names=names
    )


def compared(
    before: Mapping[StoreKey, StoreTally],
    after: Mapping[StoreKey, StoreTally],
    *,
    names: Mapping[int, str | None],
) -> list[MovedStore]:
    """Every store, before and after; UnfaithfulError if a row was lost, changed or doubled."""
    found = []
    for key in sorted({*before, *after}):
        operator, store = key
        # A store without rows is not counted by Spark.
        old = before.get(key, StoreTally(operator, store))
        new = after.get(key, StoreTally(operator, store))
        if (old.rows, old.digest) != (new.rows, new.digest):
            raise UnfaithfulError(
                f"store {store} of operator {operator} had {old.rows} rows and has {new.rows} "
                "now, or other ones. Nothing was published."
            )
        found.append(MovedStore(names[operator], old, new))
    return found


def tallies(counts: Iterable[PartCount], partitions: int) -> dict[StoreKey, StoreTally]:
    """Counts of partitions, put together; column families are stores of their own."""
    parts: dict[StoreKey, list[Tally]] = {}
    for each in counts:
        key = (each.operator, each.family if each.store == DEFAULT_STORE else each.store)
        found = parts.setdefault(key, [Tally() for _ in range(partitions)])
        found[each.partition] = Tally(each.rows, each.bytes, int(each.digest, 16))
    return {key: StoreTally(*key, tuple(found)) for key, found in parts.items()}
