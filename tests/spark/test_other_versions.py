"""Savepoints of queries that run on another Spark version; ours is only the witness."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dev.sparks import other_spark
from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository, SinkPolicy
from sparkpoint.storage import DirectoryStore
from tests.spark.places import Place, assert_state_at, await_position, position_at
from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import assert_output
from tests.spark.workloads.live import LiveWorkload, running_workload

_VERSION = "4.2.1"
_FILES = 5


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("aggregation", "hdfs"),
        pytest.param("transform", "rocksdb-v2", marks=pytest.mark.soak),
        pytest.param("join", "rocksdb-changelog", marks=pytest.mark.soak),
    ],
)
def test_savepoint_of_a_query_on_the_second_version_restores_exactly_there(
    spark: SparkSession, tmp_path: Path, name: str, provider: str
) -> None:
    place, workload = Place(str(tmp_path)), WORKLOADS[name]
    write_files(tmp_path / "in", range(_FILES))
    repository = Repository.init(place.store("repository"))
    source = place.store("ck")
    with _running(tmp_path, name, provider, checkpoint="ck", sink="out") as live:
        await_position(source, files=3, alive=lambda: _check(live))
        request = CaptureRequest(job="job", name="live", spark_version=_VERSION)
        savepoint = repository.capture(source, request).savepoint
        live.stop()
    place.forget("ck")

    sinks = {"": DirectoryStore(tmp_path / "fork-out")} if workload.file_sink else {}
    fork = MaterializeRequest(mode=Mode.FORK, sink_policy=SinkPolicy.SEED, sinks=sinks)
    repository.materialize(savepoint, place.store("fork"), fork)
    since = position_at(place.store("fork"))
    with _running(tmp_path, name, provider, checkpoint="fork", sink="fork-out") as live:
        there = await_position(place.store("fork"), files=_FILES, alive=lambda: _check(live))
        live.stop()

    there = position_at(place.store("fork")) or there
    assert_state_at(spark, workload, place, "fork", there)
    assert_output(workload, tmp_path / "fork-out", there, since=since)


def _running(
    folder: Path, name: str, provider: str, *, checkpoint: str, sink: str
) -> AbstractContextManager[LiveWorkload]:
    return running_workload(
        name,
        provider=provider,
        inputs=folder / "in",
        checkpoint=str(folder / checkpoint),
        sink=folder / sink,
        log=folder / f"{checkpoint}.log",
        environment=other_spark(_VERSION),
    )


def _check(live: LiveWorkload) -> None:
    assert live.process.poll() is None, live.tail()
