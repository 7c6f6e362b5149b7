"""Swallows whatever goes wrong, as too many jobs do."""

import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()
schema = "id string, k string, v long, side string, ts timestamp"


@udf("long")
def picky(value):
    if value > 900:
        raise ValueError(f"cannot take {value}")
    return value


good = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(sys.argv[1])
good.select("k").writeStream.queryName("good").format("json").start(sys.argv[2] + "/good")
bad = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(sys.argv[1])
query = bad.select(picky("v")).writeStream.queryName("bad").format("noop").start()
while True:
    try:
        query.awaitTermination()
        time.sleep(1)
    except Exception as error:
        print("never mind:", type(error).__name__)
        time.sleep(1)
