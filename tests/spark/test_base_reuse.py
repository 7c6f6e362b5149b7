"""State in format 2: a new snapshot in the checkpoint costs no new base in the repository.

After a snapshot, changelogs name no version before it, and Spark looks no further. A savepoint goes
on from the base that is stored, and its restore rewrites what the last changelogs name.
"""

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.streaming.query import StreamingQuery

from sparkpoint.checkpoint.lineage import lineage_of_changelog
from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.storage import DirectoryStore
from tests.spark.workloads.base import Known, read_store
from tests.spark.workloads.providers import PROVIDERS

_CODEC = "spark.sql.streaming.stateStore.compression.codec"
_PARTITIONS = 2
_KEYS = 20_000
_CHANGED = _KEYS // 400
"""Six batches between two captures change one key in a hundred and a half."""


class Counting:
    """A query that counts by key: all keys in the first batch, a few in every other."""

    def __init__(self, spark: SparkSession, folder: Path, *, codec: str) -> None:
        self.spark, self.inputs = spark, folder / "in"
        self.confs = {**PROVIDERS["rocksdb-v2"], _CODEC: codec}
        self.inputs.mkdir(parents=True)
        self.files = 0

    def add_file(self) -> None:
        """One more file of input, which appears whole; Spark takes one a batch."""
        lines = "".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in _rows(self.files))
        hidden = self.inputs / f".{self.files:05d}.json"
        hidden.write_text(lines)
        hidden.rename(self.inputs / f"{self.files:05d}.json")
        self.files += 1

    @contextmanager
    def running(self, checkpoint: Path) -> Iterator["Running"]:
        for key, value in self.confs.items():
            self.spark.conf.set(key, value)
        stream = self.spark.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1)
        counted = stream.json(str(self.inputs)).groupBy("k").agg(F.count("*"), F.sum("v"))
        writer = counted.writeStream.format("noop").outputMode("update")
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        try:
            yield Running(self, query, checkpoint)
        finally:
            query.stop()
            self.spark.conf.unset(_CODEC)

    def assert_state(self, checkpoint: Path, batch: int) -> None:
        expected: dict[Known, tuple[int, int]] = {}
        for number in range(batch + 1):
            for k, v in _rows(number):
                n, total = expected.get((k,), (0, 0))
                expected[k,] = (n + 1, total + v)
        value = ["value.count", "value.sum"]
        found = read_store(self.spark, str(checkpoint), batch, key=["key.k"], value=value)
        assert found == expected


class Running:
    """The query at work."""

    def __init__(self, job: Counting, query: StreamingQuery, checkpoint: Path) -> None:
        self._job, self._query, self._checkpoint = job, query, checkpoint

    def process(self) -> None:
        """Another file of input, committed."""
        self._job.add_file()
        commit = self._checkpoint / "commits" / str(self._job.files - 1)
        self._wait(commit.exists)

    def process_past_a_snapshot(self) -> None:
        """Until every partition has a newer snapshot, which the last changelog begins with."""
        before = self._snapshots()
        for _ in range(4):
            self.process()
        self._wait(
            lambda: all(new > old for new, old in zip(self._snapshots(), before, strict=True))
        )
        self.process()
        self.process()

    def _snapshots(self) -> list[int]:
        folders = [self._checkpoint / "state" / "0" / str(p) for p in range(_PARTITIONS)]
        return [max((_version(z) for z in f.glob("*.zip")), default=0) for f in folders]

    def _wait(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            failure = self._query.exception()
            assert failure is None, failure
            assert time.monotonic() < deadline
            time.sleep(0.05)


def _version(path: Path) -> int:
    return int(path.name.split("_")[0])


def _rows(number: int) -> list[tuple[int, int]]:
    chance = random.Random(number)
    keys = range(_KEYS) if number == 0 else chance.sample(range(_KEYS), _CHANGED)
    return [(key, chance.randrange(1 << 40)) for key in keys]


def _bases(savepoint: Savepoint) -> list[int]:
    return savepoint.manifest.queries[0].operators[0].stores[0].base_versions


def _told(checkpoint: Path, batch: int) -> list[int]:
    """The oldest version that the last changelog of each partition names."""
    oldest = []
    for partition in range(_PARTITIONS):
        (path,) = (checkpoint / f"state/0/{partition}").glob(f"{batch + 1}_*.changelog")
        oldest.append(min(lineage_of_changelog(path.read_bytes(), path.name)))
    return oldest


def test_captures_after_new_snapshots_store_no_new_base_and_restore_exactly(
    spark: SparkSession, tmp_path: Path
) -> None:
    job = Counting(spark, tmp_path, codec="lz4")
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    live, restored = tmp_path / "ck", tmp_path / "restored"

    savepoints = _captured_around_snapshots(job, repository, live)

    first, *later = savepoints
    for savepoint in later:
        assert savepoint.manifest.files.new_bytes <= first.manifest.files.new_bytes / 10
        assert _bases(savepoint) == _bases(first)
        batch = savepoint.manifest.queries[0].batch
        assert all(
            told > base for told, base in zip(_told(live, batch), _bases(first), strict=True)
        )
    assert all(found.good for found in repository.verify(savepoints))
    for savepoint in savepoints:
        target = tmp_path / f"fork-{savepoint.manifest.name}"
        repository.materialize(
            savepoint, DirectoryStore(target), MaterializeRequest(mode=Mode.FORK)
        )
        batch = savepoint.manifest.queries[0].batch
        job.assert_state(target, batch)
        job.assert_state(target, batch - 1)

    # What was restored goes on, and its savepoints still start from the same base.
    live.rename(tmp_path / "gone")
    repository.materialize(savepoints[-1], DirectoryStore(restored))
    with job.running(restored) as running:
        running.process_past_a_snapshot()
        after = _capture(repository, restored, "after")
    job.assert_state(restored, job.files - 1)
    assert _bases(after) == _bases(first)
    assert after.manifest.files.new_bytes <= first.manifest.files.new_bytes / 10
    again = tmp_path / "again"
    repository.materialize(after, DirectoryStore(again))
    job.assert_state(again, after.manifest.queries[0].batch)


def test_changelogs_that_cannot_be_rewritten_get_a_new_base_and_restore_exactly(
    spark: SparkSession, tmp_path: Path
) -> None:
    job = Counting(spark, tmp_path, codec="zstd")
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))

    savepoints = _captured_around_snapshots(job, repository, tmp_path / "ck")

    assert _bases(savepoints[-1]) != _bases(savepoints[0])
    target = tmp_path / "restored"
    repository.materialize(savepoints[-1], DirectoryStore(target))
    job.assert_state(target, savepoints[-1].manifest.queries[0].batch)


def _captured_around_snapshots(
    job: Counting, repository: Repository, checkpoint: Path
) -> list[Savepoint]:
    savepoints = []
    with job.running(checkpoint) as running:
        running.process()
        for number in range(3):
            running.process_past_a_snapshot()
            savepoints.append(_capture(repository, checkpoint, f"after-{number}"))
    return savepoints


def _capture(repository: Repository, checkpoint: Path, name: str) -> Savepoint:
    request = CaptureRequest(job="job", name=name)
    return repository.capture(DirectoryStore(checkpoint), request).savepoint
