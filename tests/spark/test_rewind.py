"""Going back to an older batch: what people do by hand is wrong without a word; ours is exact."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.streaming.query import StreamingQuery

from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository, SinkPolicy
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.errors import SinkConflictError
from sparkpoint.storage import DirectoryStore
from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import assert_output, assert_state, finish, position
from tests.spark.workloads.providers import PROVIDERS

_MIN_DELTAS = "spark.sql.streaming.stateStore.minDeltasForSnapshot"
_ROWS = 10
_BUG = 1000
"""What the buggy version of the job multiplies by."""


class Sums:
    """A running sum over numbered rows, as from Kafka: the offsets are in the checkpoint alone."""

    def __init__(self, spark: SparkSession, checkpoint: Path, provider: str) -> None:
        self.spark, self.checkpoint = spark.newSession(), checkpoint
        self.spark.conf.set("spark.sql.shuffle.partitions", "1")
        for key, value in PROVIDERS[provider].items():
            self.spark.conf.set(key, value)

    def start(self, *, factor: int, once: bool) -> StreamingQuery:
        # Short runs write no snapshots of their own, as with Spark's defaults: only the buggy
        # long run does. A new snapshot would now and then overwrite the old one by chance.
        self.spark.conf.set(_MIN_DELTAS, "100" if once else "3")
        rows = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", _ROWS)
        total = rows.load().groupBy().agg(F.sum(F.col("value") * factor).alias("total"))
        writer = total.writeStream.format("noop").outputMode("update")
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        writer = (
            writer.trigger(availableNow=True)
            if once
            else writer.trigger(processingTime="0 seconds")
        )
        return writer.start()

    def run_batches(self, until: int, *, factor: int) -> None:
        """One run per batch, as after a restart: each loads its state from the files."""
        while self.last_batch() < until:
            assert self.start(factor=factor, once=True).awaitTermination(400)

    def run_until_snapshot(self, *, above: int, factor: int) -> int:
        """Run in one go until maintenance wrote a full snapshot of a newer state; its version."""
        query = self.start(factor=factor, once=False)
        try:
            deadline = time.monotonic() + 90
            while (newest := self._newest_snapshot()) <= above:
                assert query.exception() is None
                assert time.monotonic() < deadline, f"no snapshot above {above} within 90 s"
                time.sleep(0.05)
        finally:
            query.stop()
        return newest

    def _newest_snapshot(self) -> int:
        folder = self.checkpoint / "state" / "0" / "0"
        found = [p for p in folder.glob("*") if p.suffix in (".snapshot", ".zip")]
        return max((int(p.stem) for p in found if p.stem.isdigit()), default=0)

    def last_batch(self) -> int:
        found = (self.checkpoint / "commits").glob("[0-9]*")
        return max((int(p.name) for p in found), default=-1)

    def total(self) -> int:
        rows = self.spark.read.format("statestore").load(str(self.checkpoint)).collect()
        (row,) = rows
        total: int = row["value"][0]
        return total

    def truth(self) -> int:
        """The sum of all rows read, each once, by correct code."""
        rows = _ROWS * (self.last_batch() + 1)
        return rows * (rows - 1) // 2


def _rewind_as_people_do(checkpoint: Path, batch: int) -> None:
    """Delete newer offsets and commits: the advice of many answers, and of Spark's own error."""
    for log in ("offsets", "commits"):
        for path in (checkpoint / log).iterdir():
            name = path.name.removeprefix(".").removesuffix(".crc")
            if name.isdigit() and int(name) > batch:
                path.unlink()


@pytest.mark.parametrize("provider", ["hdfs", "rocksdb-changelog"])
def test_rewinding_by_hand_keeps_the_bug_in_the_sums_and_a_restored_savepoint_does_not(
    spark: SparkSession, tmp_path: Path, provider: str
) -> None:
    job = Sums(spark, tmp_path / "ck", provider)
    job.run_batches(1, factor=1)
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    source = DirectoryStore(job.checkpoint)
    good = repository.capture(source, CaptureRequest(job="sums", name="before")).savepoint
    version = job.run_until_snapshot(above=3, factor=_BUG)

    restored = Sums(spark, tmp_path / "restored", provider)
    request = MaterializeRequest(mode=Mode.REWIND)
    repository.materialize(good, DirectoryStore(restored.checkpoint), request)
    _rewind_as_people_do(job.checkpoint, 1)
    for each in (job, restored):
        each.run_batches(version + 1, factor=1)

    assert job.total() != job.truth(), "plain Spark no longer gets this wrong: tell people"
    assert restored.total() == restored.truth()


class FileSinkJob:
    """A workload that writes to Spark's file sink, which remembers batch numbers."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.workload = spark, folder, WORKLOADS["dedup"]
        self.sink, self.inputs = folder / "out", folder / "in"

    def run(self, checkpoint: Path, files: int) -> None:
        write_files(self.inputs, range(files))
        query = self.workload.start(
            self.spark,
            provider="hdfs",
            inputs=self.inputs,
            checkpoint=str(checkpoint),
            sink=self.sink,
        )
        finish(query, self.workload, checkpoint, files=files)


@pytest.fixture
def rewound(spark: SparkSession, tmp_path: Path) -> tuple[FileSinkJob, Repository, Savepoint]:
    """A job with a savepoint after three batches that then ran on to the sixth."""
    job = FileSinkJob(spark, tmp_path)
    job.run(tmp_path / "ck", 3)
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    source = DirectoryStore(tmp_path / "ck")
    savepoint = repository.capture(source, CaptureRequest(job="job", name="early")).savepoint
    job.run(tmp_path / "ck", 6)
    return job, repository, savepoint


def test_rewinding_onto_a_file_sink_that_is_ahead_is_refused_and_nothing_is_written(
    rewound: tuple[FileSinkJob, Repository, Savepoint], tmp_path: Path
) -> None:
    job, repository, savepoint = rewound
    target, sinks = DirectoryStore(tmp_path / "back"), {"": DirectoryStore(job.sink)}

    with pytest.raises(SinkConflictError, match="batch"):
        repository.materialize(savepoint, target, MaterializeRequest(mode=Mode.REWIND, sinks=sinks))

    assert not (tmp_path / "back").exists()
    assert_output(job.workload, job.sink, position(tmp_path / "ck"))


def test_rewinding_with_the_sink_truncated_gives_every_row_once(
    spark: SparkSession, rewound: tuple[FileSinkJob, Repository, Savepoint], tmp_path: Path
) -> None:
    job, repository, savepoint = rewound
    sinks = {"": DirectoryStore(job.sink)}
    request = MaterializeRequest(mode=Mode.REWIND, sinks=sinks, sink_policy=SinkPolicy.TRUNCATE)

    repository.materialize(savepoint, DirectoryStore(tmp_path / "back"), request)
    job.run(tmp_path / "back", 6)

    there = position(tmp_path / "back")
    assert there.files == 6
    assert_state(spark, job.workload, str(tmp_path / "back"), there)
    assert_output(job.workload, job.sink, there)
    read_by_spark = spark.read.json(str(job.sink)).count()
    assert read_by_spark == job.workload.read_output(job.sink).total()
