import logging
import sys

from pyspark.sql import SparkSession

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("process_all")


def run(source: str, target: str) -> int:
    with SparkSession.builder.appName("process-all").getOrCreate() as spark:
        events = (
            spark.readStream.format("json")
            .schema("id string, k string, v long, side string, ts timestamp")
            .load(source)
        )
        query = events.dropDuplicates(["id", "ts"]).select("id", "ts").writeStream.start(
            format="json",
            path=target,
            queryName="distinct",
            outputMode="append",
            checkpointLocation=target + "-checkpoint",
        )
        query.processAllAvailable()
        log.info("done: %s", query.lastProgress.batchId)
        query.stop()
    return 3


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
