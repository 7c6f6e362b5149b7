# Runs to the end of the input again and again, as under a scheduler; the query has no name.
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
events = (
    spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
    .option("maxFilesPerTrigger", 3)
    .json(sys.argv[1])
)
for _ in range(3):
    query = events.select("k", "v").writeStream.format("json").trigger(availableNow=True).start(sys.argv[2])
    query.awaitTermination()
    print("ROUND", query.name, query.exception())
