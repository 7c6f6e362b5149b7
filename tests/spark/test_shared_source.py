"""A query that reads one source twice: Spark keeps two offsets and one log."""

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository
from sparkpoint.storage import DirectoryStore
from tests.spark.workloads.inputs import rows_of, write_files
from tests.spark.workloads.plain import incoming, write_out


def _run(spark: SparkSession, folder: Path, checkpoint: Path) -> None:
    frame = incoming(spark, folder).select("k", "v")
    write_out(frame.unionByName(frame.selectExpr("k", "-v AS v")), folder, checkpoint)


def test_a_query_that_reads_one_source_twice_goes_on_exactly_elsewhere(
    spark: SparkSession, tmp_path: Path
) -> None:
    first, second = tmp_path / "ck", tmp_path / "restored"
    write_files(tmp_path / "in", range(3))
    _run(spark, tmp_path, first)
    assert [path.name for path in (first / "sources").iterdir()] == ["0"]
    assert len((first / "offsets" / "2").read_text().splitlines()) == 4

    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    request = CaptureRequest(job="shared", name="shared")
    savepoint = repository.capture(DirectoryStore(first), request).savepoint
    [query] = savepoint.manifest.queries
    assert any("reads 2 times" in warning for warning in query.warnings)
    resume = MaterializeRequest(mode=Mode.RESUME)
    repository.materialize(savepoint, DirectoryStore(second), resume)
    first.rename(tmp_path / "gone")
    write_files(tmp_path / "in", range(3, 6))
    _run(spark, tmp_path, second)

    found = Counter((row.k, row.v) for row in spark.read.json(str(tmp_path / "out")).collect())
    rows = rows_of(range(6))
    assert found == Counter([(r.k, r.v) for r in rows] + [(r.k, -r.v) for r in rows])
