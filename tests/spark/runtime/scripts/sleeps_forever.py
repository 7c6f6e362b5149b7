import signal
import sys
import time

from pyspark.sql import SparkSession

stopping = False


def handler(signum, frame):
    print("HANDLER", signum, flush=True)
    query.stop()


spark = SparkSession.builder.getOrCreate()
query = (
    spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
    .option("maxFilesPerTrigger", 1)
    .json(sys.argv[1])
    .groupBy("k")
    .count()
    .writeStream.outputMode("complete")
    .format("memory")
    .queryName("counts")
    .start()
)
signal.signal(signal.SIGTERM, handler)
try:
    while True:
        time.sleep(0.5)
finally:
    print("FINALLY", sorted(tuple(row) for row in spark.table("counts").collect()), flush=True)
