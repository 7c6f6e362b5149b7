"""The agent beside real queries: what it tells is what Spark says, and its savepoints restore."""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from sparkpoint.runtime.agent import CaptureSettings, start_agent
from sparkpoint.runtime.client import SyncAgentClient
from sparkpoint.runtime.model import (
    GateInfo,
    OperationState,
    Progress,
    SavepointRequest,
    SavepointSummary,
    StopReport,
)
from sparkpoint.runtime.progress import ProgressTracker
from sparkpoint.savepoint import MaterializeRequest, Mode, Repository
from sparkpoint.storage import DirectoryStore
from tests.spark.places import assert_rows_told
from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import assert_state, position

_NAME = "aggregation"
_SAVEPOINTS = 4


class Watched:
    """The job around one query, as the agent wants it; nothing here stops or gates."""

    def __init__(self, folder: Path, tracker: ProgressTracker) -> None:
        self.epoch_dir, self.tracker = folder / "epoch-1", tracker

    def progress(self) -> Progress:
        return Progress(
            job="default/watched",
            epoch=1,
            phase="running",
            gate=GateInfo(epoch=1, state="none"),
            queries=self.tracker.queries(),
        )

    def stop(self, operation: str, budget_seconds: float | None) -> StopReport:
        raise NotImplementedError

    def finish(self, operation: str, savepoint: str | None) -> None:
        raise NotImplementedError

    def open_gate(self, epoch: int) -> GateInfo:
        raise NotImplementedError

    def checkpoints(self) -> dict[str, str]:
        return {query.name: query.checkpoint for query in self.tracker.queries()}


@pytest.fixture
def tracker(spark: SparkSession) -> Iterator[ProgressTracker]:
    tracker = ProgressTracker()
    listener = tracker.listener()
    spark.streams.addListener(listener)
    yield tracker
    spark.streams.removeListener(listener)


@pytest.fixture
def job(tmp_path: Path, tracker: ProgressTracker) -> Watched:
    return Watched(tmp_path, tracker)


@pytest.fixture
def client(job: Watched) -> Iterator[SyncAgentClient]:
    settings = CaptureSettings(job="watched", epoch=1, epoch_dir=str(job.epoch_dir))
    agent = start_agent(job, host="127.0.0.1", port=0, token="t", savepoints=settings)
    with SyncAgentClient(agent.url, "t") as client:
        yield client
    agent.close()


def start(spark: SparkSession, job: Watched, folder: Path, provider: str) -> StreamingQuery:
    checkpoint = str(job.epoch_dir / _NAME)
    query = WORKLOADS[_NAME].start(
        spark,
        provider=provider,
        inputs=folder / "in",
        checkpoint=checkpoint,
        sink=folder / "out",
        available_now=False,
        confs={
            "spark.sql.streaming.noDataProgressEventInterval": "200",
            # A busy machine may be idle for longer than the usual hundred of them.
            "spark.sql.streaming.numRecentProgressUpdates": "5000",
            "spark.sql.streaming.minBatchesToRetain": "2",
        },
    )
    job.tracker.started(_NAME, query.id, query.runId, checkpoint)
    return query


def await_true(condition: Callable[[], bool], what: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.02)


def last_batch(query: StreamingQuery) -> StreamingQueryProgress:
    """The last one that was executed: while idle, Spark lists the batch that would come next."""
    return [each for each in query.recentProgress if "addBatch" in each.durationMs][-1]


def is_idle(client: SyncAgentClient, query: StreamingQuery) -> bool:
    """Whether the query waits for input, and all words about it have arrived."""
    (told,) = client.progress().queries
    return told.batch == last_batch(query).batchId and not told.trigger_active


def assert_told(client: SyncAgentClient, query: StreamingQuery, checkpoint: Path) -> None:
    """The agent says of the last batch what Spark says."""
    (told,) = client.progress().queries
    last = last_batch(query)
    assert told.batch == position(checkpoint).batch
    assert (told.id, told.run_id, told.batch) == (query.id, query.runId, last.batchId)
    assert told.batch_seconds == last.durationMs["triggerExecution"] / 1000
    assert told.state_rows == sum(each.numRowsTotal for each in last.stateOperators) > 0
    assert told.state_counts == sum(each.numStateStoreInstances for each in last.stateOperators) > 0
    assert told.state_bytes == sum(each.memoryUsedBytes for each in last.stateOperators) > 0
    assert told.watermark == last.eventTime["watermark"]
    assert math.isclose(told.processed_rows_per_second, last.processedRowsPerSecond)
    assert told.input_rows == sum(each.numInputRows for each in query.recentProgress)


def jobs_begun(spark: SparkSession) -> int:
    """How many Spark jobs there have been."""
    count: int = spark.sparkContext._jsc.sc().dagScheduler().nextJobId()
    return count


@pytest.mark.parametrize("provider", ["rocksdb-changelog"])
def test_the_agent_watches_a_query_and_takes_savepoints_that_restore(
    spark: SparkSession, tmp_path: Path, job: Watched, client: SyncAgentClient, provider: str
) -> None:
    files = 10
    write_files(tmp_path / "in", range(files))
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    request = SavepointRequest(repository=repository.store.uri)
    checkpoint = job.epoch_dir / _NAME
    query = start(spark, job, tmp_path, provider)
    try:
        await_true(lambda: client.progress().queries[0].batch is not None, "the first batch")
        taken: list[SavepointSummary] = []
        for number in range(_SAVEPOINTS):
            done = client.savepoint(f"live-{number}", request, wait=400)
            assert done.state is OperationState.DONE, done.error
            assert done.result is not None
            taken.append(done.result)

        await_true(lambda: position(checkpoint).files == files, "all input")
        await_true(lambda: is_idle(client, query), "the query is idle, and that is told")
        assert_told(client, query, checkpoint)
        before = jobs_begun(spark)
        for _ in range(20):
            client.progress()
            client.metrics()
        assert jobs_begun(spark) == before
        quiet = client.savepoint("quiet", request, wait=400)
        assert quiet.state is OperationState.DONE, quiet.error
        batch = client.progress().queries[0].batch
        assert f'sparkpoint_query_batch{{query="{_NAME}"}} {batch}\n' in client.metrics()
    finally:
        query.stop()

    await_true(lambda: not client.progress().queries[0].active, "the end is told")
    assert client.progress().queries[0].error is None
    for summary in taken:
        target = tmp_path / "restored" / summary.name
        savepoint = repository.find(summary.name)
        resume = MaterializeRequest(mode=Mode.RESUME)
        repository.materialize(savepoint, DirectoryStore(target), resume)
        at = position(target / _NAME, summary.batches[_NAME])
        assert_state(spark, WORKLOADS[_NAME], str(target / _NAME), at)
        (told,) = savepoint.manifest.queries
        assert_rows_told(spark, told, str(target / _NAME), None)
    (told,) = repository.find("quiet").manifest.queries
    assert told.rows is not None
    assert_rows_told(spark, told, str(checkpoint), None)


def test_a_query_that_fails_is_told_with_its_error(
    spark: SparkSession, tmp_path: Path, tracker: ProgressTracker
) -> None:
    def fail(frame: DataFrame, batch: int) -> None:
        raise ValueError("the table is gone")

    write_files(tmp_path / "in", range(1))
    stream = spark.readStream.text(str(tmp_path / "in"))
    writer = stream.writeStream.foreachBatch(fail)
    query = writer.option("checkpointLocation", str(tmp_path / "ck")).start()
    tracker.started("fails", query.id, query.runId, str(tmp_path / "ck"))

    await_true(lambda: not tracker.queries()[0].active, "the end is told")

    error = tracker.queries()[0].error
    assert error is not None
    assert error.type == "FOREACH_BATCH_USER_FUNCTION_ERROR"
    assert error.message == "ValueError: the table is gone"
    assert error.where is not None
    assert error.where.startswith("test_runtime_agent.py:")
