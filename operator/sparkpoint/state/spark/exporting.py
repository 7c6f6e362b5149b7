"""The Spark process that reads state: `python -m sparkpoint.state.spark.exporting ORDER ANSWER`.

Every store that is asked for is written to Parquet, with the columns that Spark's own state reader
gives it; fields of one name get names of their own. For a comparison they become two columns, a key
that occurs once and a value.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from sparkpoint.state.spark.checksums import damaged_files
from sparkpoint.state.spark.session import FORMAT, local_session
from sparkpoint.state.types import distinct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

__all__ = ["Export", "Exported", "Exports", "main"]

_MOST_FILES = 64


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Export(_Document):
    """One store of a query in a copy of its checkpoint."""

    checkpoint: str
    batch: int
    format: int
    """Of the checkpoint: 1, or 2 with ids of state files."""
    options: dict[str, str]
    """Of Spark's state reader."""
    folder: str
    """Where the files go; it must not be there yet."""
    pairs: bool = False
    """Whether two columns, `key` and `value`, are wanted."""


class Exports(_Document):
    """What to read."""

    scratch: str
    exports: Annotated[list[Export], Field(min_length=1)]


class Exported(_Document):
    """What came of it."""

    problem: str | None = None
    """What Spark says against it."""


def main(order: Path, answer: Path) -> int:
    """Write all that is asked for."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    wanted = Exports.model_validate_json(order.read_text())
    # Times as every reader of Parquet understands them.
    conf = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
    spark = local_session("sparkpoint state", wanted.scratch, conf)
    exported = Exported()
    for checkpoint in dict.fromkeys(each.checkpoint for each in wanted.exports):
        if damaged := damaged_files(spark, checkpoint):
            answer.write_text(Exported(problem=damaged[0]).model_dump_json())
            return 0
    try:
        for each in wanted.exports:
            _export(spark, each)
    except (PySparkException, Py4JJavaError) as error:
        exported = Exported(problem=str(error))
    answer.write_text(exported.model_dump_json())
    return 0


def _export(spark: "SparkSession", export: Export) -> None:
    spark.conf.set(FORMAT, str(export.format))
    reader = spark.read.format("statestore").option("batchId", export.batch)
    frame = reader.options(**export.options).load(export.checkpoint)
    if export.pairs and "list_element" in frame.columns:
        # A key of a list occurs once for each element: together they are its value.
        frame = reader.option("flattenCollectionTypes", "false").load(export.checkpoint)
    frame = _paired(frame) if export.pairs else frame
    # By their places: a field whose name another one has cannot be asked for.
    frame = frame.select(
        *(frame[f.name].cast(_distinct_type(f.dataType)).alias(f.name) for f in frame.schema)
    )
    frame = frame.select(*(_storable(frame[f.name], f.dataType, f.name) for f in frame.schema))
    if frame.rdd.getNumPartitions() > _MOST_FILES:
        frame = frame.coalesce(_MOST_FILES)
    frame.write.parquet(export.folder)


def _paired(frame: "DataFrame") -> "DataFrame":
    """A key that occurs once, and a value."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

    columns = frame.columns
    if "user_map_key" in columns:
        key = F.struct("key", "user_map_key").alias("key")
        return frame.select(key, F.col("user_map_value").alias("value"))
    if "expiration_timestamp_ms" in columns:
        key = F.struct("key", "expiration_timestamp_ms").alias("key")
        return frame.select(key, F.lit(None).cast("string").alias("value"))
    if "list_value" in columns:
        return frame.select("key", F.struct("list_value").alias("value"))
    return frame.select("key", "value")


def _distinct_type(kind: "DataType") -> "DataType":
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(kind, StructType):
        names = distinct([field.name for field in kind])
        return StructType(
            [
                StructField(name, _distinct_type(field.dataType), field.nullable)
                for name, field in zip(names, kind, strict=True)
            ]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_distinct_type(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        key, value = _distinct_type(kind.keyType), _distinct_type(kind.valueType)
        return MapType(key, value, kind.valueContainsNull)
    return kind


def _storable(column: "Column", kind: "DataType", name: str) -> "Column":
    """A column as Parquet can hold it, which has neither empty structs nor columns of nothing, and
    texts of nothing but text: Spark lets any bytes be a string."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
    from pyspark.sql.types import ArrayType, NullType, StringType, StructType

    if isinstance(kind, NullType) or (isinstance(kind, StructType) and not kind.fields):
        return F.lit(None).cast("string").alias(name)
    if isinstance(kind, StructType):
        inner = [_storable(column[f.name], f.dataType, f.name) for f in kind]
        return F.when(column.isNotNull(), F.struct(*inner)).alias(name)
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, (StringType, StructType)):
        element = kind.elementType
        return F.transform(column, lambda each: _storable(each, element, "element")).alias(name)
    if isinstance(kind, StringType):
        return F.make_valid_utf8(column).alias(name)
    return column.alias(name)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
