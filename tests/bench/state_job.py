"""The job whose state is measured: counts and sums per key, one batch for whatever is new.

`python -m tests.bench.state_job INPUT CHECKPOINT`; also what a check of compatibility rehearses.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["NAME", "totals"]

NAME = "totals"


def totals(spark: SparkSession, inputs: str) -> DataStreamWriter:
    """The query, to be given a checkpoint."""
    events: DataFrame = spark.readStream.schema("k string, v long").parquet(inputs)
    counted = events.groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("total"))
    return counted.writeStream.queryName(NAME).outputMode("update").format("noop")


def main(inputs: str, checkpoint: str) -> None:
    spark = SparkSession.builder.appName("state").getOrCreate()
    writer = totals(spark, inputs).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
