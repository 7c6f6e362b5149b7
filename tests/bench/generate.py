"""Real state for the figures: `python -m tests.bench.generate FOLDER KEYS`, run once and cached.

Spark aggregates keys with incompressible values into RocksDB with changelog, and the checkpoint is
frozen, by hard links, at the moments of tests/bench/stages.py.
"""

import os
import random
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession, functions

from tests.bench.ground import link_tree
from tests.bench.stages import (
    CHANGED,
    MIN_DELTAS,
    PARTITIONS,
    SNAPSHOT_AT_ONCE,
    STAGES,
    VALUE_BYTES,
)
from tests.spark.workloads.providers import PROVIDERS
from tests.spark.workloads.session import build_session

__all__ = ["main"]

_PER_FILE = 50_000
_WAIT = 1200.0


def main(arguments: list[str]) -> int:
    """Fill the folder with one folder per stage."""
    folder, keys = Path(arguments[0]), int(arguments[1])
    inputs, checkpoint = folder / "inputs", folder / "live"
    inputs.mkdir()
    spark = build_session(
        "bench",
        {
            "spark.driver.memory": "3g",
            "spark.sql.shuffle.partitions": str(PARTITIONS),
            "spark.sql.codegen.wholeStage": "true",
            **PROVIDERS["rocksdb-changelog"],
        },
    )
    rng = random.Random("sparkpoint")
    for batch, (stage, confs) in enumerate(STAGES.items()):
        chosen = list(range(keys)) if batch == 0 else rng.sample(range(keys), int(keys * CHANGED))
        _write_input(inputs, stage, chosen, rng)
        _run(spark, inputs, checkpoint, confs, version=batch + 1)
        link_tree(checkpoint, folder / stage)
    spark.stop()
    shutil.rmtree(inputs)
    shutil.rmtree(checkpoint)
    return 0


def _write_input(folder: Path, name: str, keys: list[int], rng: random.Random) -> None:
    """All files of a batch appear at once: beside, then renamed."""
    beside = folder.with_name("beside")
    beside.mkdir()
    for start in range(0, len(keys), _PER_FILE):
        part = keys[start : start + _PER_FILE]
        values = [rng.randbytes(VALUE_BYTES) for _ in part]
        table = pa.table(
            {"key": pa.array(part, pa.int64()), "value": pa.array(values, pa.binary())}
        )
        pq.write_table(table, beside / f"{name}-{start:09d}.parquet", compression="none")
    for path in sorted(beside.iterdir()):
        path.rename(folder / path.name)
    beside.rmdir()


def _run(
    spark: SparkSession, inputs: Path, checkpoint: Path, confs: Mapping[str, str], *, version: int
) -> None:
    """Run the query until its batch is committed and its snapshots, if any, are uploaded."""
    for key, value in confs.items():
        spark.conf.set(key, value)
    stream = spark.readStream.schema("key LONG, value BINARY").parquet(str(inputs))
    counted = stream.groupBy("key").agg(functions.last("value").alias("value"))
    query = (
        counted.writeStream.outputMode("update")
        .format("noop")
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    query.processAllAvailable()
    if confs[MIN_DELTAS] == SNAPSHOT_AT_ONCE:
        _await_snapshots(checkpoint, version)
    query.stop()
    commits = sorted(int(p.name) for p in (checkpoint / "commits").iterdir() if p.name.isdigit())
    if commits != list(range(version)):
        raise RuntimeError(f"Expected batches 0 to {version - 1}, found {commits}.")


def _await_snapshots(checkpoint: Path, version: int) -> None:
    """Maintenance uploads them in the background, and Hadoop renames them into place."""
    deadline = time.monotonic() + _WAIT
    wanted = [checkpoint / f"state/0/{number}/{version}.zip" for number in range(PARTITIONS)]
    while missing := [path for path in wanted if not path.exists()]:
        if time.monotonic() > deadline:
            raise RuntimeError(f"No snapshot {missing[0]} after {_WAIT:.0f} s.")
        time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1:])
    # Spark's gateway may keep the interpreter waiting; everything is on disk.
    sys.stdout.flush()
    os._exit(0)
