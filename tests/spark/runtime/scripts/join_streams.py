"""Two streams joined by key, as in the guide; ends with what is there."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
events = (
    spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
    .option("maxFilesPerTrigger", 1)
    .json(sys.argv[1])
)
left = events.where("side = 'L'").selectExpr("k", "v as lv", "unix_millis(ts) as lts")
right = events.where("side = 'R'").selectExpr("k", "v as rv", "unix_millis(ts) as rts")
joined = left.join(right, "k").where("lv % 3 = rv % 3")
query = (
    joined.writeStream.format("json")
    .queryName("joined")
    .outputMode("append")
    .trigger(availableNow=True)
    .start(sys.argv[2])
)
query.awaitTermination()
