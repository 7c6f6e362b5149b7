"""Workloads whose state is the user's own: applyInPandasWithState, transformWithState in pandas."""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from tests.spark.workloads.base import Known, State, Truth, Workload, read_store
from tests.spark.workloads.inputs import DELAY, Row
from tests.spark.workloads.providers import ROCKSDB_ONLY

__all__ = ["WORKLOADS"]

# Workers are other processes, which cannot import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

_RECENT = 3
_DAY = 24 * 60 * 60 * 1000


def _per_batch(files: list[list[Row]]) -> Counter[Known]:
    """One file is one batch: each of its keys is emitted with its new count and total."""
    emitted: Counter[Known] = Counter()
    totals: dict[str, tuple[int, int]] = {}
    for rows in files:
        for row in rows:
            n, total = totals.get(row.k, (0, 0))
            totals[row.k] = (n + 1, total + row.v)
        emitted.update((key, *totals[key]) for key in {row.k for row in rows})
    return emitted


def _totals(files: list[list[Row]]) -> dict[Known, Known]:
    totals: dict[Known, tuple[int, int]] = {}
    for row in (row for rows in files for row in rows):
        n, total = totals.get((row.k,), (0, 0))
        totals[(row.k,)] = (n + 1, total + row.v)
    return dict(totals)


# --- applyInPandasWithState ----------------------------------------------------------------------


def _count(
    key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    n, total = state.get if state.exists else (0, 0)
    for frame in frames:
        n, total = n + len(frame), total + int(frame["v"].sum())
    state.update((n, total))
    yield pd.DataFrame({"k": [key[0]], "n": [n], "total": [total]})


def _pandas(frame: DataFrame) -> DataFrame:
    return frame.groupBy("k").applyInPandasWithState(
        _count,
        "k string, n long, total long",
        "n long, total long",
        "update",
        GroupStateTimeout.NoTimeout,
    )


def _pandas_truth(files: list[list[Row]], watermark: int) -> Truth:
    return Truth(output=_per_batch(files), state={"default": _totals(files)})


def _pandas_state(spark: SparkSession, checkpoint: str, batch: int) -> State:
    value = ["value.groupState.n", "value.groupState.total"]
    return {"default": read_store(spark, checkpoint, batch, key=["key.k"], value=value)}


# --- transformWithState --------------------------------------------------------------------------


class _Remember(StatefulProcessor):
    """Counts in a value, keeps the last values in a list, counts sides in a map, sets timers."""

    ttl: int | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._totals = handle.getValueState("totals", "n long, total long", self.ttl)
        self._recent = handle.getListState("recent", "v long", self.ttl)
        self._sides = handle.getMapState("sides", "side string", "n long", self.ttl)

    # Spark's supertype also allows rows instead of frames; in pandas they are always frames.
    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        n, total = self._totals.get() or (0, 0)
        for frame in rows:
            n, total = n + len(frame), total + int(frame["v"].sum())
            self._remember(frame)
            self._set_timers(frame)
        self._totals.update((n, total))
        yield pd.DataFrame({"k": [key[0]], "n": [n], "total": [total]})

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        at = expiredTimerInfo.getExpiryTimeInMs()
        yield pd.DataFrame({"k": [key[0]], "n": [-1], "total": [at]})

    def close(self) -> None:
        pass

    def _remember(self, frame: pd.DataFrame) -> None:
        # Spark may hand over the rows of a batch in any order: keep the largest.
        kept = [int(row[0]) for row in self._recent.get()] + [int(v) for v in frame["v"]]
        self._recent.put([(v,) for v in sorted(kept, reverse=True)[:_RECENT]])
        for side, count in frame["side"].value_counts().items():
            known = self._sides.getValue((side,)) if self._sides.containsKey((side,)) else None
            self._sides.updateValue((side,), ((known[0] if known else 0) + int(count),))

    def _set_timers(self, frame: pd.DataFrame) -> None:
        raise NotImplementedError


class _EventTime(_Remember):
    def _set_timers(self, frame: pd.DataFrame) -> None:
        for stamp in frame["ts"]:
            self._handle.registerTimer(_minute_end(int(stamp.timestamp() * 1000)))


class _Expiring(_Remember):
    ttl = _DAY

    def _set_timers(self, frame: pd.DataFrame) -> None:
        # Far away: a timer of processing time that fired would depend on the machine's speed.
        self._handle.registerTimer(_far(int(frame["ts"].max().timestamp() * 1000)))


def _minute_end(ts: int) -> int:
    """Never equal to a watermark, which is of whole seconds: the edge does not matter then."""
    return ts // 60_000 * 60_000 + 60_500


def _far(ts: int) -> int:
    return ts + 100 * 365 * _DAY


def _transform(frame: DataFrame, processor: _Remember, time_mode: str) -> DataFrame:
    return frame.groupBy("k").transformWithStateInPandas(
        statefulProcessor=processor,
        outputStructType="k string, n long, total long",
        outputMode="Update",
        timeMode=time_mode,
    )


def _event_time(frame: DataFrame) -> DataFrame:
    return _transform(frame.withWatermark("ts", DELAY), _EventTime(), "EventTime")


def _expiring(frame: DataFrame) -> DataFrame:
    return _transform(frame, _Expiring(), "ProcessingTime")


def _variables(files: list[list[Row]]) -> dict[str, dict[Known, Known]]:
    rows = [row for rows in files for row in rows]
    recent = {
        (key,): tuple(sorted((r.v for r in rows if r.k == key), reverse=True)[:_RECENT])
        for key in {row.k for row in rows}
    }
    sides = {key: (n,) for key, n in Counter((row.k, row.side) for row in rows).items()}
    return {"totals": _totals(files), "recent": dict(recent), "sides": dict(sides)}


def _event_time_truth(files: list[list[Row]], watermark: int) -> Truth:
    timers = {(row.k, _minute_end(row.ts)) for rows in files for row in rows}
    fired = Counter((key, -1, at) for key, at in timers if at <= watermark)
    waiting: dict[Known, Known] = {timer: () for timer in timers if timer[1] > watermark}
    return Truth(output=_per_batch(files) + fired, state={**_variables(files), "timers": waiting})


def _expiring_truth(files: list[list[Row]], watermark: int) -> Truth:
    # A batch sets one timer per key and frame of rows; small batches come in one frame.
    timers: dict[Known, Known] = {
        (key, _far(max(r.ts for r in rows if r.k == key))): ()
        for rows in files
        for key in {row.k for row in rows}
    }
    return Truth(output=_per_batch(files), state={**_variables(files), "timers": timers})


def _event_time_state(spark: SparkSession, checkpoint: str, batch: int) -> State:
    return _variables_state(spark, checkpoint, batch, inner="")


def _expiring_state(spark: SparkSession, checkpoint: str, batch: int) -> State:
    # With a TTL every value is wrapped, next to its time of expiry.
    return _variables_state(spark, checkpoint, batch, inner=".value")


def _variables_state(spark: SparkSession, checkpoint: str, batch: int, *, inner: str) -> State:
    def read(key: list[str], value: list[str], **options: str | bool) -> dict[Known, Known]:
        return read_store(spark, checkpoint, batch, key=key, value=value, **options)

    listed = spark.read.format("statestore").option("batchId", batch)
    elements = listed.option("stateVarName", "recent").load(checkpoint)
    recent: dict[Known, list[int]] = {}
    for key, v in elements.selectExpr("key.k", f"list_element{inner}.v").collect():
        recent.setdefault((key,), []).append(v)
    totals = [f"value{inner}.n", f"value{inner}.total"]
    sides = ["key.k", "user_map_key.side"]
    return {
        "totals": read(["key.k"], totals, stateVarName="totals"),
        "recent": {key: tuple(values) for key, values in recent.items()},
        "sides": read(sides, [f"user_map_value{inner}.n"], stateVarName="sides"),
        "timers": read(["key.k", "expiration_timestamp_ms"], [], readRegisteredTimers=True),
    }


_COLUMNS = ("k", "n", "total")
WORKLOADS = (
    Workload(
        name="pandas",
        build=_pandas,
        truth=_pandas_truth,
        read_state=_pandas_state,
        columns=_COLUMNS,
        mode="update",
        file_sink=False,
    ),
    Workload(
        name="transform",
        build=_event_time,
        truth=_event_time_truth,
        read_state=_event_time_state,
        columns=_COLUMNS,
        mode="update",
        file_sink=False,
        providers=ROCKSDB_ONLY,
    ),
    Workload(
        name="transform-ttl",
        build=_expiring,
        truth=_expiring_truth,
        read_state=_expiring_state,
        columns=_COLUMNS,
        mode="update",
        file_sink=False,
        endless=True,
        providers=ROCKSDB_ONLY,
    ),
)
