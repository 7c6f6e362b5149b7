"""The log of a file source through one restore after the other.

From a single compacted entry Spark derives how often it compacts, and the entry that a restore
begins with is one: two restores in a row made it look for an entry that never was.
"""

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository
from sparkpoint.storage import DirectoryStore
from tests.spark.workloads.inputs import rows_of, write_files
from tests.spark.workloads.plain import incoming, write_out

_ENDS = (4, 10, 17)
"""How many files there are at the end of each run; with an interval of 2, each but the first ends
after entries that a log which knows one compacted entry would have compacted otherwise."""


def test_the_log_of_a_file_source_survives_restores_of_restores(
    spark: SparkSession, tmp_path: Path
) -> None:
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    spark.conf.set("spark.sql.streaming.fileSource.log.compactInterval", "2")
    checkpoint, done = tmp_path / "epoch-0", 0
    for epoch, end in enumerate(_ENDS, start=1):
        write_files(tmp_path / "in", range(done, end))
        write_out(incoming(spark, tmp_path), tmp_path, checkpoint)
        request = CaptureRequest(job="log", name=f"log-{epoch}")
        savepoint = repository.capture(DirectoryStore(checkpoint), request).savepoint
        checkpoint, done = tmp_path / f"epoch-{epoch}", end
        resume = MaterializeRequest(mode=Mode.RESUME)
        repository.materialize(savepoint, DirectoryStore(checkpoint), resume)
    spark.conf.unset("spark.sql.streaming.fileSource.log.compactInterval")

    found = Counter((row.k, row.v) for row in spark.read.json(str(tmp_path / "out")).collect())
    assert found == Counter((row.k, row.v) for row in rows_of(range(done)))
