"""The plainest query: rows of files as they come, one file a batch, until there are no more."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

__all__ = ["incoming", "write_out"]


def incoming(spark: SparkSession, folder: Path) -> DataFrame:
    """The rows of `in`."""
    reader = spark.readStream.schema("side STRING, k STRING, v INT, t LONG")
    return reader.option("maxFilesPerTrigger", 1).json(str(folder / "in"))


def write_out(frame: DataFrame, folder: Path, checkpoint: Path) -> None:
    """Write them to `out`, all that there are now."""
    query = (
        frame.writeStream.format("json")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
