"""A job in a folder of its own, with a module beside it and functions in `__main__`."""

import sys

import rules
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.appName("helpers").getOrCreate()
FACTOR = 10


@udf("long")
def scaled(value):
    return value * FACTOR


spark.sparkContext.addPyFile(rules.__file__)
events = spark.readStream.schema(rules.SCHEMA).json(sys.argv[1])
cleaned = events.select(rules.shout("k").alias("k"), scaled("v").alias("v"))
writer = cleaned.writeStream.options(checkpointLocation="elsewhere", path=sys.argv[2])
writer.format("json").queryName("clean up!").trigger(once=True).start().awaitTermination()
