import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
events = spark.readStream.schema("id string, k string, v long, side string, ts timestamp").json(
    sys.argv[1]
)
first = events.where("side = 'L'").writeStream.format("json").start(sys.argv[2] + "/left")
second = events.where("side = 'R'").writeStream.format("json").start(sys.argv[2] + "/right")
spark.streams.awaitAnyTermination()
