"""Each batch, or each from a given one on, calls a service that takes its time."""

import sys
import time

from pyspark.sql import SparkSession


FIRST = int(sys.argv[4]) if len(sys.argv) > 4 else 0


def call_service(batch, batch_id):
    open(f"{sys.argv[2]}/begun-{batch_id}", "w").close()
    if batch_id >= FIRST:
        time.sleep(float(sys.argv[3]))
    batch.write.mode("overwrite").json(f"{sys.argv[2]}/{batch_id}")


spark = SparkSession.builder.getOrCreate()
(
    spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
    .option("maxFilesPerTrigger", 1)
    .json(sys.argv[1])
    .writeStream.queryName("slow")
    .foreachBatch(call_service)
    .start()
    .awaitTermination()
)
