"""What Spark's own reader says of the state of a checkpoint, to compare ours with."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.manifest import QueryInfo
from sparkpoint.state.diff import Change, DiffRequest, diff_state
from sparkpoint.state.plain import plain_object
from sparkpoint.state.query import QueryRequest, query_state
from sparkpoint.state.selection import Selection
from sparkpoint.state.survey import SavepointFiles
from sparkpoint.state.views import StateView, known_views

__all__ = ["assert_same_differences", "assert_same_rows", "our_rows", "pairs_by_spark", "views"]

_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
_KEYS = ("key", "user_map_key", "expiration_timestamp_ms")
Pairs = Mapping[str, str | tuple[str, ...]]


def views(repository: Repository, savepoint: Savepoint) -> list[tuple[QueryInfo, int, StateView]]:
    """Everything that can be looked at in a savepoint."""
    records = repository.files(savepoint).files
    return [
        (query, operator.id, view)
        for query in savepoint.manifest.queries
        for operator in query.operators
        for view in known_views(
            SavepointFiles(repository.store, records, prefix=query.prefix), query, operator
        )
    ]


def rows_by_spark(
    spark: SparkSession, root: str, query: QueryInfo, view: StateView
) -> list[dict[str, Any]]:
    """The rows of a view, from the checkpoint below `root`."""
    spark.conf.set(_FORMAT, str(query.commits_version))
    reader = spark.read.format("statestore").option("batchId", query.batch)
    frame = reader.options(**view.options).load(f"{root}/{query.prefix}".rstrip("/"))
    return [row.asDict(recursive=True) for row in frame.collect()]


def our_rows(
    repository: Repository, savepoint: Savepoint, query: QueryInfo, operator: int, store: str
) -> list[dict[str, Any]]:
    """The same from `state query`."""
    selection = Selection(query=query.prefix, operator=operator, store=store)
    with query_state(repository, savepoint, QueryRequest(selection=selection)) as found:
        return list(found.rows())


def assert_same_rows(
    spark: SparkSession, repository: Repository, savepoint: Savepoint, root: str
) -> None:
    """Every row of every view is what Spark's reader says it is."""
    for query, operator, view in views(repository, savepoint):
        expected = Counter(map(_text, rows_by_spark(spark, root, query, view)))
        ours = our_rows(repository, savepoint, query, operator, view.name)
        assert Counter(map(_text, ours)) == expected, f"{query.prefix}/{operator}/{view.name}"


def pairs_by_spark(spark: SparkSession, root: str, query: QueryInfo, view: StateView) -> Pairs:
    """Key -> value of a view; a list is all values of its key."""
    found: dict[str, Any] = {}
    for row in rows_by_spark(spark, root, query, view):
        key = _text({name: row[name] for name in _KEYS if name in row})
        rest = {n: v for n, v in row.items() if n not in (*_KEYS, "partition_id")}
        if "list_element" in row:
            found[key] = (*found.get(key, ()), _text(rest))
        else:
            assert key not in found
            found[key] = _text(rest)
    return found


def assert_same_differences(
    repository: Repository,
    savepoints: tuple[Savepoint, Savepoint],
    before: Mapping[tuple[str, int, str], Pairs],
    after: Mapping[tuple[str, int, str], Pairs],
) -> None:
    """Counts and keys of `state diff` are those of what Spark's reader saw at both times."""
    taken: list[Change] = []
    stores = diff_state(repository, *savepoints, DiffRequest(), take=taken.append)
    assert {(s.query, s.operator, s.store) for s in stores} == {*before, *after}
    for store in stores:
        where = (store.query, store.operator, store.store)
        old, new = before.get(where, {}), after.get(where, {})
        totals = store.totals
        common = old.keys() & new.keys()
        assert totals.added == len(new.keys() - old.keys()), where
        assert totals.removed == len(old.keys() - new.keys()), where
        assert totals.changed == sum(old[key] != new[key] for key in common), where
        assert totals.same == sum(old[key] == new[key] for key in common), where
        ours = [
            change for change in taken if (change.query, change.operator, change.store) == where
        ]
        assert len(ours) == totals.added + totals.removed + totals.changed


def _text(row: Mapping[str, Any]) -> str:
    """Canonical; Spark's rows have times of the session's zone, which is UTC here."""
    return json.dumps(_utc(plain_object(row)), sort_keys=True)


def _utc(value: Any) -> Any:
    """Times that PySpark hands over have no zone, ours say UTC."""
    match value:
        case dict():
            return {name: _utc(each) for name, each in value.items()}
        case list():
            return [_utc(each) for each in value]
        case str():
            return value.removesuffix("Z")
        case _:
            return value
