"""A driver that was killed inside a batch: resumed elsewhere, it replays that batch exactly."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository, SinkPolicy
from sparkpoint.storage import DirectoryStore
from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import assert_output, assert_state, finish, position
from tests.spark.workloads.live import running_workload

_FILES = 12
_ENOUGH = 2
"""Batches that must be committed before the kill, so that there is state to go on from."""
_ATTEMPTS = 5


def _newest(folder: Path) -> int:
    return max((int(path.name) for path in folder.glob("[0-9]*")), default=-1)


def _pending(checkpoint: Path) -> bool:
    """Whether a batch was begun and is not committed."""
    # The commit before the offsets: looked at the other way round, a fast query seems pending.
    committed = _newest(checkpoint / "commits")
    return _ENOUGH <= committed < _newest(checkpoint / "offsets")


def _killed_inside_a_batch(provider: str, folder: Path) -> None:
    """Kill a driver at a moment when a batch is under way; again if it just got to its end."""
    for attempt in range(_ATTEMPTS):
        with running_workload(
            "aggregation",
            provider=provider,
            inputs=folder / "in",
            checkpoint=str(folder / "ck"),
            sink=folder / "out",
            log=folder / f"log-{attempt}",
        ) as live:
            deadline = time.monotonic() + 60
            while not _pending(folder / "ck"):
                assert live.process.poll() is None, live.tail()
                assert time.monotonic() < deadline, live.tail()
                time.sleep(0.002)
            live.kill()
        if _pending(folder / "ck"):
            return
    raise AssertionError(f"no kill in {_ATTEMPTS} hit a batch that was under way")


@pytest.mark.parametrize("provider", ["hdfs", "rocksdb-v2"])
def test_batch_that_was_under_way_at_a_kill_is_replayed_exactly_where_it_is_resumed(
    spark: SparkSession, tmp_path: Path, provider: str
) -> None:
    workload = WORKLOADS["aggregation"]
    write_files(tmp_path / "in", range(_FILES))
    _killed_inside_a_batch(provider, tmp_path)
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))

    request = CaptureRequest(job="job", name="killed")
    savepoint = repository.capture(DirectoryStore(tmp_path / "ck"), request).savepoint
    elsewhere = tmp_path / "elsewhere"
    resume = MaterializeRequest(mode=Mode.RESUME)
    repository.materialize(savepoint, DirectoryStore(elsewhere), resume)
    begun = savepoint.manifest.queries[0].batch + 1
    planned = (tmp_path / f"ck/offsets/{begun}").read_bytes()

    assert savepoint.manifest.queries[0].pending
    assert _newest(elsewhere / "offsets") == begun
    assert (elsewhere / f"offsets/{begun}").read_bytes() == planned
    (tmp_path / "ck").rename(tmp_path / "gone")
    query = workload.start(
        spark,
        provider=provider,
        inputs=tmp_path / "in",
        checkpoint=str(elsewhere),
        sink=tmp_path / "out",
    )
    finish(query, workload, elsewhere, files=_FILES)

    there = position(elsewhere)
    assert there.files == _FILES
    assert (elsewhere / f"offsets/{begun}").read_bytes() == planned
    assert_state(spark, workload, str(elsewhere), there)
    assert_output(workload, tmp_path / "out", there)


@pytest.mark.parametrize(
    ("provider", "meanwhile"),
    [("rocksdb-v2", False), ("hdfs", True)],
    ids=["it ended there", "it went on"],
)
def test_batch_that_the_file_sink_has_and_no_commit_is_done_again_with_its_state(
    spark: SparkSession, tmp_path: Path, provider: str, meanwhile: bool
) -> None:
    workload, checkpoint, back = WORKLOADS["dedup"], tmp_path / "ck", tmp_path / "back"
    sink = DirectoryStore(tmp_path / "out")

    def run(where: Path, files: int) -> None:
        write_files(tmp_path / "in", range(files))
        query = workload.start(
            spark,
            provider=provider,
            inputs=tmp_path / "in",
            checkpoint=str(where),
            sink=tmp_path / "out",
        )
        finish(query, workload, where, files=files)

    run(checkpoint, 3)
    last = _newest(checkpoint / "commits")
    # As a driver leaves it that dies after its sink's commit, and before its own.
    for name in (f"{last}", f".{last}.crc"):
        (checkpoint / "commits" / name).unlink()
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    savepoint = repository.capture(
        DirectoryStore(checkpoint), CaptureRequest(job="job", name="died")
    ).savepoint
    if meanwhile:
        run(checkpoint, 5)
    policy = SinkPolicy.TRUNCATE if meanwhile else SinkPolicy.REFUSE
    request = MaterializeRequest(mode=Mode.RESUME, sinks={"": sink}, sink_policy=policy)
    repository.materialize(savepoint, DirectoryStore(back), request)
    run(back, 6)

    assert savepoint.manifest.queries[0].pending
    assert savepoint.manifest.queries[0].batch == last - 1
    there = position(back)
    assert there.files == 6
    assert_state(spark, workload, str(back), there)
    assert_output(workload, tmp_path / "out", there)
