"""Waiting for a query, and comparing what it made with the truth. Every wait is bounded."""

import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.workloads.base import Known, Truth, Workload
from tests.spark.workloads.inputs import file_rows

__all__ = [
    "Position",
    "assert_output",
    "assert_state",
    "finish",
    "parse_position",
    "position",
    "truth_at",
]

_POLL = 0.1
_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


@dataclass(frozen=True, slots=True)
class Position:
    """How far a batch is: the input files behind it and the watermark it ran with."""

    batch: int
    files: int
    watermark: int


def position(checkpoint: Path, batch: int | None = None) -> Position:
    """Read a batch's position from the offset log of a local checkpoint; the last committed one."""
    if batch is None:
        batch = max(int(p.name) for p in (checkpoint / "commits").glob("[0-9]*"))
    return parse_position((checkpoint / "offsets" / str(batch)).read_text(), batch)


def parse_position(text: str, batch: int) -> Position:
    """The position that the text of `offsets/<batch>` tells."""
    lines = text.splitlines()
    files = json.loads(lines[2])["logOffset"] + 1
    return Position(batch, files, json.loads(lines[1])["batchWatermarkMs"])


def truth_at(workload: Workload, at: Position, *, seed: int = 7) -> Truth:
    """What the workload must have made at this position."""
    return workload.truth([file_rows(i, seed=seed) for i in range(at.files)], at.watermark)


def assert_state(
    spark: SparkSession, workload: Workload, checkpoint: str, at: Position, *, seed: int = 7
) -> None:
    """Compare every key of every store of a local checkpoint with the truth."""
    expected = truth_at(workload, at, seed=seed).state
    # The reader takes the provider from the offset log, but the format from the session.
    first_line = (Path(checkpoint) / "commits" / str(at.batch)).read_text().splitlines()[0]
    spark.conf.set(_FORMAT, "2" if first_line == "v2" else "1")
    found = workload.read_state(spark, checkpoint, at.batch)
    assert found.keys() == expected.keys()
    for store, entries in expected.items():
        assert found[store] == entries, f"{workload.name}: state {store} at {at}"


def assert_output(
    workload: Workload,
    sink: Path,
    at: Position,
    *,
    since: Position | None = None,
    seed: int = 7,
) -> None:
    """Compare every row of the sink with the truth; `since` is where a fork's new sink began."""
    expected = truth_at(workload, at, seed=seed).output
    before: Counter[Known] = truth_at(workload, since, seed=seed).output if since else Counter()
    assert workload.read_output(sink) == expected - before, f"{workload.name}: output at {at}"


def finish(
    query: StreamingQuery, workload: Workload, checkpoint: Path, *, files: int, timeout: float = 600
) -> None:
    """Wait until all input is committed and the query has ended."""
    if not workload.endless:
        assert query.awaitTermination(int(timeout)), f"{workload.name} is still running"
        return
    try:
        _wait_for_files(query, checkpoint, files, timeout)
    finally:
        query.stop()


def _wait_for_files(query: StreamingQuery, checkpoint: Path, files: int, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        failure = query.exception()
        assert failure is None, failure
        if any((checkpoint / "commits").glob("[0-9]*")) and position(checkpoint).files >= files:
            return
        time.sleep(_POLL)
    raise AssertionError(f"{checkpoint} did not reach {files} files within {timeout} s")
