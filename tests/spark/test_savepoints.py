"""Savepoints of running queries restore exactly: every operator, every provider, disk and S3.

Not here, because Spark has no such thing: transformWithState on the HDFS-backed provider.
"""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sparkpoint.checkpoint.model import Role
from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository, SinkPolicy
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.describe import StateCount
from sparkpoint.storage import DirectoryStore, Store
from sparkpoint.storage.digest import is_md5
from tests.spark.places import (
    Place,
    assert_rows_told,
    assert_state_at,
    await_position,
    last_count,
    position_at,
)
from tests.spark.workloads import COMBINATIONS, WORKLOADS
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import Position, assert_output
from tests.support.s3 import S3Server

_FILES = 6
_CAPTURES = (1, 3)
"""The batches from which on a running query is captured; the last one is what `resume` gets."""

# One combination of an operator, the providers in turns: on a directory six that the seed picks,
# on S3 two of all. The others are in `make soak`.
_IN_TURNS = [
    (name, workload.providers[row % len(workload.providers)])
    for row, (name, workload) in enumerate(WORKLOADS.items())
]
_ON_DISK = sorted(random.Random(5).sample(_IN_TURNS, 6))
_SHARE = sorted(random.Random(4).sample(COMBINATIONS, 2))


def _others(chosen: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(set(COMBINATIONS) - set(chosen))


@pytest.fixture
def directory(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "place"))


@pytest.fixture
def bucket(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for key, value in s3_server.environment().items():
        monkeypatch.setenv(key, value)
    name = s3_server.make_bucket(tmp_path.name.replace("_", "-").lower()[:50].strip("-"))
    return Place(f"s3://{name}", s3_server.endpoint_url)


class Job:
    """A workload, its input and its sink; checkpoints and the repository are in a place."""

    def __init__(
        self, spark: SparkSession, place: Place, folder: Path, name: str, kind: str
    ) -> None:
        self.spark, self.place, self.folder = spark, place, folder
        self.workload, self.provider = WORKLOADS[name], kind
        self.inputs = folder / "in"

    def start(self, checkpoint: str, sink: Path, *, available_now: bool = False) -> StreamingQuery:
        return self.workload.start(
            self.spark,
            provider=self.provider,
            inputs=self.inputs,
            checkpoint=self.place.spark_uri(checkpoint),
            sink=sink,
            available_now=available_now,
        )

    def run_to_end(self, checkpoint: str, sink: Path) -> tuple[Position, StateCount | None]:
        """Process all input, end, and tell how far it came and what state it had then."""
        query = self.start(checkpoint, sink, available_now=True)
        try:
            there = await_files(query, self.place.store(checkpoint), _FILES)
        finally:
            query.stop()
        return there, last_count(query)


def await_files(query: StreamingQuery, store: Store, files: int) -> Position:
    """Wait until so much input is committed; the newest position if the query has ended by then."""

    def alive() -> None:
        failure = query.exception()
        assert failure is None, failure

    found = await_position(store, files=files, alive=alive)
    return found if query.isActive else position_at(store) or found


def _captured_while_it_runs(job: Job, repository: Repository) -> list[Savepoint]:
    """Savepoints at several batches of a query that goes on meanwhile."""
    source = job.place.store("ck")
    write_files(job.inputs, range(_FILES))
    query = job.start("ck", job.folder / "out")
    savepoints = []
    try:
        for batch in _CAPTURES:
            await_files(query, source, batch + 1)
            request = CaptureRequest(job="job", name=f"at-{batch}", spark_version="4.3.0")
            savepoints.append(repository.capture(source, request).savepoint)
            assert query.isActive
    finally:
        query.stop()
    return savepoints


def _check_restored(job: Job, repository: Repository, savepoint: Savepoint) -> None:
    """Fork the savepoint into a fresh place, run all input, compare state and output with truth."""
    name, sink = f"fork-{savepoint.manifest.name}", job.folder / f"sink-{savepoint.manifest.name}"
    target = job.place.store(name)
    sinks = {"": DirectoryStore(sink)} if job.workload.file_sink else {}
    repository.materialize(
        savepoint,
        target,
        MaterializeRequest(mode=Mode.FORK, sink_policy=SinkPolicy.SEED, sinks=sinks),
    )
    since = position_at(target)
    assert since is not None
    assert since.batch == savepoint.manifest.queries[0].batch
    assert_state_at(job.spark, job.workload, job.place, name, since)

    there, count = job.run_to_end(name, sink)

    assert there.files == _FILES
    assert_state_at(job.spark, job.workload, job.place, name, there)
    assert_output(job.workload, sink, there, since=since)
    request = CaptureRequest(job="job", name=name, counts={"": count} if count else {})
    again = repository.capture(target, request).savepoint.manifest.queries[0]
    assert_rows_told(job.spark, again, job.place.spark_uri(name), count)


def _check_matrix(spark: SparkSession, place: Place, folder: Path, name: str, kind: str) -> None:
    job = Job(spark, place, folder, name, kind)
    repository = Repository.init(place.store("repository"))

    savepoints = _captured_while_it_runs(job, repository)
    place.forget("ck")

    assert all(found.good for found in repository.verify(savepoints))
    for savepoint in savepoints:
        _check_restored(job, repository, savepoint)


@pytest.mark.parametrize(("name", "kind"), _ON_DISK)
def test_savepoints_of_a_running_query_restore_exactly_from_a_directory(
    spark: SparkSession, directory: Place, tmp_path: Path, name: str, kind: str
) -> None:
    _check_matrix(spark, directory, tmp_path, name, kind)


@pytest.mark.soak
@pytest.mark.parametrize(("name", "kind"), _others(_ON_DISK))
def test_savepoints_restore_exactly_from_a_directory_in_all_other_combinations(
    spark: SparkSession, directory: Place, tmp_path: Path, name: str, kind: str
) -> None:
    _check_matrix(spark, directory, tmp_path, name, kind)


@pytest.mark.s3
@pytest.mark.parametrize(("name", "kind"), _SHARE)
def test_savepoints_of_a_running_query_restore_exactly_from_s3(
    spark: SparkSession, bucket: Place, tmp_path: Path, name: str, kind: str
) -> None:
    _check_matrix(spark, bucket, tmp_path, name, kind)


@pytest.mark.s3
def test_what_spark_wrote_and_the_server_copied_unread_restores_exactly(
    spark: SparkSession, bucket: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The state of a test is small: so every file is one of those that are not put into packs.
    monkeypatch.setattr("sparkpoint.savepoint.taking.SMALL", 1)
    job = Job(spark, bucket, tmp_path, "aggregation", "rocksdb-changelog")
    repository = Repository.init(bucket.store("repository"))

    savepoints = _captured_while_it_runs(job, repository)
    bucket.forget("ck")

    for savepoint in savepoints:
        files = repository.files(savepoint).files.values()
        assert savepoint.manifest.format == 2
        assert all(is_md5(record.digest) for record in files if record.role is Role.STATE)
        _check_restored(job, repository, savepoint)
    assert all(found.good for found in repository.verify(savepoints))


@pytest.mark.s3
@pytest.mark.soak
@pytest.mark.parametrize(("name", "kind"), _others(_SHARE))
def test_savepoints_restore_exactly_from_s3_in_all_other_combinations(
    spark: SparkSession, bucket: Place, tmp_path: Path, name: str, kind: str
) -> None:
    _check_matrix(spark, bucket, tmp_path, name, kind)
