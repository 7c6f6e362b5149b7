"""Upserts by hand: totals to one place, a log of batches to a side table. Runs until it is told."""

import json
import os
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

SOURCE, TARGET = sys.argv[1:3]


def upsert(batch: DataFrame, batch_id: int) -> None:
    batch.persist()
    try:
        rows = [row.asDict() for row in batch.collect()]
        path = os.path.join(TARGET, f"{batch_id:06d}.json")
        with open(path + ".tmp", "w") as file:
            json.dump(rows, file)
        os.replace(path + ".tmp", path)
        side = batch.selectExpr("k", "n", f"{batch_id} as batch")
        side.write.mode("overwrite").json(os.path.join(TARGET, "side", str(batch_id)))
    finally:
        batch.unpersist()


if __name__ == "__main__":
    os.makedirs(TARGET, exist_ok=True)
    spark = SparkSession.builder.appName("upserts").getOrCreate()
    events = (
        spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
        .option("maxFilesPerTrigger", 1)
        .json(SOURCE)
    )
    totals = events.groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("total"))
    query = totals.writeStream.outputMode("update").foreachBatch(upsert).queryName("upserts").start()
    try:
        query.awaitTermination()
    finally:
        spark.stop()
