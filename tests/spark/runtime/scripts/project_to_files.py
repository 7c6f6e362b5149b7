# The smallest job: no name, its own checkpoint, one pass over what is there.
import sys

from pyspark.sql import SparkSession

source, target = sys.argv[1], sys.argv[2]

spark = SparkSession.builder.appName("project").getOrCreate()

events = (
    spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
    .option("maxFilesPerTrigger", 2)
    .json(source)
)

query = (
    events.where("v >= 500")
    .selectExpr("k", "v")
    .writeStream.format("json")
    .option("checkpointLocation", "/tmp/nobody-looks-here")
    .trigger(availableNow=True)
    .start(target)
)
query.awaitTermination()
