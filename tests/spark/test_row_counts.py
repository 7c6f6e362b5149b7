"""Rows of state in a manifest: what Spark counts twice is not told."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.savepoint.describe import StateCount
from sparkpoint.storage import DirectoryStore
from tests.spark.places import last_count
from tests.spark.workloads.inputs import rows_of, write_files
from tests.spark.workloads.plain import incoming


def _once(frame: DataFrame, _: int) -> None:
    frame.collect()


def _twice(frame: DataFrame, _: int) -> None:
    frame.count()
    frame.collect()


def _run(
    spark: SparkSession,
    folder: Path,
    columns: list[str],
    function: Callable[[DataFrame, int], None],
) -> StateCount:
    counts = incoming(spark, folder).groupBy(*columns).count()
    query = (
        counts.writeStream.outputMode("update")
        .foreachBatch(function)
        .option("checkpointLocation", str(folder / "ck"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    count = last_count(query)
    assert count is not None
    return count


@pytest.mark.parametrize("columns", [["k"], []], ids=["by key", "of all"])
def test_only_a_batch_that_was_computed_once_tells_its_rows(
    spark: SparkSession, tmp_path: Path, columns: list[str]
) -> None:
    found = {}
    for function, times in ((_once, 1), (_twice, 2)):
        folder = tmp_path / str(times)
        write_files(folder / "in", range(2))
        count = _run(spark, folder, columns, function)
        repository = Repository.init(DirectoryStore(folder / "repository"))
        request = CaptureRequest(job="visits", name="one", counts={"": count})
        savepoint = repository.capture(DirectoryStore(folder / "ck"), request).savepoint
        (query,) = savepoint.manifest.queries
        found[times] = (count.rows, query.rows)

    rows = len({row.k for row in rows_of(range(2))}) if columns else 1
    # The second would be called damaged for ever by whoever compares it with what is there.
    assert found == {1: (rows, rows), 2: (2 * rows, None)}
