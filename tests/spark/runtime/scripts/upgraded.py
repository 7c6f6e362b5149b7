"""Totals per key, as several versions of a job would compute them.

Arguments are the queries, `by-hand` for a context of its own, and `sleep` to sleep at the end.
"""

import json
import os
import sys
import time

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

source, target, *names = sys.argv[1:]
if "by-hand" in names:
    spark = SparkSession(SparkContext(appName="upgraded"))
else:
    spark = SparkSession.builder.appName("upgraded").getOrCreate()
# Refused if it is there already.
spark.range(1).createTempView("once")


def events(place=source, name=None):
    stream = spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
    if name is not None:
        stream = stream.name(name)
    return stream.option("maxFilesPerTrigger", 1).json(place)


@F.udf("string")
def broken(key):
    raise ValueError(f"cannot take {key}")


def totals(frame, *keys):
    return frame.groupBy(*keys).agg(F.count("*").alias("n"), F.sum("v").alias("total"))


def frame_of(name):
    match name:
        case "key":
            return totals(events(), "k", "side")
        case "value":
            return events().groupBy("k").agg(F.count("*"), F.sum("v"), F.max("v"))
        case "less":
            return events().groupBy("k").agg(F.count("*"))
        case "real":
            return events().groupBy("k").agg(F.count("*"), F.sum(F.col("v").cast("double")))
        case "highest":
            return events().groupBy("k").agg(F.count("*"), F.max("v"))
        case "rekeyed":
            return totals(events(), "side")
        case "filtered":
            return totals(events().where("v > 3").withColumn("more", F.lit(1)), "k")
        case "plain":
            return events().select("k", "v")
        case "deduplicated":
            return totals(events().dropDuplicates(["id"]), "k")
        case "elsewhere":
            return totals(events(f"{source}-elsewhere"), "k")
        case "named":
            return totals(events(name="events"), "k")
        case "named-elsewhere":
            return totals(events(f"{source}-elsewhere", name="events"), "k")
        case "named-otherwise":
            return totals(events(name="visits"), "k")
        case "two":
            return totals(events().unionByName(events()), "k")
        case "source":
            other = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
            return totals(other.selectExpr("cast(value as string) as k", "value as v"), "k")
        case "fails":
            return totals(events().withColumn("k", broken("k")), "k")
        case "files":
            return events().select("k", "v")
    return totals(events(), "k")


def save(name):
    def write(batch, number):
        rows = [row.asDict() for row in batch.collect()]
        path = f"{target}/{name}-{number:06d}.json"
        with open(f"{path}.tmp", "w") as file:
            json.dump(rows, file)
        os.rename(f"{path}.tmp", path)
        if name == "slow":
            time.sleep(120)

    return write


def start(name):
    # Spark refuses sources without names where this is set, and those with names where it is not.
    evolution = "true" if name.startswith("named") else "false"
    spark.conf.set("spark.sql.streaming.queryEvolution.enableSourceEvolution", evolution)
    writer = frame_of(name).writeStream.queryName(name)
    if name == "files":
        return writer.format("json").option("path", f"{target}/files").start()
    mode = "append" if name == "plain" else "update" if name == "updated" else "complete"
    return writer.outputMode(mode).foreachBatch(save(name)).start()


for each in names:
    if each not in ("by-hand", "sleep"):
        start(each)
if "sleep" in names:
    while True:
        time.sleep(1)
spark.streams.awaitAnyTermination()
