"""What a worker does with real Spark: loading the state of a savepoint, and trying code on it."""

import os
import shutil
import tarfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkpoint.checkpoint.endings import END_BYTES
from sparkpoint.savepoint import Repository
from sparkpoint.storage import DirectoryStore
from sparkpoint.worker.model import Answer
from sparkpoint.worker.process import answer_to
from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.inputs import SCHEMA, write_files
from tests.spark.workloads.judge import finish
from tests.unit.cli.running import run

_GOLDEN = Path(__file__).parents[1] / "unit/checkpoint/golden/checkpoints.tar.xz"
_CASES = ("aggregation-hdfs", "aggregation-format-2", "join-changelog")


def ask(*arguments: str | Path) -> Answer:
    return answer_to([str(each) for each in arguments], os.environ)


def capture(folder: Path, name: str) -> Answer:
    return ask(
        *("capture", "--epoch-dir", folder / "epoch-1", "--job", "shop/visits", "--epoch", "1"),
        *("--repository", folder / "repository", "--name", name),
    )


def verify(folder: Path, name: str) -> Answer:
    return ask(
        *("verify", "--repository", folder / "repository", "--job", "shop/visits"),
        *("--name", name, "--deep"),
    )


@pytest.fixture
def epoch(tmp_path: Path) -> Path:
    """Checkpoints that this version of Spark has written, of several kinds of state."""
    with tarfile.open(_GOLDEN) as archive:
        wanted = [
            each
            for each in archive.getmembers()
            if each.name.split("/")[0] == "4.3.0" and each.name.split("/")[1] in _CASES
        ]
        archive.extractall(tmp_path / "golden", wanted, filter="data")
    (tmp_path / "golden/4.3.0").rename(tmp_path / "epoch-1")
    return tmp_path / "epoch-1"


def test_a_deep_verification_loads_every_kind_of_state_and_counts_it(
    spark: SparkSession, tmp_path: Path, epoch: Path
) -> None:
    workload = WORKLOADS["transform"]
    write_files(tmp_path / "in", range(2))
    query = workload.start(
        spark,
        provider="rocksdb-changelog",
        inputs=tmp_path / "in",
        checkpoint=str(epoch / "variables"),
        sink=tmp_path / "out",
    )
    finish(query, workload, epoch / "variables", files=2)

    captured = capture(tmp_path, "a")
    answer = verify(tmp_path, "a")

    assert captured.batches.keys() == {*_CASES, "variables"}
    assert (answer.answer, answer.problems) == ("Verified", ())
    assert answer.details is not None
    rows = {each.name: each.rows for each in answer.details.queries}
    assert (rows["aggregation-hdfs"], rows["aggregation-format-2"]) == (5, 5)
    assert rows["join-changelog"] == 64
    assert rows["variables"] is not None
    assert rows["variables"] > 0


def test_state_that_spark_cannot_load_is_corrupt_although_every_digest_is_right(
    tmp_path: Path, epoch: Path
) -> None:
    """The checkpoint was damaged before it was captured, and not at its end, which is looked at."""
    (delta,) = (epoch / "aggregation-hdfs/state/0/0").glob("11.delta")
    delta.write_bytes(b"not what Spark wrote" + delta.read_bytes()[-END_BYTES:])
    (delta.parent / f".{delta.name}.crc").unlink(missing_ok=True)
    capture(tmp_path, "a")

    answer = verify(tmp_path, "a")

    assert answer.answer == "Corrupt"
    (problem,) = answer.problems
    assert problem.startswith("aggregation-hdfs: [CANNOT_LOAD_STATE_STORE.")
    assert "cannot be restored" in answer.message


def test_damage_that_spark_does_not_notice_is_told_and_nothing_is_made_of_it(
    tmp_path: Path, epoch: Path
) -> None:
    """Of RocksDB, Spark takes what is before the damage for all there is."""
    for each in _CASES:
        if each != "aggregation-format-2":
            shutil.rmtree(epoch / each)
    for path in epoch.glob("*/state/**/*.sst"):
        data = bytearray(path.read_bytes())
        data[10] ^= 0xFF
        path.write_bytes(data)
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    capture(tmp_path, "a")

    answer = verify(tmp_path, "a")
    outcomes = [
        run("state", command, "a", "--repository", str(tmp_path / "repository"), *more)
        for command, *more in (("query",), ("repartition", "--partitions", "3"))
    ]

    assert answer.answer == "Corrupt"
    assert answer.problems[0].startswith("aggregation-format-2: state/0/")
    assert ".sst is damaged: block checksum mismatch" in answer.problems[0]
    for outcome in outcomes:
        assert outcome.code == 1
        assert ".sst is damaged: block checksum mismatch" in outcome.err
    assert len(Repository.open(DirectoryStore(tmp_path / "repository")).list().savepoints) == 1


_SCRIPT = """
import sys
from pyspark.sql import SparkSession

source, *keys = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
totals = rows.json(source).groupBy(*keys).count()
totals.writeStream.queryName("totals").outputMode("update").format("noop").start()
spark.streams.awaitAnyTermination()
"""


def rehearse(folder: Path, *keys: str) -> Answer:
    return ask(
        *("rehearse", "--savepoint", "a", "--repository", folder / "repository"),
        *("--job", "shop/visits", "--conf", "spark.sql.shuffle.partitions=2"),
        *("--conf", "spark.log.level=ERROR", "--scratch", folder / "scratch"),
        *("--", folder / "script.py", folder / "in"),
        *keys,
    )


def test_code_is_tried_on_a_savepoint_and_nothing_comes_of_it_but_the_verdict(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_files(tmp_path / "in", range(2))
    rows = spark.readStream.schema(SCHEMA).json(str(tmp_path / "in"))
    writer = rows.groupBy("k").count().writeStream.outputMode("update").format("noop")
    checkpoint = str(tmp_path / "epoch-1/totals")
    writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    assert writer.start().awaitTermination(120)
    capture(tmp_path, "a")
    (tmp_path / "script.py").write_text(_SCRIPT)
    (tmp_path / "scratch").mkdir()

    same, changed = rehearse(tmp_path, "k"), rehearse(tmp_path, "k", "side")

    assert (same.answer, same.problems) == ("Compatible", ())
    assert changed.answer == "Incompatible"
    (problem,) = changed.problems
    assert problem.startswith("query totals: STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE: ")
    assert list((tmp_path / "scratch").iterdir()) == []
