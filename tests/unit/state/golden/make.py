"""Make the golden state with real Spark: a checkpoint of every operator, and hashes of every type.

python make.py FOLDER [CASE]…   writes FOLDER/<case>, a checkpoint each, and hashes.json
python make.py --pack FOLDER    packs them next to this file

All checkpoints have three partitions and the HDFS-backed provider. What Spark's own `statestore`
source reads of them is kept in rows.json: it is the expected truth of the tests.
"""

import json
import os
import random
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["ARCHIVE", "HASHES", "ROWS"]

_HERE = Path(__file__).parent
ARCHIVE = _HERE / "checkpoints.tar.xz"
HASHES = _HERE / "hashes.json"
ROWS = _HERE / "rows.json"
_JOIN = "spark.sql.streaming.join.stateFormatVersion"
_GROUPS = "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion"
_CODEC = "spark.sql.streaming.stateStore.compression.codec"
_SCHEMA = (
    "k string, n int, v long, d decimal(38,4), s struct<a: int, b: string>, ts timestamp, "
    "bo boolean, by byte, sh short, fl float, do double, sd decimal(10,2), bi binary, da date, "
    "nt timestamp_ntz"
)
_Frame = Any
_Case = tuple[Callable[[_Frame], _Frame], str, dict[str, str]]
_FILES, _ROWS = 5, 14


def _aggregation(frame: _Frame) -> _Frame:
    from pyspark.sql import functions as F  # noqa: N812

    return frame.groupBy(F.window("ts", "1 minute"), "k").agg(F.max("v"), F.count("*"))


def _types(frame: _Frame) -> _Frame:
    keys = ("k", "n", "v", "d", "s", "ts", "bo", "by", "sh", "fl", "do", "sd", "bi", "da", "nt")
    return frame.groupBy(*keys).count()


def _dedup(frame: _Frame) -> _Frame:
    return frame.withWatermark("ts", "2 minutes").dropDuplicates(["n", "k", "ts"])


def _within(frame: _Frame) -> _Frame:
    return frame.withWatermark("ts", "2 minutes").dropDuplicatesWithinWatermark(["k", "n"])


def _session(frame: _Frame) -> _Frame:
    from pyspark.sql import functions as F  # noqa: N812

    return (
        frame.withWatermark("ts", "2 minutes")
        .groupBy(F.session_window("ts", "20 seconds"), "k", "n")
        .count()
    )


def _inner(frame: _Frame) -> _Frame:
    other = frame.selectExpr("k", "n", "v as w")
    return frame.select("k", "n", "v").join(other, ["k", "n"]).where("v = w")


def _outer(frame: _Frame) -> _Frame:
    from pyspark.sql.functions import expr

    marked = frame.withWatermark("ts", "2 minutes")
    left = marked.select("k", "d", "v", "ts").alias("l")
    # The shared names make Spark read the source twice; with others it would share one log.
    right = marked.where("v % 2 = 0").select("k", "d", "ts").alias("r")
    near = "r.ts between l.ts - interval 10 seconds and l.ts + interval 10 seconds"
    return left.join(right, expr(f"l.d = r.d and l.k = r.k and {near}"), "leftOuter")


def _pandas(frame: _Frame) -> _Frame:
    import pandas as pd

    def count(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
        total = state.get[0] if state.exists else 0
        total += sum(len(each) for each in frames)
        state.update((total,))
        yield pd.DataFrame({"k": [key[0]], "total": [total]})

    return frame.groupBy("k", "n").applyInPandasWithState(
        count, "k string, total long", "total long", "update", "NoTimeout"
    )


def _chained(frame: _Frame) -> _Frame:
    from pyspark.sql import functions as F  # noqa: N812

    distinct = frame.withWatermark("ts", "2 minutes").dropDuplicates(["k", "v", "ts"])
    return distinct.groupBy(F.window("ts", "1 minute"), "k").count()


def _global(frame: _Frame) -> _Frame:
    return frame.groupBy().agg({"v": "max", "*": "count"})


def _limit(frame: _Frame) -> _Frame:
    return frame.limit(1000)


_CASES: dict[str, _Case] = {
    "aggregation": (_aggregation, "update", {}),
    "types": (_types, "update", {}),
    "dedup": (_dedup, "append", {}),
    "within": (_within, "append", {}),
    "session": (_session, "append", {}),
    "join-inner": (_inner, "append", {}),
    "join-2": (_outer, "append", {_JOIN: "2"}),
    "pandas": (_pandas, "update", {}),
    "pandas-1": (_pandas, "update", {_GROUPS: "1"}),
    "chained": (_chained, "append", {}),
    "global": (_global, "update", {}),
    "limit": (_limit, "append", {}),
    "zstd": (_aggregation, "update", {_CODEC: "zstd"}),
}


def make(folder: Path, names: list[str]) -> None:
    """Run the named cases, or all, with the installed Spark."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    builder = builder.config("spark.sql.shuffle.partitions", "3")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    builder = builder.config("spark.sql.streaming.stateStore.maintenanceInterval", "300ms")
    builder = builder.config("spark.sql.streaming.stateStore.minDeltasForSnapshot", "2")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    inputs = folder / "inputs"
    _write_inputs(inputs)
    known = folder / "rows.json"
    rows = json.loads(known.read_text()) if known.exists() else {}
    for name in names or _CASES:
        _run(spark, _CASES[name], inputs, folder / name)
        rows[name] = _counts(spark, folder / name)
        print(name, rows[name], flush=True)
    known.write_text(json.dumps(rows, indent=1) + "\n")
    (folder / "hashes.json").write_text(json.dumps(_hashes(spark, inputs)) + "\n")
    spark.stop()


def _run(spark: Any, case: _Case, inputs: Path, checkpoint: Path) -> None:
    build, mode, confs = case
    for key, value in confs.items():
        spark.conf.set(key, value)
    stream = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).json(str(inputs))
    writer = build(stream).writeStream.outputMode(mode).format("noop")
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        query.awaitTermination(300)
    finally:
        query.stop()
        for key in confs:
            spark.conf.unset(key)


def _counts(spark: Any, checkpoint: Path) -> dict[str, list[int]]:
    """Rows in each partition of each store, as Spark reads them."""
    counts = {}
    for path in sorted(checkpoint.glob("state/*/_metadata/metadata")):
        operator = path.parts[-3]
        info = json.loads(path.read_text().split("\n", 1)[1])
        for store in info["stateStoreInfo"]:
            reader = spark.read.format("statestore").option("operatorId", operator)
            try:
                frame = reader.option("storeName", store["storeName"]).load(str(checkpoint))
                found = frame.groupBy("partition_id").count().collect()
            except Exception as error:  # limit has no schema that Spark can read
                print(checkpoint.name, str(error)[:100])
                continue
            by_partition = {row[0]: row[1] for row in found}
            key = f"{operator}/{store['storeName']}"
            counts[key] = [by_partition.get(p, 0) for p in range(3)]
    return counts


def _hashes(spark: Any, inputs: Path) -> dict[str, Any]:
    """UnsafeRows, and the hash of all their columns."""
    from pyspark.sql import functions as F  # noqa: N812

    frame = spark.read.schema(_SCHEMA).json(str(inputs))
    rows = frame._jdf.queryExecution().executedPlan().executeCollect()
    hashed = frame.select(F.hash(*frame.columns)).collect()
    return {
        "schema": json.loads(frame.schema.json()),
        "rows": [[bytes(r.getBytes()).hex(), h[0]] for r, h in zip(rows, hashed, strict=True)],
    }


def _write_inputs(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    choice = random.Random(3)
    for number in range(_FILES):
        rows = [_row(choice, number) for _ in range(_ROWS)]
        path = folder / f"{number:02d}.json"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        os.utime(path, (1_700_000_000 + number,) * 2)


def _row(choice: random.Random, number: int) -> dict[str, Any]:
    second = choice.randrange(60)
    row: dict[str, Any] = {
        "k": choice.choice(
            ["", "a", "ab", "abc", "abcd", "Größe", "日本語", "\U0001f600 face", "x" * 37]
        ),
        "n": choice.choice([0, 1, -1, 2**31 - 1, -(2**31)]),
        "v": choice.choice([0, 1, -1, 2**63 - 1, -(2**63), choice.randrange(1000)]),
        "d": str(choice.choice(["0", "1.5", "-1.5", "9" * 30 + ".1234", "-" + "8" * 34])),
        "s": {"a": choice.randrange(3), "b": choice.choice(["p", "", "quite long a text"])},
        "ts": f"2023-11-14T22:{14 + number:02d}:{second:02d}Z",
        "bo": choice.random() < 0.5,
        "by": choice.randrange(-128, 128),
        "sh": choice.randrange(-(2**15), 2**15),
        "fl": choice.choice([0.0, -0.0, 1.5, -3.25e10, "NaN", "Infinity"]),
        "do": choice.choice([0.0, -0.0, 1e300, -2.5, "NaN", "-Infinity"]),
        "sd": str(choice.choice(["0", "12.34", "-99999999.99"])),
        "bi": choice.choice(["", "AA==", "/////w==", "AQIDBAUGBw=="]),
        "da": choice.choice(["1969-12-31", "2023-11-14", "0001-01-01"]),
        "nt": f"19{choice.randrange(10, 99)}-01-02T03:04:05.678901",
    }
    for name in choice.sample([n for n in row if n != "ts"], choice.randrange(4)):
        row[name] = None
    if row["s"] is not None and choice.random() < 0.2:
        row["s"]["b"] = None
    return row


def pack(folder: Path) -> None:
    """Pack what the tests need, without the owners of this machine."""
    from sparkpoint.checkpoint.plan import plan_batch
    from sparkpoint.storage.directory import DirectoryStore

    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for case in sorted(path.parent for path in folder.glob("*/metadata")):
            for file in plan_batch(DirectoryStore(case)).files:
                archive.add(case / file.path, f"{case.name}/{file.path}", filter=_anonymous)
    for path in (HASHES, ROWS):
        path.write_bytes((folder / path.name).read_bytes())


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


if __name__ == "__main__":
    if sys.argv[1] == "--pack":
        pack(Path(sys.argv[2]))
    else:
        make(Path(sys.argv[1]), sys.argv[2:])
