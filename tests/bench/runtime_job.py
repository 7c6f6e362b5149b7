# A busy query: as many rows as it can take, and a state that is worth a savepoint.
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

keys, rows_per_batch = int(sys.argv[1]), int(sys.argv[2])

spark = SparkSession.builder.appName("busy").getOrCreate()
source = (
    spark.readStream.format("rate-micro-batch")
    .option("rowsPerBatch", rows_per_batch)
    .option("numPartitions", 2)
    .load()
)
# Content that does not shrink much: what is stored is what costs.
content = F.sha2(F.col("value").cast("string"), 512)
totals = (
    source.groupBy((F.col("value") % keys).alias("key"))
    .agg(F.count("*").alias("n"), F.max(content).alias("last"))
    .writeStream.queryName("busy")
    .outputMode("update")
    .format("noop")
    .start()
)
totals.awaitTermination()
