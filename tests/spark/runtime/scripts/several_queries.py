# Three queries over one source, as dashboards need them.
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("several").getOrCreate()
source, target = sys.argv[1:]
schema = "id string, k string, v long, side string, ts timestamp"


def events():
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(source)


def start(frame, name):
    return (
        frame.writeStream.queryName(name)
        .format("json")
        .option("path", f"{target}/{name}")
        .option("checkpointLocation", f"{target}/checkpoints/{name}")
        .start()
    )


start(events().where("side = 'L'").select("k", "v"), "left")
start(events().where("side = 'R'").select("k", "v"), "right")
windows = events().withWatermark("ts", "2 minutes").groupBy(F.window("ts", "1 minute"), "k")
start(
    windows.agg(F.count("*").alias("n"), F.sum("v").alias("total")).select(
        F.expr("unix_millis(window.end)").alias("end"), "k", "n", "total"
    ),
    "windows",
)
spark.streams.awaitAnyTermination()
for query in spark.streams.active:
    query.stop()
