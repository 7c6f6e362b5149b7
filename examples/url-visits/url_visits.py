"""Count the visits of each URL in an nginx access log.

usage: url_visits.py --input DIR --output DIR --checkpoint DIR

A plain PySpark script: it knows nothing of Sparkpoint. Each batch writes the counts that changed to
`<output>/batch=<N>`, over what an earlier try of the same batch wrote, so a repeated batch changes
nothing. The newest row of a URL is its count.
"""

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every Spark user writes it

REQUEST = r'"(?:GET|HEAD|POST|PUT|DELETE) ([^ ?"]+)'


def visits(lines: DataFrame) -> DataFrame:
    """One row per URL with its number of requests."""
    url = F.regexp_extract("value", REQUEST, 1)
    return lines.select(url.alias("url")).where("url != ''").groupBy("url").count()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--files-per-batch", type=int, default=1)
    arguments = parser.parse_args()

    def write(batch: DataFrame, number: int) -> None:
        target = f"{arguments.output}/batch={number:08d}"
        batch.coalesce(1).write.mode("overwrite").json(target)

    spark = SparkSession.builder.appName("url-visits").getOrCreate()
    lines = spark.readStream.option("maxFilesPerTrigger", arguments.files_per_batch).text(
        arguments.input
    )
    query = (
        visits(lines)
        .writeStream.queryName("url_visits")
        .outputMode("update")
        .option("checkpointLocation", f"{arguments.checkpoint}/url_visits")
        .foreachBatch(write)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
