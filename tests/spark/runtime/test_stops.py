"""Stops at random moments of a fast query: always at a boundary, and nothing lost or twice."""

import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sparkpoint.runtime.execution import Execution
from sparkpoint.runtime.identity import Identity
from sparkpoint.runtime.queries import StartedQuery, stop_queries
from tests.spark.runtime import truth
from tests.spark.runtime.driver import Setting, driving
from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import assert_output, assert_state, position, truth_at

PROVIDERS = ("hdfs", "rocksdb-changelog")
BUDGET = 60.0
STOPS, FULL = 5, 100
PER_STOP = 6
"""Input files, one a batch: about as many as are done before the next stop."""


def watched(query: StreamingQuery) -> StartedQuery:
    """A query as the job holds it."""
    execution = Execution(query._jsq)
    identity = Identity(query.name, query.name)
    started = StartedQuery(identity, "", execution, on_end=lambda _: None)
    started.watch()
    return started


def stop_again_and_again(spark: SparkSession, root: Path, provider: str, stops: int) -> None:
    """Start a query and stop it at a random moment, many times; then look at all it made."""
    workload, seed = WORKLOADS["aggregation"], 20261116
    chance = random.Random(f"{seed}:{provider}")
    inputs, checkpoint, sink = root / "input", root / "checkpoint", root / "sink"
    busy = 0
    for number in range(stops):
        write_files(inputs, range(PER_STOP * number, PER_STOP * (number + 1)))
        # Sometimes it runs out of input and idles; sometimes it waits for its next trigger.
        trigger = chance.choice([None, None, None, "700 milliseconds"])
        query = workload.start(
            spark,
            provider=provider,
            inputs=inputs,
            checkpoint=str(checkpoint),
            sink=sink,
            available_now=False,
            trigger=trigger,
        )
        started = watched(query)
        time.sleep(chance.uniform(0, 2.5))

        report = stop_queries([started], budget=BUDGET)

        assert report.clean, f"{provider}, stop {number}: {report}"
        assert truth.is_clean(checkpoint), f"{provider}, stop {number}"
        assert not query.isActive
        busy += truth.committed(checkpoint) < PER_STOP * (number + 1)
    assert busy > stops / 2, "most stops should find the query at work"
    files = PER_STOP * stops
    query = workload.start(
        spark, provider=provider, inputs=inputs, checkpoint=str(checkpoint), sink=sink
    )
    assert query.awaitTermination(1800)
    at = position(checkpoint)
    assert at.files == files
    assert_output(workload, sink, at)
    assert_state(spark, workload, str(checkpoint), at)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_stops_at_random_moments_are_clean(
    spark: SparkSession, tmp_path: Path, provider: str
) -> None:
    stop_again_and_again(spark, tmp_path, provider, STOPS)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_hundred_stops_at_random_moments_are_clean(
    spark: SparkSession, tmp_path: Path, provider: str
) -> None:
    stop_again_and_again(spark, tmp_path, provider, FULL)


def end_again_and_again(root: Path, ends: int) -> None:
    """Run a driver of several queries and end it at random, by SIGTERM, SIGKILL or Ctrl-C."""
    chance = random.Random(20261116)
    setting, names = Setting(root), ("left", "right", "windows")
    for number in range(ends):
        write_files(root / "input", range(8 * number, 8 * number + 8))
        killed = number % 3 == 1
        with driving(setting, "several_queries.py", root / "input", root / "output") as driver:
            before = {name: truth.committed(setting.checkpoint(name)) for name in names}
            driver.await_true(
                lambda: any(truth.committed(setting.checkpoint(n)) > before[n] for n in names)  # noqa: B023
            )
            time.sleep(chance.uniform(0, 2))
            if killed:
                driver.kill()
                continue
            driver.interrupt() if number % 3 == 2 else driver.signal(signal.SIGTERM)
            termination = driver.end()
        assert (termination.exit_code, termination.clean) == (0, True), f"end {number}"
        assert set(termination.queries) == set(names)
        assert all(truth.is_clean(setting.checkpoint(name)) for name in names)
    files = 8 * ends
    with driving(setting, "several_queries.py", root / "input", root / "output") as driver:
        driver.await_true(
            lambda: all(truth.committed(setting.checkpoint(name)) == files for name in names), 600
        )
        driver.signal(signal.SIGTERM)
        assert driver.end().clean
    for side, name in (("L", "left"), ("R", "right")):
        expected = Counter((row.k, row.v) for row in truth.rows(files) if row.side == side)
        assert truth.files(root / "output" / name, "k", "v") == expected, name
    at = position(setting.checkpoint("windows"))
    found = truth.files(root / "output" / "windows", "end", "k", "n", "total")
    assert found == truth_at(WORKLOADS["aggregation"], at).output


def test_drivers_that_are_ended_or_killed_lose_nothing(tmp_path: Path) -> None:
    end_again_and_again(tmp_path, 2)


@pytest.mark.soak
@pytest.mark.timeout(14_400)
def test_a_hundred_drivers_that_are_ended_or_killed_lose_nothing(tmp_path: Path) -> None:
    end_again_and_again(tmp_path, FULL)


def test_what_sources_are_asked_for_is_ended_with_all_that_would_follow(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A long list of files is a job of its own, which stopping the query does not end."""
    write_files(tmp_path / "input", range(1))
    query = WORKLOADS["aggregation"].start(
        spark,
        provider="hdfs",
        inputs=tmp_path / "input",
        checkpoint=str(tmp_path / "checkpoint"),
        sink=tmp_path / "sink",
        available_now=False,
    )
    execution, begun = Execution(query._jsq), threading.Event()
    ended: list[str] = []

    def ask() -> None:
        execution.gather_jobs()
        for _ in range(2):
            begun.set()
            try:
                # As files are listed: a job of its own, without a plan.
                spark.sparkContext.range(10**12, numSlices=2).count()
            except Exception as error:
                ended.append(str(error))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    assert begun.wait(60)
    query.stop()
    time.sleep(1)
    assert ended == []

    execution.cancel_jobs()

    asking.join(120)
    assert len(ended) == 2
    assert all("cancelled" in error.lower() for error in ended)
