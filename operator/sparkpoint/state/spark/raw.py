"""Rows of RocksDB as the bytes that they are, counted and compared with where they belong.

Through the option of Spark's state reader that its own repartitioning uses (Spark 4.2 and later):
it gives every column family of a store, with the columns that place a row. Counting is done in
Python workers, by the same code and with the same digest as everywhere else.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from sparkpoint.state.tally import Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["PartCount", "StoreName", "counted"]

_ALL_FAMILIES = "_readAllColumnFamilies"
_COUNTS = "part int, family string, rows long, bytes long, digest string, misplaced long"


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StoreName(_Document):
    """One store of an operator."""

    operator: int
    store: str


class PartCount(_Document):
    """What one column family of one partition of a store holds."""

    operator: int
    store: str
    family: str
    partition: int
    rows: int
    bytes: int
    digest: str
    misplaced: int
    """Rows that Spark would look for elsewhere."""


def counted(
    spark: "SparkSession", checkpoint: str, batch: int, *, store: StoreName, partitions: int
) -> list[PartCount]:
    """Count a store, partition by partition; families without rows are not there."""
    reader = spark.read.format("statestore").option("batchId", batch)
    reader = reader.options(operatorId=str(store.operator), storeName=store.store)
    frame = reader.option(_ALL_FAMILIES, "true").load(checkpoint)
    rows = _placed(frame, partitions).mapInArrow(_count, _COUNTS).collect()
    return [
        PartCount(
            operator=store.operator,
            store=store.store,
            family=row["family"],
            partition=row["part"],
            rows=row["rows"],
            bytes=row["bytes"],
            digest=row["digest"],
            misplaced=row["misplaced"],
        )
        for row in rows
    ]


def _placed(frame: "DataFrame", partitions: int) -> "DataFrame":
    """Rows with the partition that they are in, and the one that they belong to."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
    from pyspark.sql.types import StructType

    kind = frame.schema["partition_key"].dataType
    has_key = not isinstance(kind, StructType) or bool(kind.fields)
    # Operators without a key run as one task, whose state is in partition 0.
    place = F.expr(f"pmod(hash(partition_key), {partitions})") if has_key else F.lit(0)
    return frame.select(
        F.spark_partition_id().alias("part"),
        place.cast("int").alias("place"),
        F.col("column_family_name").alias("family"),
        "key_bytes",
        "value_bytes",
    )


def _count(batches: "Iterable[Any]") -> "Iterator[Any]":
    """One row for each column family of the partition that a worker goes through."""
    import pyarrow

    tallies: dict[str, Tally] = {}
    misplaced: dict[str, int] = {}
    part = 0
    for batch in batches:
        columns = batch.to_pydict()
        parts, places, families = columns["part"], columns["place"], columns["family"]
        records = list(zip(columns["key_bytes"], columns["value_bytes"], strict=True))
        for family in dict.fromkeys(families):
            ours = [number for number, each in enumerate(families) if each == family]
            tally = tallies.setdefault(family, Tally())
            for _ in tally.through(records[number] for number in ours):
                pass
            wrong = sum(places[number] != parts[number] for number in ours)
            misplaced[family] = misplaced.get(family, 0) + wrong
        part = parts[0] if parts else part
    found = [
        {
            "part": part,
            "family": family,
            "rows": tally.rows,
            "bytes": tally.bytes,
            "digest": f"{tally.digest:032x}",
            "misplaced": misplaced[family],
        }
        for family, tally in tallies.items()
    ]
    if found:
        schema = pyarrow.schema(
            [
                ("part", pyarrow.int32()),
                ("family", pyarrow.string()),
                ("rows", pyarrow.int64()),
                ("bytes", pyarrow.int64()),
                ("digest", pyarrow.string()),
                ("misplaced", pyarrow.int64()),
            ]
        )
        yield pyarrow.RecordBatch.from_pylist(found, schema=schema)
