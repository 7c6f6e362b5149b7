"""Many captures of a fast query that purges behind itself: all exact, none seen half-done."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.storage import DirectoryStore
from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import assert_state, position
from tests.spark.workloads.live import running_workload

_HOSTILE = {
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.stateStore.maintenanceInterval": "1s",
}


def _check(spark: SparkSession, folder: Path, provider: str, *, captures: int) -> None:
    workload = WORKLOADS["aggregation"]
    write_files(folder / "in", range(captures * 4))
    repository = Repository.init(DirectoryStore(folder / "repository"))
    source = DirectoryStore(folder / "ck")
    taken: list[Savepoint] = []
    tries = 0
    with (
        running_workload(
            workload.name,
            provider=provider,
            inputs=folder / "in",
            checkpoint=str(folder / "ck"),
            sink=folder / "out",
            log=folder / "log",
            confs=_HOSTILE,
        ) as live,
        _watched(repository) as problems,
    ):
        for number in range(captures):
            # Captures are faster than batches: every other one waits for a newer batch, lest all
            # of them be of the same.
            if number % 2 == 0:
                _await_commit(folder / "ck", after=_newest(taken))
            assert live.process.poll() is None, live.tail()
            request = CaptureRequest(job="job", name=f"live-{number:03d}")
            taken.append(repository.capture(source, request).savepoint)
            tries += taken[-1].manifest.timing.tries
        live.stop()

    assert problems == []
    assert all(found.good for found in repository.verify(taken))
    batches = {savepoint.manifest.queries[0].batch for savepoint in taken}
    print(f"{provider}: {captures} captures of {len(batches)} batches in {tries} tries")
    # Captures of one and the same batch would prove nothing about a query that goes on.
    assert len(batches) > captures / 4
    for savepoint in taken:
        target = folder / "restored" / savepoint.manifest.name
        resume = MaterializeRequest(mode=Mode.RESUME)
        repository.materialize(savepoint, DirectoryStore(target), resume)
        at = position(target, savepoint.manifest.queries[0].batch)
        assert_state(spark, workload, str(target), at)


def _newest(taken: list[Savepoint]) -> int:
    return max((savepoint.manifest.queries[0].batch for savepoint in taken), default=-1)


def _await_commit(checkpoint: Path, *, after: int) -> None:
    deadline = time.monotonic() + 120
    while max((int(p.name) for p in (checkpoint / "commits").glob("[0-9]*")), default=-1) <= after:
        assert time.monotonic() < deadline, f"no commit after batch {after} within 120 s"
        time.sleep(0.005)


@contextmanager
def _watched(repository: Repository) -> Iterator[list[str]]:
    """Verify whatever is listed, all the time; the problems that were found."""
    problems: list[str] = []
    end = threading.Event()

    def watch() -> None:
        seen: set[str] = set()
        while not end.is_set():
            listed = repository.list()
            problems.extend(bad.path for bad in listed.unreadable)
            fresh = [savepoint for savepoint in listed.savepoints if savepoint.id not in seen]
            seen.update(savepoint.id for savepoint in fresh)
            for found in repository.verify(fresh):
                problems.extend(found.problems)
            end.wait(0.02)

    thread = threading.Thread(target=watch, name="watch")
    thread.start()
    try:
        yield problems
    finally:
        end.set()
        thread.join(60)


@pytest.mark.parametrize("provider", ["rocksdb-v2"])
def test_live_captures_of_a_query_that_purges_at_once_restore_exactly(
    spark: SparkSession, tmp_path: Path, provider: str
) -> None:
    _check(spark, tmp_path, provider, captures=15)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("provider", ["hdfs", "rocksdb", "rocksdb-changelog", "rocksdb-v2"])
def test_two_hundred_live_captures_restore_exactly(
    spark: SparkSession, tmp_path: Path, provider: str
) -> None:
    _check(spark, tmp_path, provider, captures=200)
