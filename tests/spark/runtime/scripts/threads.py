"""Each query in a thread of its own; the main thread is done at once."""

import sys
import threading

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
schema = "id string, k string, v long, side string, ts timestamp"


def run(side):
    events = spark.readStream.schema(schema).json(sys.argv[1])
    query = (
        events.where(f"side = '{side}'")
        .select("k", "v")
        .writeStream.trigger(availableNow=True)
        .queryName(side)
        .format("json")
        .start(f"{sys.argv[2]}/{side}")
    )
    query.awaitTermination()


for side in "LR":
    threading.Thread(target=run, args=(side,)).start()
