"""Workloads of Spark's built-in operators: aggregation, deduplication, join, sessions, chains."""

from collections import Counter
from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from tests.spark.workloads.base import Known, State, Truth, Workload, read_store
from tests.spark.workloads.inputs import DELAY, Row

__all__ = ["WORKLOADS"]

_MINUTE = 60_000
_GAP = 20_000


def _all(files: list[list[Row]]) -> list[Row]:
    return [row for rows in files for row in rows]


def _millis(column: str) -> str:
    return f"unix_millis({column})"


# --- aggregation with a watermark ----------------------------------------------------------------


def _aggregation(frame: DataFrame) -> DataFrame:
    windows = frame.withWatermark("ts", DELAY).groupBy(F.window("ts", "1 minute"), "k")
    counted = windows.agg(F.count("*").alias("n"), F.sum("v").alias("total"))
    return counted.select(F.col("window.end").alias("end"), "k", "n", "total")


def _windows(rows: Iterable[Row]) -> dict[Known, Known]:
    windows: dict[Known, tuple[int, int]] = {}
    for row in rows:
        key = (row.ts // _MINUTE * _MINUTE + _MINUTE, row.k)
        n, total = windows.get(key, (0, 0))
        windows[key] = (n + 1, total + row.v)
    return dict(windows)


def _aggregation_truth(files: list[list[Row]], watermark: int) -> Truth:
    windows = _windows(_all(files))
    return Truth(
        output=Counter([(*key, *value) for key, value in windows.items() if key[0] <= watermark]),
        state={"default": {k: v for k, v in windows.items() if k[0] > watermark}},
    )


def _aggregation_state(spark: SparkSession, checkpoint: str, batch: int) -> State:
    key = [_millis("key.window.end"), "key.k"]
    value = ["value.count", "value.sum"]
    return {"default": read_store(spark, checkpoint, batch, key=key, value=value)}


# --- dropDuplicates ------------------------------------------------------------------------------


def _dedup(frame: DataFrame) -> DataFrame:
    return frame.withWatermark("ts", DELAY).dropDuplicates(["id", "ts"]).select("id", "ts")


def _dedup_truth(files: list[list[Row]], watermark: int) -> Truth:
    seen = {(row.id, row.ts) for row in _all(files)}
    return Truth(
        output=Counter(seen), state={"default": {key: () for key in seen if key[1] > watermark}}
    )


def _dedup_state(spark: SparkSession, checkpoint: str, batch: int) -> State:
    key = ["key.id", _millis("key.ts")]
    return {"default": read_store(spark, checkpoint, batch, key=key, value=[])}


# --- stream-stream join --------------------------------------------------------------------------


def _join(frame: DataFrame) -> DataFrame:
    left = frame.where("side = 'L'").selectExpr("k", "v as lv", "ts as lts")
    right = frame.where("side = 'R'").selectExpr("k", "v as rv", "ts as rts")
    return left.join(right, "k").where("lv % 3 = rv % 3")


def _join_truth(files: list[list[Row]], watermark: int) -> Truth:
    rows = _all(files)
    left = [row for row in rows if row.side == "L"]
    right = [row for row in rows if row.side == "R"]
    pairs = Counter(
        (a.k, a.v, a.ts, b.v, b.ts)
        for a in left
        for b in right
        if a.k == b.k and (a.v - b.v) % 3 == 0
    )
    return Truth(output=pairs, state={"left": _counted(left), "right": _counted(right)})


def _counted(rows: Iterable[Row]) -> dict[Known, Known]:
    """Equal rows are kept as often as they came; without a watermark a join forgets nothing."""
    counts = Counter((row.k, row.v, row.ts) for row in rows)
    return {key: (count,) for key, count in counts.items()}


def _join_state(spark: SparkSession, checkpoint: str, batch: int) -> State:
    return {side: _join_side(spark, checkpoint, batch, side) for side in ("left", "right")}


def _join_side(spark: SparkSession, checkpoint: str, batch: int, side: str) -> dict[Known, Known]:
    reader = spark.read.format("statestore").option("batchId", batch).option("joinSide", side)
    letter = side[0]
    columns = ["value.k", f"value.{letter}v", _millis(f"value.{letter}ts")]
    rows = reader.load(checkpoint).selectExpr(*columns).collect()
    return {key: (count,) for key, count in Counter(tuple(row) for row in rows).items()}


# --- session windows -----------------------------------------------------------------------------


def _session(frame: DataFrame) -> DataFrame:
    window = F.session_window("ts", f"{_GAP // 1000} seconds")
    counted = frame.withWatermark("ts", DELAY).groupBy(window, "k").agg(F.count("*").alias("n"))
    return counted.select(
        F.col("session_window.start").alias("start"),
        F.col("session_window.end").alias("end"),
        "k",
        "n",
    )


def _sessions(rows: Iterable[Row]) -> list[tuple[int, int, str, int]]:
    sessions: list[tuple[int, int, str, int]] = []
    for row in sorted(rows, key=lambda r: (r.k, r.ts)):
        if sessions and sessions[-1][2] == row.k and row.ts <= sessions[-1][1]:
            start, _, key, n = sessions.pop()
            sessions.append((start, row.ts + _GAP, key, n + 1))
        else:
            sessions.append((row.ts, row.ts + _GAP, row.k, 1))
    return sessions


def _session_truth(files: list[list[Row]], watermark: int) -> Truth:
    sessions = _sessions(_all(files))
    return Truth(
        output=Counter(s for s in sessions if s[1] <= watermark),
        state={"default": {(s[2], s[0]): (s[1], s[3]) for s in sessions if s[1] > watermark}},
    )


def _session_state(spark: SparkSession, checkpoint: str, batch: int) -> State:
    key = ["key.k", _millis("value.session_window.start")]
    value = [_millis("value.session_window.end"), "value.count"]
    return {"default": read_store(spark, checkpoint, batch, key=key, value=value)}


# --- chained operators: deduplication, then aggregation ------------------------------------------


def _chained(frame: DataFrame) -> DataFrame:
    distinct = frame.withWatermark("ts", DELAY).dropDuplicates(["id", "k", "v", "ts"])
    windows = distinct.groupBy(F.window("ts", "1 minute"), "k")
    counted = windows.agg(F.count("*").alias("n"), F.sum("v").alias("total"))
    return counted.select(F.col("window.end").alias("end"), "k", "n", "total")


def _chained_truth(files: list[list[Row]], watermark: int) -> Truth:
    distinct = {(row.id, row.k, row.v, row.ts): row for row in _all(files)}
    counted = _aggregation_truth([list(distinct.values())], watermark)
    remembered = {key: () for key in distinct if key[3] > watermark}
    return Truth(
        output=counted.output,
        state={"aggregation": counted.state["default"], "dedup": remembered},
    )


def _chained_state(spark: SparkSession, checkpoint: str, batch: int) -> State:
    key = ["key.id", "key.k", "key.v", _millis("key.ts")]
    return {
        "aggregation": _aggregation_state(spark, checkpoint, batch)["default"],
        "dedup": read_store(spark, checkpoint, batch, key=key, value=[], operatorId=1),
    }


# --- no state ------------------------------------------------------------------------------------


def _stateless(frame: DataFrame) -> DataFrame:
    return frame.where("v % 2 = 0").select("id", "k", "v", "ts")


def _stateless_truth(files: list[list[Row]], watermark: int) -> Truth:
    rows = (row for row in _all(files) if row.v % 2 == 0)
    return Truth(output=Counter((row.id, row.k, row.v, row.ts) for row in rows), state={})


WORKLOADS = (
    Workload(
        name="aggregation",
        build=_aggregation,
        truth=_aggregation_truth,
        read_state=_aggregation_state,
        columns=("end", "k", "n", "total"),
    ),
    Workload(
        name="dedup",
        build=_dedup,
        truth=_dedup_truth,
        read_state=_dedup_state,
        columns=("id", "ts"),
    ),
    Workload(
        name="join",
        build=_join,
        truth=_join_truth,
        read_state=_join_state,
        columns=("k", "lv", "lts", "rv", "rts"),
    ),
    Workload(
        name="session",
        build=_session,
        truth=_session_truth,
        read_state=_session_state,
        columns=("start", "end", "k", "n"),
    ),
    Workload(
        name="chained",
        build=_chained,
        truth=_chained_truth,
        read_state=_chained_state,
        columns=("end", "k", "n", "total"),
    ),
    Workload(
        name="stateless",
        build=_stateless,
        truth=_stateless_truth,
        read_state=lambda spark, checkpoint, batch: {},
        columns=("id", "k", "v", "ts"),
        providers=("hdfs",),
    ),
)
