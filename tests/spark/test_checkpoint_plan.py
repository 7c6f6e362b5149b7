"""Copying exactly the planned files gives a checkpoint that real Spark continues, exactly."""

import random
import shutil
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkpoint.checkpoint.errors import IncompleteError
from sparkpoint.checkpoint.model import BatchPlan, Role
from sparkpoint.checkpoint.plan import batch_numbers, list_checkpoint, missing_files, plan_batch
from sparkpoint.checkpoint.reader import StoreReader
from sparkpoint.checkpoint.rewrite import rewrite_operator, rewrite_query_id
from sparkpoint.checkpoint.sink import SINK_LOG, seed_sink
from sparkpoint.storage import DirectoryStore, Store, open_store
from sparkpoint.storage.errors import NotFoundError
from tests.spark.workloads import COMBINATIONS, WORKLOADS
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import assert_output, assert_state, finish, position
from tests.spark.workloads.live import running_workload
from tests.spark.workloads.session import s3_conf
from tests.support.s3 import running_s3_server

_FIRST, _ALL = 4, 6
# test_savepoints.py goes through every combination; here a share keeps the planner honest.
_SHARE = sorted(random.Random(1).sample(COMBINATIONS, 2))


class Job:
    """A workload with its input, checkpoint and sink in one folder."""

    def __init__(self, spark: SparkSession, folder: Path, name: str, provider: str) -> None:
        self.spark, self.folder, self.provider = spark, folder, provider
        self.workload = WORKLOADS[name]
        self.inputs, self.sink = folder / "in", folder / "out"
        self.checkpoint = folder / "ck"

    def run(self, files: int) -> None:
        """Process the input up to this many files and end."""
        write_files(self.inputs, range(files))
        query = self.workload.start(
            self.spark,
            provider=self.provider,
            inputs=self.inputs,
            checkpoint=str(self.checkpoint),
            sink=self.sink,
        )
        finish(query, self.workload, self.checkpoint, files=files)

    def plan(self, batch: int | None = None, held: Mapping[str, int] | None = None) -> BatchPlan:
        return plan_batch(DirectoryStore(self.checkpoint), batch=batch, held=held)

    def restored(self, plan: BatchPlan, *, resume: bool, parent: Path | None = None) -> "Job":
        """The same job on a copy of exactly the planned files, in another place."""
        other = Job(self.spark, self.folder / "restored", self.workload.name, self.provider)
        other.inputs = self.inputs
        other.sink = self.sink if resume else other.folder / "out"
        source = DirectoryStore(self.checkpoint)
        copy_plan(plan, source, other.checkpoint, resume=resume, parent=parent)
        return other


def copy_plan(
    plan: BatchPlan, source: Store, target: Path, *, resume: bool, parent: Path | None = None
) -> None:
    """Copy what the plan names and nothing else, with what must be rewritten on the way."""
    held = DirectoryStore(parent) if parent else source
    root = f"file:{target}"
    for file in plan.files:
        if file.role is Role.PENDING and not resume:
            continue
        data = rewrite_operator(
            (held if file.held else source).read(file.path), file.path, root=root
        )
        if file.role is Role.METADATA and not resume:
            data = rewrite_query_id(data, str(uuid.uuid4()))
        (target / file.path).parent.mkdir(parents=True, exist_ok=True)
        (target / file.path).write_bytes(data)


@pytest.mark.parametrize(("name", "provider"), _SHARE)
def test_copy_of_the_planned_files_continues_exactly_without_the_original(
    spark: SparkSession, tmp_path: Path, name: str, provider: str
) -> None:
    job = Job(spark, tmp_path, name, provider)
    job.run(_FIRST)
    here = position(job.checkpoint)

    copy = job.restored(job.plan(), resume=True)
    shutil.move(job.checkpoint, tmp_path / "gone")
    assert_state(spark, job.workload, str(copy.checkpoint), here)
    copy.run(_ALL)

    there = position(copy.checkpoint)
    assert there.files == _ALL
    assert_state(spark, copy.workload, str(copy.checkpoint), there)
    assert_output(copy.workload, copy.sink, there)


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        pytest.param("aggregation", "rocksdb", marks=pytest.mark.soak),
        pytest.param("aggregation", "hdfs", marks=pytest.mark.soak),
        ("chained", "rocksdb-v2"),
    ],
)
def test_fork_from_an_older_batch_writes_only_what_came_after_it(
    spark: SparkSession, tmp_path: Path, name: str, provider: str
) -> None:
    job = Job(spark, tmp_path, name, provider)
    job.run(_ALL)
    middle = position(job.checkpoint, batch=2)

    fork = job.restored(job.plan(batch=2), resume=False)
    for entry, data in seed_sink(middle.batch).items():
        (fork.sink / SINK_LOG).mkdir(parents=True, exist_ok=True)
        (fork.sink / SINK_LOG / entry).write_bytes(data)
    assert_state(spark, fork.workload, str(fork.checkpoint), middle)
    fork.run(_ALL)

    there = position(fork.checkpoint)
    assert_state(spark, fork.workload, str(fork.checkpoint), there)
    assert_output(fork.workload, fork.sink, there, since=middle)
    columns = list(fork.workload.columns)
    read_by_spark = spark.read.json(str(fork.sink)).select(*columns).count()
    assert read_by_spark == fork.workload.read_output(fork.sink).total()


@pytest.mark.parametrize(
    "provider", [pytest.param("hdfs", marks=pytest.mark.soak), "rocksdb-changelog"]
)
def test_base_of_the_parent_is_used_again_after_newer_snapshots_and_their_purge(
    spark: SparkSession, tmp_path: Path, provider: str
) -> None:
    job = Job(spark, tmp_path, "dedup", provider)
    job.run(5)
    first = job.plan()
    parent = tmp_path / "parent"
    copy_plan(first, DirectoryStore(job.checkpoint), parent, resume=True)
    held = {file.path: file.size for file in first.files}
    job.run(11)
    _forget_bases(job.checkpoint, first)

    second = job.plan(held=held)
    copy = job.restored(second, resume=True, parent=parent)

    assert [s.base_versions for s in second.operators[0].stores] == [
        s.base_versions for s in first.operators[0].stores
    ]
    assert_state(spark, job.workload, str(copy.checkpoint), position(job.checkpoint))
    copy.run(12)
    assert_state(spark, copy.workload, str(copy.checkpoint), position(copy.checkpoint))


def _forget_bases(checkpoint: Path, plan: BatchPlan) -> None:
    """Delete the state files of an older plan, as Spark's maintenance would in a longer run."""
    for file in plan.files:
        if file.role is Role.STATE:
            (checkpoint / file.path).unlink()


def test_files_of_a_plan_are_complete_and_none_of_its_state_can_be_spared(
    spark: SparkSession, tmp_path: Path
) -> None:
    job = Job(spark, tmp_path, "aggregation", "rocksdb-changelog")
    job.run(_FIRST)
    plan = job.plan()
    store = DirectoryStore(job.checkpoint)
    listed = {entry.path: entry for entry in store.list()}
    files = {file.path: listed[file.path] for file in plan.files}

    assert missing_files(files, StoreReader(store), batch=plan.batch) == ()
    for spared in (file.path for file in plan.files if file.role is Role.STATE):
        rest = {path: entry for path, entry in files.items() if path != spared}
        assert missing_files(rest, StoreReader(store), batch=plan.batch), spared


@pytest.mark.parametrize(("name", "warned"), [("aggregation", True), ("stateless", False)])
def test_lost_state_is_told_by_a_batch_without_input_and_no_stateless_query_is_suspected(
    spark: SparkSession, tmp_path: Path, name: str, warned: bool
) -> None:
    job = Job(spark, tmp_path, name, "hdfs")
    job.run(_FIRST)
    shutil.rmtree(job.checkpoint / "state", ignore_errors=True)

    warnings = job.plan().warnings

    assert [("it seems to be lost" in text) for text in warnings] == [True] * warned


@pytest.mark.soak
def test_live_query_is_planned_and_copied_while_it_purges(
    spark: SparkSession, tmp_path: Path
) -> None:
    job = Job(spark, tmp_path, "aggregation", "rocksdb-changelog")
    write_files(job.inputs, range(60))
    confs = {"spark.sql.streaming.minBatchesToRetain": "2"}
    with running_workload(
        "aggregation",
        provider="rocksdb-changelog",
        inputs=job.inputs,
        checkpoint=str(job.checkpoint),
        sink=job.sink,
        log=tmp_path / "log",
        confs=confs,
    ) as live:
        copies = [
            _copy_alive(DirectoryStore(job.checkpoint), tmp_path / f"copy-{i}", after=3 * i)
            for i in range(1, 5)
        ]
        live.stop()

    for copy in copies:
        assert_state(spark, job.workload, str(copy), position(copy))


@pytest.mark.soak
@pytest.mark.s3
def test_live_query_on_s3_is_planned_and_copied(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(spark, tmp_path, "aggregation", "rocksdb-v2")
    write_files(job.inputs, range(5))

    with running_s3_server(tmp_path / "s3") as server:
        for key, value in server.environment().items():
            monkeypatch.setenv(key, value)
        bucket = server.make_bucket("checkpoints")
        with running_workload(
            "aggregation",
            provider="rocksdb-v2",
            inputs=job.inputs,
            checkpoint=f"s3a://{bucket}/job/ck",
            sink=job.sink,
            log=tmp_path / "log",
            confs=s3_conf(server.endpoint_url, server.access_key, server.secret_key),
        ) as live:
            store = open_store(f"s3://{bucket}/job/ck", server.endpoint_url)
            copy = _copy_alive(store, tmp_path / "copy", after=4)
            live.stop()

    assert_state(spark, job.workload, str(copy), position(copy))


def _copy_alive(store: Store, target: Path, *, after: int) -> Path:
    """Copy at the newest batch from `after` on; a file purged meanwhile means: again, newer."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        shutil.rmtree(target, ignore_errors=True)
        if max(batch_numbers(list_checkpoint(store), "commits"), default=-1) < after:
            time.sleep(0.1)
            continue
        try:
            copy_plan(plan_batch(store), store, target, resume=True)
        except (IncompleteError, NotFoundError):
            continue
        return target
    raise AssertionError(f"no copy of {store.uri} within three minutes")
