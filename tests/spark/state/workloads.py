"""Workloads of operators that only the state tools treat apart, with exact truth."""

from collections import Counter
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.base import Known, State, Truth, Workload, read_store
from tests.spark.workloads.inputs import DELAY, Row
from tests.spark.workloads.providers import ROCKSDB_ONLY

__all__ = ["FAMILIES", "GLOBAL", "LIMIT", "LIMITED", "WITHIN"]

_DELAY_MS = 120_000
LIMITED = 20


def _within(frame: DataFrame) -> DataFrame:
    marked = frame.withWatermark("ts", DELAY)
    return marked.dropDuplicatesWithinWatermark(["id", "ts"]).select("id", "ts")


def _within_truth(files: list[list[Row]], watermark: int) -> Truth:
    seen = {(row.id, row.ts) for rows in files for row in rows}
    state: dict[Known, Known] = {
        key: ((key[1] + _DELAY_MS) * 1000,) for key in seen if key[1] + _DELAY_MS > watermark
    }
    return Truth(output=Counter(seen), state={"default": state})


def _within_state(spark: SparkSession, checkpoint: str, batch: int) -> State:
    key, value = ["key.id", "unix_millis(key.ts)"], ["value.expiresAtMicros"]
    return {"default": read_store(spark, checkpoint, batch, key=key, value=value)}


def _global(frame: DataFrame) -> DataFrame:
    return frame.groupBy().agg(F.count("*").alias("n"), F.sum("v").alias("total"))


def _global_truth(files: list[list[Row]], watermark: int) -> Truth:
    emitted: Counter[Known] = Counter()
    n = total = 0
    for rows in files:
        n, total = n + len(rows), total + sum(row.v for row in rows)
        emitted[n, total] += 1
    return Truth(output=emitted, state={"default": {(): (n, total)}})


def _global_state(spark: SparkSession, checkpoint: str, batch: int) -> State:
    value = ["value.count", "value.sum"]
    return {"default": read_store(spark, checkpoint, batch, key=[], value=value)}


def _limit(frame: DataFrame) -> DataFrame:
    return frame.select("id", "ts").limit(LIMITED)


def _limit_truth(files: list[list[Row]], watermark: int) -> Truth:
    rows = [(row.id, row.ts) for each in files for row in each][:LIMITED]
    return Truth(output=Counter(rows), state={"default": {(None,): (len(rows),)}})


def _limit_state(spark: SparkSession, checkpoint: str, batch: int) -> State:
    found = read_store(spark, checkpoint, batch, key=["key.key"], value=["value.value"])
    return {"default": found}


WITHIN = Workload(
    name="within",
    build=_within,
    truth=_within_truth,
    read_state=_within_state,
    columns=("id", "ts"),
)
FAMILIES = replace(
    WORKLOADS["join"],
    name="families",
    confs={"spark.sql.streaming.join.stateFormatVersion": "3"},
    providers=ROCKSDB_ONLY,
)
"""A join that keeps all of its rows in one store."""
GLOBAL = Workload(
    name="global",
    build=_global,
    truth=_global_truth,
    read_state=_global_state,
    columns=("n", "total"),
    mode="update",
    file_sink=False,
)
LIMIT = Workload(
    name="limit",
    build=_limit,
    truth=_limit_truth,
    read_state=_limit_state,
    columns=("id", "ts"),
)
