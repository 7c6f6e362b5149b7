"""Savepoints through the agent of a driver under load: each restored, and equal to the ledger.

Every tenth is continued to the end of the input, and the output of all queries compared.

The share of `make test` is in tests/spark/test_runtime_agent.py.
"""

import signal
import statistics
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkpoint.runtime.client import SyncAgentClient
from sparkpoint.runtime.model import OperationState, SavepointRequest, SavepointSummary
from sparkpoint.savepoint import MaterializeRequest, Mode, Repository
from sparkpoint.storage import DirectoryStore
from tests.spark.runtime import truth
from tests.spark.runtime.driver import Driver, Setting, agent_of, agent_options, driving
from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.base import Known
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import Position, assert_state, position, truth_at
from tests.spark.workloads.providers import PROVIDERS

NAMES = ("left", "right", "windows")
SCRIPT = "several_queries.py"
COUNT = 50
CONTINUED = 10
"""Every so many savepoints, one is continued: that takes a driver of its own."""
HOSTILE = {
    # Nothing of a batch is left for long, so that a capture must hurry or begin again.
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.stateStore.maintenanceInterval": "1s",
}


@contextmanager
def fed(inputs: Path, setting: Setting) -> Iterator[None]:
    """Keep every query at work: there are always some files that it has not seen."""
    end = threading.Event()

    def feed() -> None:
        written = 1
        while not end.wait(0.1):
            done = max(truth.committed(setting.checkpoint(name)) for name in NAMES)
            if written < done + 5:
                write_files(inputs, range(written, done + 10))
                written = done + 10

    thread = threading.Thread(target=feed, name="feed")
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join(60)


def capture(
    driver: Driver, agent: SyncAgentClient, repository: Repository, count: int
) -> list[SavepointSummary]:
    """So many savepoints of a job that goes on meanwhile."""
    taken = []
    for number in range(count):
        asked = SavepointRequest(repository=repository.store.uri)
        done = agent.savepoint(f"live-{number:03d}", asked, wait=400)
        assert done.state is OperationState.DONE, (done.error, driver.log[-2000:])
        assert done.result is not None
        taken.append(done.result)
    return taken


def check(
    spark: SparkSession, repository: Repository, name: str, target: Path
) -> dict[str, Position]:
    """Restore one, and compare all it has with what its position in the input says: these."""
    savepoint = repository.find(f"tests/job/{name}")
    repository.materialize(savepoint, DirectoryStore(target), MaterializeRequest(mode=Mode.RESUME))
    batches = {query.prefix: query.batch for query in savepoint.manifest.queries}
    assert set(batches) == set(NAMES)
    found = {query: position(target / query, batches[query]) for query in NAMES}
    for query in NAMES:
        # One file a batch; batches that only move the watermark have none.
        assert 0 < found[query].files <= batches[query] + 1
    assert_state(spark, WORKLOADS["aggregation"], str(target / "windows"), found["windows"])
    return found


def output_at(query: str, at: Position) -> Counter[Known]:
    """All that a query has written up to there."""
    if query == "windows":
        return truth_at(WORKLOADS["aggregation"], at).output
    side = {"left": "L", "right": "R"}[query]
    return Counter((row.k, row.v) for row in truth.rows(at.files) if row.side == side)


def continue_to_the_end(
    root: Path, confs: dict[str, str], name: str, since: dict[str, Position]
) -> None:
    """Another driver goes on from a savepoint, with sinks of its own: all that was to come."""
    inputs, output = root / "input", root / "continued" / name / "output"
    setting = Setting(root / "continued" / name, confs=confs)
    files = len(list(inputs.glob("*.json")))
    options = ("--restore", name, "--repository", str(root / "repository"), "--sink", "fork")
    with driving(setting, SCRIPT, inputs, output, options=options) as driver:
        driver.await_true(
            lambda: all(truth.committed(setting.checkpoint(n)) == files for n in NAMES), 600
        )
        driver.signal(signal.SIGTERM)
        assert driver.end().clean
    for query in NAMES:
        there = position(setting.checkpoint(query))
        assert there.files == files
        columns = ("end", "k", "n", "total") if query == "windows" else ("k", "v")
        expected = output_at(query, there) - output_at(query, since[query])
        assert truth.files(output / query, *columns) == expected, (name, query)


def live_savepoints_restore(
    spark: SparkSession, root: Path, provider: str, count: int, *, continued: int = CONTINUED
) -> None:
    """Take them, end the driver, and look at each."""
    repository = Repository.init(DirectoryStore(root / "repository"))
    confs = {**PROVIDERS[provider], **HOSTILE}
    setting = Setting(root / "job", confs=confs)
    inputs, output = root / "input", root / "output"
    write_files(inputs, range(1))
    options = agent_options(setting)
    with driving(setting, SCRIPT, inputs, output, options=options) as driver:
        driver.await_true(lambda: all(truth.committed(setting.checkpoint(n)) for n in NAMES))
        first = truth.committed(setting.checkpoint("windows"))
        with fed(inputs, setting), agent_of(driver) as agent:
            taken = capture(driver, agent, repository, count)
        batches = truth.committed(setting.checkpoint("windows")) - first
        driver.kill()
    assert all(found.good for found in repository.verify(repository.list().savepoints))
    distinct = {summary.batches["windows"] for summary in taken}
    seconds = statistics.median(summary.seconds for summary in taken)
    print(
        f"{provider}: {count} savepoints of {len(distinct)} batches, median {seconds:.2f} s, "
        f"while {batches} batches were done"
    )
    assert len(distinct) > count / 2, "the job should go on between two savepoints"
    for number, summary in enumerate(taken):
        since = check(spark, repository, summary.name, root / "restored" / summary.name)
        if number % continued == 0:
            continue_to_the_end(root, confs, summary.name, since)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("provider", ["hdfs", "rocksdb-changelog"])
def test_fifty_live_savepoints_of_a_driver_under_load_restore_exactly(
    spark: SparkSession, tmp_path: Path, provider: str
) -> None:
    live_savepoints_restore(spark, tmp_path, provider, COUNT)
