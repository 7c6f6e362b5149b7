"""Where a test keeps checkpoints and repositories: a directory, or a bucket of a real S3 server."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sparkpoint.savepoint.describe import StateCount
from sparkpoint.savepoint.manifest import QueryInfo
from sparkpoint.storage import Store, open_store
from sparkpoint.worker.loading import QueryToLoad, state_frames
from tests.spark.workloads.base import Workload
from tests.spark.workloads.judge import Position, parse_position, truth_at
from tests.spark.workloads.session import reading_files

__all__ = [
    "Place",
    "assert_rows_told",
    "assert_state_at",
    "await_position",
    "last_count",
    "position_at",
]

_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


@dataclass(frozen=True, slots=True)
class Place:
    """A root under which a test makes what it needs."""

    root: str
    endpoint_url: str | None = None

    def store(self, name: str) -> Store:
        """What is called `name` there, as our own store."""
        return open_store(f"{self.root}/{name}", self.endpoint_url)

    def spark_uri(self, name: str) -> str:
        """The same as Spark writes it."""
        return f"{self.root}/{name}".replace("s3://", "s3a://")

    def forget(self, name: str) -> None:
        """Remove everything called `name`."""
        store = self.store(name)
        for entry in list(store.list()):
            store.delete(entry.path)


def position_at(store: Store, batch: int | None = None) -> Position | None:
    """How far a checkpoint is, read through our store; None before the first commit."""
    if batch is None:
        _, commits = store.children("commits")
        numbers = [int(e.path.split("/")[-1]) for e in commits if e.path.split("/")[-1].isdigit()]
        if not numbers:
            return None
        batch = max(numbers)
    return parse_position(store.read(f"offsets/{batch}").decode(), batch)


def await_position(
    store: Store, *, files: int, alive: Callable[[], None], seconds: float = 400
) -> Position:
    """Wait until so much input is committed; `alive` raises if the query is not well."""
    deadline = time.monotonic() + seconds
    while (at := position_at(store)) is None or at.files < files:
        alive()
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {files} files"
        time.sleep(0.05)
    return at


def assert_state_at(
    spark: SparkSession, workload: Workload, place: Place, name: str, at: Position
) -> None:
    """Compare every key of every store with the truth."""
    expected = truth_at(workload, at).state
    first_line = place.store(name).read(f"commits/{at.batch}").decode().splitlines()[0]
    # The reader takes the provider from the offset log, but the format from the session.
    spark.conf.set(_FORMAT, "2" if first_line == "v2" else "1")
    with reading_files(spark):
        found = workload.read_state(spark, place.spark_uri(name), at.batch)
    assert found == expected, f"{workload.name}: state at {at}"


def last_count(query: StreamingQuery) -> StateCount | None:
    """What the agent would have heard of the query last."""
    done = [each for each in query.recentProgress if "addBatch" in each.durationMs]
    if not done:
        return None
    operators = done[-1].stateOperators
    return StateCount(
        batch=done[-1].batchId,
        rows=sum(each.numRowsTotal for each in operators),
        counts=sum(each.numStateStoreInstances for each in operators),
    )


def assert_rows_told(
    spark: SparkSession, query: QueryInfo, checkpoint: str, count: StateCount | None
) -> None:
    """The manifest says how many rows Spark's reader finds, if Spark or a snapshot told it."""
    if not query.operators or any("transform" in (each.name or "") for each in query.operators):
        assert query.rows is None
        return
    if count is not None and count.batch == query.batch:
        assert query.rows is not None
    if query.rows is not None:
        load = QueryToLoad(
            name="",
            checkpoint=checkpoint,
            batch=query.batch,
            commits_version=query.commits_version,
        )
        with reading_files(spark):
            found = sum(frame.count() for frame in state_frames(spark, load))
        assert query.rows == found, f"rows of {checkpoint} at batch {query.batch}"
