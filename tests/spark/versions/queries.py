"""The queries, in words that every Spark from 3.5 on knows, and the truth about their output."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from tests.spark.versions.rows import WIDE, Row, all_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CASES", "PROVIDERS", "QUERIES", "SECOND_FORMAT", "SINCE", "Query"]

_PACKAGE = "org.apache.spark.sql.execution.streaming.state."
_STORE = "spark.sql.streaming.stateStore"
_ROCKSDB = {f"{_STORE}.providerClass": f"{_PACKAGE}RocksDBStateStoreProvider"}
_CHANGELOG = {**_ROCKSDB, f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true"}
SECOND_FORMAT = "rocksdb-v2"
"""In a process of its own: Spark 4.0 keeps the format of its first query for all others."""
PROVIDERS = {
    "hdfs": {f"{_STORE}.providerClass": f"{_PACKAGE}HDFSBackedStateStoreProvider"},
    "rocksdb": _ROCKSDB,
    "rocksdb-changelog": _CHANGELOG,
    SECOND_FORMAT: {**_ROCKSDB, f"{_STORE}.checkpointFormatVersion": "2"},
}
_DELAY = "10 minutes"
_GAP = 20
Output = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """One kind of state."""

    build: Callable[[DataFrame], DataFrame]
    truth: Callable[[list[Row]], "Counter[Output]"]
    columns: tuple[str, ...]
    """Of the output; of type text or long."""
    mode: str = "append"
    key: int = 0
    """So many of the first columns say which row is meant: what comes later counts."""
    providers: tuple[str, ...] = ("hdfs", "rocksdb-changelog")

    def expected(self) -> "Counter[Output]":
        """After both halves."""
        return self.truth(all_rows())

    def shown(self, rows: Iterable[Output]) -> "Counter[Output]":
        """What a sink shows that was given these rows."""
        if not self.key:
            return Counter(rows)
        return Counter({row[: self.key]: row for row in rows}.values())


# --- aggregation ---------------------------------------------------------------------------------


def _aggregation(frame: DataFrame) -> DataFrame:
    windows = frame.withWatermark("ts", _DELAY).groupBy(F.window("ts", "1 minute"), "k")
    counted = windows.agg(F.count("*").alias("n"), F.sum("v").alias("total"))
    return counted.withColumn("start", F.unix_timestamp("window.start"))


def _windows(rows: list[Row]) -> "Counter[Output]":
    values: dict[tuple[int, str], list[int]] = defaultdict(list)
    for row in rows:
        values[row.ts // 60 * 60, row.k].append(row.v)
    return Counter((*key, len(found), sum(found)) for key, found in values.items())


# --- deduplication -------------------------------------------------------------------------------


def _two_columns(frame: DataFrame) -> DataFrame:
    return frame.dropDuplicates(["id", "k"])


def _wide(frame: DataFrame) -> DataFrame:
    return frame.dropDuplicates(list(WIDE))


def _wide_for_a_while(frame: DataFrame) -> DataFrame:
    return frame.withWatermark("ts", _DELAY).dropDuplicatesWithinWatermark(list(WIDE))


def _distinct(rows: list[Row]) -> "Counter[Output]":
    return Counter({(row.id, row.k) for row in rows})


# --- joins ---------------------------------------------------------------------------------------


def _sides(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    events = frame.withWatermark("ts", _DELAY)
    left = events.where("side = 'L'").selectExpr("id", "k", "ts")
    right = events.where("side = 'R'").selectExpr("id as other", "v", "ts as later")
    return left, right


def _inner(frame: DataFrame) -> DataFrame:
    left, right = _sides(frame)
    return left.join(right, F.expr("id = other"))


def _outer(frame: DataFrame) -> DataFrame:
    left, right = _sides(frame)
    near = "id = other AND later >= ts AND later <= ts + interval 1 minute"
    return left.join(right, F.expr(near), "leftOuter")


def _pairs(rows: list[Row]) -> "Counter[Output]":
    right = {row.id: row.v for row in rows if row.side == "R"}
    return Counter((row.id, right[row.id]) for row in rows if row.side == "L" and row.id in right)


def _pairs_and_singles(rows: list[Row]) -> "Counter[Output]":
    right = {row.id: row.v for row in rows if row.side == "R"}
    left = [row for row in rows if row.side == "L" and row.k != "end"]
    return Counter((row.id, right.get(row.id)) for row in left)


# --- sessions ------------------------------------------------------------------------------------


def _sessions(frame: DataFrame) -> DataFrame:
    window = F.session_window("ts", f"{_GAP} seconds")
    counted = frame.withWatermark("ts", _DELAY).groupBy(window, "k").agg(F.count("*").alias("n"))
    return counted.withColumn("start", F.unix_timestamp("session_window.start"))


def _ended_sessions(rows: list[Row]) -> "Counter[Output]":
    """The last event's own is still open."""
    times: dict[str, list[int]] = defaultdict(list)
    for row in sorted(rows, key=lambda each: each.ts):
        times[row.k].append(row.ts)
    del times["end"]
    return Counter(
        (found[0], k, len(found)) for k, all_times in times.items() for found in _runs(all_times)
    )


def _runs(times: list[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for time in times:
        if run and time > run[-1] + _GAP:
            yield run
            run = []
        run.append(time)
    yield run


# --- a function of one's own ---------------------------------------------------------------------


def _count(
    key: tuple[str], frames: Iterable["pd.DataFrame"], state: GroupState
) -> Iterator["pd.DataFrame"]:
    import pandas as pd

    (n,) = state.get if state.exists else (0,)
    n += sum(len(frame) for frame in frames)
    state.update((n,))
    yield pd.DataFrame({"k": [key[0]], "n": [n]})


def _pandas(frame: DataFrame) -> DataFrame:
    grouped = frame.groupBy("k")
    return grouped.applyInPandasWithState(
        _count, "k string, n long", "n long", "update", GroupStateTimeout.NoTimeout
    )


def _processor(frame: DataFrame) -> DataFrame:
    # Spark 3.5 has no such thing, not even its name.
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

    class Counting(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self._seen = handle.getValueState("seen", "n long")

        def handleInputRows(  # noqa: N802 - the name that Spark calls
            self,
            key: Any,
            rows: Any,
            timerValues: Any,  # noqa: N803
        ) -> Iterator["pd.DataFrame"]:
            import pandas as pd

            kept = self._seen.get()
            n = (0 if kept is None else int(kept[0])) + sum(len(frame) for frame in rows)
            self._seen.update((n,))
            yield pd.DataFrame({"k": [key[0]], "n": [n]})

        def close(self) -> None: ...

    return frame.groupBy("k").transformWithStateInPandas(
        Counting(), "k string, n long", "Update", "None"
    )


def _counts(rows: list[Row]) -> "Counter[Output]":
    return Counter(Counter(row.k for row in rows).items())


# --- no state ------------------------------------------------------------------------------------


def _stateless(frame: DataFrame) -> DataFrame:
    return frame.where("v % 2 = 0")


def _even(rows: list[Row]) -> "Counter[Output]":
    return Counter((row.id, row.side) for row in rows if row.v % 2 == 0)


QUERIES = {
    "aggregation": Query(
        _aggregation, _windows, ("start", "k", "n", "total"), "update", 2, tuple(PROVIDERS)
    ),
    "dropDuplicates, 2 columns": Query(_two_columns, _distinct, ("id", "k"), providers=("hdfs",)),
    "dropDuplicates, 7 columns": Query(_wide, _distinct, ("id", "k")),
    "dropDuplicatesWithinWatermark, 7 columns": Query(
        _wide_for_a_while, _distinct, ("id", "k"), providers=("hdfs",)
    ),
    "inner join": Query(_inner, _pairs, ("id", "v"), providers=("hdfs",)),
    "left outer join": Query(_outer, _pairs_and_singles, ("id", "v"), providers=("hdfs",)),
    "session windows": Query(
        _sessions, _ended_sessions, ("start", "k", "n"), providers=("rocksdb-changelog",)
    ),
    "applyInPandasWithState": Query(_pandas, _counts, ("k", "n"), "update", 1, providers=("hdfs",)),
    "transformWithState": Query(_processor, _counts, ("k", "n"), "update", 1, ("rocksdb",)),
    "no state": Query(_stateless, _even, ("id", "side"), providers=("hdfs",)),
}
SINCE = {SECOND_FORMAT: "4.0", "transformWithState": "4.0"}
"""The first version that has the provider or the query; 3.5 takes no notice of what it does not
know, so that its state would be of the first format."""
CASES = tuple((name, provider) for name, each in QUERIES.items() for provider in each.providers)
"""Every (query, provider) of the table."""
