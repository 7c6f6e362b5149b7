"""Queries go on exactly after their state was spread over another number of partitions.

Each starts with three partitions, gets more, runs on, gets fewer, and runs to the end of its input:
state and output are the recomputed truth, key by key. The session asks for three all along, so that
only what the checkpoint says can be what counts.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository, SinkPolicy
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.state import RepartitionRequest, repartition, survey
from sparkpoint.storage import DirectoryStore
from tests.spark.places import Place, assert_state_at, position_at
from tests.spark.state.workloads import GLOBAL, LIMIT, WITHIN
from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.base import Workload
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import Position, assert_output

_PARTITIONS = "spark.sql.shuffle.partitions"
_STEPS = ((2, 3), (4, 5), (6, 2))
"""(files of input in all, partitions): the first as Spark began, the others after a move."""
_NAMES = ("aggregation", "dedup", "session", "join", "chained", "pandas")
_CASES = [*(WORKLOADS[name] for name in _NAMES), WITHIN, GLOBAL, LIMIT]
_ONE_PARTITION = (GLOBAL.name, LIMIT.name)


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The shared session, whose number of partitions is put back."""
    before = spark.conf.get(_PARTITIONS)
    yield spark
    spark.conf.set(_PARTITIONS, before or "2")


def _run(spark: SparkSession, workload: Workload, folder: Path, name: str) -> Position:
    """Process all input that is there; how far it came."""
    query = workload.start(
        spark,
        provider="hdfs",
        inputs=folder / "in",
        checkpoint=str(folder / name),
        sink=folder / f"out-{name}",
        confs={_PARTITIONS: str(_STEPS[0][1])},
    )
    try:
        assert query.awaitTermination(500), "the query is still running"
    finally:
        query.stop()
    at = position_at(DirectoryStore(folder / name))
    assert at is not None
    return at


def _move(
    repository: Repository, workload: Workload, folder: Path, name: str, partitions: int
) -> tuple[Savepoint, str]:
    """Capture a checkpoint, repartition it, and fork the result to a new place."""
    source = DirectoryStore(folder / name)
    before = repository.capture(source, CaptureRequest(job="job", name=f"{name}-end")).savepoint
    result = repartition(repository, before, RepartitionRequest(partitions=partitions))
    there = f"at-{partitions}"
    sinks = {"": DirectoryStore(folder / f"out-{there}")} if workload.file_sink else {}
    fork = MaterializeRequest(mode=Mode.FORK, sink_policy=SinkPolicy.SEED, sinks=sinks)
    repository.materialize(result.savepoint, DirectoryStore(folder / there), fork)
    parent = result.savepoint.manifest.parent
    assert parent is not None
    assert parent.id == before.id
    return result.savepoint, there


@pytest.mark.parametrize("workload", _CASES, ids=lambda workload: workload.name)
def test_a_query_goes_on_exactly_with_more_and_with_fewer_partitions(
    session: SparkSession, tmp_path: Path, workload: Workload
) -> None:
    place, repository = Place(str(tmp_path)), Repository.init(DirectoryStore(tmp_path / "repo"))
    write_files(tmp_path / "in", range(_STEPS[0][0]))
    name, since = "ck", _run(session, workload, tmp_path, "ck")

    for files, partitions in _STEPS[1:]:
        savepoint, name = _move(repository, workload, tmp_path, name, partitions)
        expected = 1 if workload.name in _ONE_PARTITION else partitions
        spread = survey(repository, savepoint)
        assert {len(store.stored) for store in spread} == {expected}
        assert_state_at(session, workload, place, name, since)

        write_files(tmp_path / "in", range(files))
        at = _run(session, workload, tmp_path, name)

        assert at.files == files
        assert_state_at(session, workload, place, name, at)
        assert_output(workload, tmp_path / f"out-{name}", at, since=since)
        live = {
            path.parent.name
            for path in (tmp_path / name).glob(f"state/0/[0-9]*/{at.batch + 1}.delta")
        }
        if workload.name != "join":
            assert live == {str(number) for number in range(expected)}
        since = at

    assert all(found.good for found in repository.verify(repository.list().savepoints))
