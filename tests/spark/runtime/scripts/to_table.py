"""Appends to a table of the catalogue."""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("warehouse")
    args = parser.parse_args()

    spark = (
        SparkSession.builder.appName("to-table")
        .config("spark.sql.warehouse.dir", args.warehouse)
        .config("spark.sql.streaming.checkpointLocation", args.warehouse + "/_checkpoints")
        .getOrCreate()
    )
    events = spark.readStream.schema("id string, k string, v long, side string, ts timestamp").json(
        args.source
    )
    query = (
        events.select("k", F.col("v").alias("value"))
        .writeStream.trigger(availableNow=True)
        .toTable("events", format="parquet", queryName="append events", outputMode="append")
    )
    query.awaitTermination()
    rows = spark.table("events").groupBy("k").sum("value").collect()
    print("TOTALS", sorted((row[0], row[1]) for row in rows))
    spark.stop()


if __name__ == "__main__":
    main()
