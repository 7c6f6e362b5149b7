"""State of RocksDB: looked into, compared and repartitioned, by Spark's own means on a copy."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkpoint.savepoint import Savepoint
from sparkpoint.state import RepartitionRequest, repartition
from sparkpoint.state.errors import UnsupportedStateError
from tests.spark.state.looking import (
    Pairs,
    assert_same_differences,
    assert_same_rows,
    pairs_by_spark,
    views,
)
from tests.spark.state.several import Several
from tests.spark.state.workloads import GLOBAL, LIMIT, WITHIN

_LEAN = {"aggregation": "rocksdb-v2", "join": "rocksdb-changelog", "transform": "rocksdb"}
_WHOLE = {
    **dict.fromkeys(("aggregation", "dedup", "session", "join"), "rocksdb"),
    **dict.fromkeys(("chained", "pandas", "transform", WITHIN.name), "rocksdb-changelog"),
}
_MORE = {each.name: each for each in (WITHIN, GLOBAL, LIMIT)}


def by_spark(
    several: Several, savepoint: Savepoint, root: str
) -> dict[tuple[str, int, str], Pairs]:
    return {
        (query.prefix, operator, view.name): pairs_by_spark(
            several.spark, str(several.folder / root), query, view
        )
        for query, operator, view in views(several.repository, savepoint)
    }


def test_rows_and_differences_are_those_that_sparks_own_reader_sees(
    in_session: SparkSession, tmp_path: Path
) -> None:
    several = Several(in_session, tmp_path, _LEAN)
    several.run("ck", files=2)
    first = several.capture("ck", "first")
    before = by_spark(several, first, "ck")
    several.run("ck", files=4)
    second = several.capture("ck", "second")
    after = by_spark(several, second, "ck")

    assert_same_rows(in_session, several.repository, second, str(tmp_path / "ck"))
    assert_same_differences(several.repository, (first, second), before, after)


def test_queries_go_on_exactly_with_other_partitions(session: SparkSession, tmp_path: Path) -> None:
    """In a Spark process of its own, as for anybody."""
    several = Several(session, tmp_path, _LEAN)
    at = several.run("ck", files=3)
    savepoint = several.capture("ck", "first")

    result = repartition(several.repository, savepoint, RepartitionRequest(partitions=5))

    child = result.savepoint.manifest
    assert [query.batch for query in child.queries] == [
        query.batch for query in savepoint.manifest.queries
    ]
    assert {o.partitions for query in child.queries for o in query.operators} == {5}
    assert all(found.good for found in several.repository.verify([savepoint, result.savepoint]))
    several.resume(result.savepoint, "wider")
    several.assert_exact("wider", at, output=False)
    several.assert_exact("wider", several.run("wider", files=5))


@pytest.mark.soak
@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_every_operator_goes_on_exactly_with_other_partitions(
    in_session: SparkSession, tmp_path: Path, partitions: int
) -> None:
    several = Several(in_session, tmp_path, _WHOLE, more=_MORE)
    several.run("ck", files=3)
    request = RepartitionRequest(partitions=partitions)

    moved = repartition(several.repository, several.capture("ck", "first"), request)

    several.resume(moved.savepoint, "moved")
    several.assert_exact("moved", several.run("moved", files=5))
    again = several.capture("moved", "again")
    back = repartition(several.repository, again, RepartitionRequest(partitions=3))
    several.resume(back.savepoint, "back")
    several.assert_exact("back", several.run("back", files=6))


@pytest.mark.soak
def test_what_spark_would_break_is_refused_by_name_and_nothing_is_changed(
    in_session: SparkSession, tmp_path: Path
) -> None:
    several = Several(in_session, tmp_path, {GLOBAL.name: "rocksdb"}, more=_MORE)
    several.run("ck", files=2)
    savepoint = several.capture("ck", "first")

    with pytest.raises(UnsupportedStateError, match="1, 2, 3, 6, 7, 14, 21, 42 partitions"):
        repartition(several.repository, savepoint, RepartitionRequest(partitions=5))

    assert [each.manifest.name for each in several.repository.list().savepoints] == ["first"]
    moved = repartition(several.repository, savepoint, RepartitionRequest(partitions=7))
    several.resume(moved.savepoint, "moved")
    several.assert_exact("moved", several.run("moved", files=4))
