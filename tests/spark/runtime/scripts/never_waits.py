# Forgets to wait: plain Python would kill the query in the middle of a batch.
import sys
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
events = (
    spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
    .option("maxFilesPerTrigger", 1)
    .json(sys.argv[1])
)
events.select("k", "v").writeStream.queryName("hasty").format("json").start(sys.argv[2])
time.sleep(4)
