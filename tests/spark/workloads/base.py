"""What a workload is: a query, and the truth about its output and state, in plain Python.

Truth depends on the input files that a batch covers and on the watermark that it ran with; both are
read from the offset log, so any committed batch of any checkpoint can be judged, also a live one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.spark.workloads import sinks
from tests.spark.workloads.inputs import SCHEMA, Row
from tests.spark.workloads.providers import ALL, PROVIDERS

__all__ = ["Known", "State", "Truth", "Workload", "read_store"]

Known = tuple[Any, ...]
"""A row of output, or a key or value of state, in plain values; times are milliseconds."""
State = Mapping[str, Mapping[Known, Known]]
"""The name of a store or state variable -> key -> value."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What a batch must have produced, and what it must remember."""

    output: Counter[Known]
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One query under test."""

    name: str
    build: Callable[[DataFrame], DataFrame]
    truth: Callable[[list[list[Row]], int], Truth]
    """(rows by file, watermark in ms) -> truth."""
    read_state: Callable[[SparkSession, str, int], State]
    """(session, checkpoint, batch) -> state, through Spark's own `statestore` source."""
    columns: tuple[str, ...]
    """Of the output, in the order of `Truth.output`."""
    mode: str = "append"
    file_sink: bool = True
    """A file sink with its log, else one file per batch: what `update` mode needs."""
    endless: bool = False
    """Runs empty batches for ever, so that `availableNow` never ends it."""
    providers: tuple[str, ...] = ALL
    confs: Mapping[str, str] = field(default_factory=dict)

    def start(
        self,
        spark: SparkSession,
        *,
        provider: str,
        inputs: Path,
        checkpoint: str,
        sink: Path,
        available_now: bool = True,
        trigger: str | None = None,
        confs: Mapping[str, str] | None = None,
    ) -> StreamingQuery:
        """Start the query: one input file a batch, `availableNow` unless it would never end."""
        for key, value in {**PROVIDERS[provider], **self.confs, **(confs or {})}.items():
            spark.conf.set(key, value)
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        writer = self._writer(self.build(stream.json(str(inputs))), sink)
        writer = writer.outputMode(self.mode).option("checkpointLocation", checkpoint)
        if available_now and not self.endless:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        return writer.queryName(self.name).start()

    def read_output(self, sink: Path) -> Counter[Known]:
        """Every row that the sink shows, with its count."""
        rows = sinks.read_files(sink) if self.file_sink else sinks.read_batches(sink)
        return Counter(tuple(row[name] for name in self.columns) for row in rows)

    def _writer(self, frame: DataFrame, sink: Path) -> DataStreamWriter:
        frame = frame.select(*(sinks.plain(frame, name) for name in self.columns))
        if self.file_sink:
            return frame.writeStream.format("json").option("path", str(sink))
        return frame.writeStream.foreachBatch(sinks.batch_writer(sink))


def read_store(
    spark: SparkSession,
    checkpoint: str,
    batch: int,
    *,
    key: Iterable[str],
    value: Iterable[str],
    **options: str | int | bool,
) -> dict[Known, Known]:
    """Read one store at one batch into key -> value, given as SQL expressions."""
    reader = spark.read.format("statestore").option("batchId", batch).options(**options)
    keys, values = list(key), list(value)
    rows = reader.load(checkpoint).selectExpr(*keys, *values).collect()
    found = {tuple(row[: len(keys)]): tuple(row[len(keys) :]) for row in rows}
    assert len(found) == len(rows), f"a key occurs twice in {checkpoint} at batch {batch}"
    return found
