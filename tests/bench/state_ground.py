"""State of the HDFS-backed provider made by Spark, and what plain Spark takes for the same."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.storage import DirectoryStore
from tests.bench.measure import Sample
from tests.bench.state_job import NAME, totals
from tests.spark.workloads.session import build_session

__all__ = ["PARTITIONS", "Ground", "make_ground", "session"]

PARTITIONS = 4
_CHANGED = 100
"""One key in so many is changed by the second batch."""
_STORE = "spark.sql.streaming.stateStore"
_WAIT = 300.0


@dataclass(frozen=True, slots=True)
class Ground:
    """Two savepoints of one query: `loaded`, and `changed` a batch later."""

    folder: Path
    keys: int

    @property
    def repository(self) -> Path:
        return self.folder / "repository"

    @property
    def inputs(self) -> Path:
        return self.folder / "inputs"

    @property
    def checkpoint(self) -> Path:
        """As it is after the second batch."""
        return self.folder / "job" / NAME

    def rewrite(self, spark: SparkSession, partitions: int) -> Sample:
        """What plain Spark takes to read the rows and to write them, by key, to other files."""
        rows = self.folder / "rows"
        if not rows.exists():
            state = spark.read.format("statestore").load(str(self.checkpoint))
            state.select("key", "value").write.parquet(str(rows))

        def job() -> None:
            frame = spark.read.parquet(str(rows)).repartition(partitions, "key")
            frame.write.mode("overwrite").parquet(str(self.folder / "rewritten"))

        return timed(job)

    def outer_join(self, spark: SparkSession) -> Sample:
        """What Spark takes to find the keys that differ, with its own reader of state."""
        reader = spark.read.format("statestore")
        frames = [reader.option("batchId", n).load(str(self.checkpoint)) for n in (0, 1)]
        before, after = (f.selectExpr("key", f"value v{n}") for n, f in enumerate(frames))
        differ = before.join(after, "key", "full_outer").where("NOT v0 <=> v1")
        return timed(lambda: differ.selectExpr("count(*)", "min(key)").collect())

    def lookup(self, spark: SparkSession, key: str) -> Sample:
        """What Spark takes to find one key."""
        state = spark.read.format("statestore").load(str(self.checkpoint))
        found = state.where(state["key.k"] == key)
        return timed(lambda: found.collect())


def timed(action: Callable[[], object]) -> Sample:
    """How long it takes here."""
    begun = time.perf_counter()
    action()
    seconds = time.perf_counter() - begun
    return Sample(seconds=seconds, total=seconds)


def session() -> SparkSession:
    """A session with room for the largest state."""
    return build_session(
        "bench",
        {
            "spark.driver.memory": "7g",
            "spark.sql.shuffle.partitions": str(PARTITIONS),
        },
    )


def make_ground(spark: SparkSession, folder: Path, keys: int) -> Ground:
    """Run two batches, and capture after each."""
    ground = Ground(folder, keys)
    repository = Repository.init(DirectoryStore(ground.repository))
    for batch, (name, step) in enumerate((("loaded", 1), ("changed", _CHANGED))):
        rows = spark.range(0, keys, step, 2 * PARTITIONS)
        rows = rows.selectExpr("concat('user-', id) k", "id % 1000 v")
        rows.write.mode("append").parquet(str(ground.inputs))
        # A snapshot of all keys, and then a delta of those that have changed.
        spark.conf.set(f"{_STORE}.minDeltasForSnapshot", "1000" if batch else "0")
        query = totals(spark, str(ground.inputs))
        query = query.option("checkpointLocation", str(ground.checkpoint))
        started = query.start()
        started.processAllAvailable()
        if batch == 0:
            _await_snapshots(ground.checkpoint, batch + 1)
        started.stop()
        request = CaptureRequest(job="bench", name=name)
        repository.capture(DirectoryStore(ground.checkpoint.parent), request)
    return ground


def _await_snapshots(checkpoint: Path, version: int) -> None:
    """Maintenance writes them in the background."""
    wanted = [checkpoint / f"state/0/{n}/{version}.snapshot" for n in range(PARTITIONS)]
    deadline = time.monotonic() + _WAIT
    while missing := [path for path in wanted if not path.exists()]:
        if time.monotonic() > deadline:
            raise RuntimeError(f"No snapshot {missing[0]} after {_WAIT:.0f} s.")
        time.sleep(0.2)
