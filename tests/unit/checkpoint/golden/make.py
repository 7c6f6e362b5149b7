"""Make the golden checkpoints with real Spark; run it under each version that is to be covered.

python make.py FOLDER       writes FOLDER/<spark version>/<case>, a checkpoint each
python make.py --pack FOLDER    packs them all, and what is planned of them, next to this file

Look at the difference of plans.json before committing it: it is the expected truth of the tests.
"""

import json
import os
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["ARCHIVE", "PLANS"]

_HERE = Path(__file__).parent
ARCHIVE = _HERE / "checkpoints.tar.xz"
PLANS = _HERE / "plans.json"
_CLASS = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
_JOIN = "spark.sql.streaming.join.stateFormatVersion"
_CHANGELOG_CONF = {_CLASS: _ROCKSDB, _CHANGELOG: "true"}

# Typed loosely: this runs under several versions of PySpark.
_Frame = Any
_Case = tuple[Callable[[_Frame], _Frame], str, dict[str, str], int]


def _aggregation(frame: _Frame) -> _Frame:
    return frame.groupBy("k").sum("v")


def _global(frame: _Frame) -> _Frame:
    return frame.groupBy().sum("v")


def _limit(frame: _Frame) -> _Frame:
    return frame.limit(1000)


def _join(frame: _Frame) -> _Frame:
    other = frame.selectExpr("k", "v as w")
    return frame.select("k", "v").join(other, "k").where("v = w")


_CASES: dict[str, _Case] = {
    "aggregation-hdfs": (_aggregation, "update", {}, 11),
    "global-hdfs": (_global, "update", {}, 2),
    "limit-hdfs": (_limit, "append", {}, 2),
    "join-changelog": (_join, "append", _CHANGELOG_CONF, 4),
}
_SINCE_4: dict[str, _Case] = {
    "aggregation-rocksdb": (_aggregation, "update", {_CLASS: _ROCKSDB}, 3),
    "aggregation-format-2": (_aggregation, "update", {**_CHANGELOG_CONF, _FORMAT: "2"}, 5),
    "join-format-2": (_join, "append", {**_CHANGELOG_CONF, _FORMAT: "2"}, 2),
    "join-families": (_join, "append", {**_CHANGELOG_CONF, _JOIN: "3"}, 2),
}


def make(folder: Path) -> None:
    """Run every case of the installed Spark."""
    import pyspark
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.sql.streaming.stateStore.maintenanceInterval", "300ms")
    builder = builder.config("spark.sql.streaming.stateStore.minDeltasForSnapshot", "3")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    inputs = folder / "inputs"
    _write_inputs(inputs)
    newer = pyspark.__version__.split(".")[0] != "3"
    for name, case in {**_CASES, **(_SINCE_4 if newer else {})}.items():
        _run(spark, case, inputs, folder / pyspark.__version__ / name)
    spark.stop()


def pack(folder: Path) -> None:
    """Pack the checkpoints, without the times and owners of this machine, and plan each."""
    from sparkpoint.checkpoint.plan import plan_batch
    from sparkpoint.storage.directory import DirectoryStore

    plans = {}
    cases = sorted(path.parent for path in folder.glob("*/*/metadata"))
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for case in cases:
            name = case.relative_to(folder).as_posix()
            archive.add(case, name, filter=_anonymous)
            plan = plan_batch(DirectoryStore(case))
            plans[name] = {
                "batch": plan.batch,
                "operators": [
                    [
                        o.name,
                        o.provider,
                        o.partitions,
                        [[s.name, *s.base_versions] for s in o.stores],
                    ]
                    for o in plan.operators
                ],
                "files": [file.path for file in plan.files],
            }
    PLANS.write_text(json.dumps(plans, indent=1) + "\n")


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    # Spark writes in an order, and the order of times is looked at: keep that, and nothing else.
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _write_inputs(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(11):
        path = folder / f"{number:02d}.json"
        rows = [{"k": i % 5, "v": number + i} for i in range(8)]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        os.utime(path, (1_700_000_000 + number,) * 2)


def _run(spark: Any, case: _Case, inputs: Path, checkpoint: Path) -> None:
    build, mode, confs, batches = case
    for key, value in confs.items():
        spark.conf.set(key, value)
    pattern = "{" + ",".join(f"{n:02d}.json" for n in range(batches)) + "}"
    stream = spark.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1)
    frame = stream.option("pathGlobFilter", pattern).json(str(inputs))
    query = (
        build(frame)
        .writeStream.outputMode(mode)
        .format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(300)
    for key in confs:
        spark.conf.unset(key)


if __name__ == "__main__":
    if sys.argv[1] == "--pack":
        pack(Path(sys.argv[2]))
    else:
        make(Path(sys.argv[1]))
