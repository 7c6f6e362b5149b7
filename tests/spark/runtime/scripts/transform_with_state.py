"""Arbitrary state, the newer way."""

import sys

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import LongType, StringType, StructField, StructType

source, target = sys.argv[1:]
OUTPUT = StructType(
    [StructField("k", StringType()), StructField("n", LongType()), StructField("total", LongType())]
)


class Counter(StatefulProcessor):
    def init(self, handle):
        self.totals = handle.getValueState("totals", "n long, total long")

    def handleInputRows(self, key, rows, timers):
        n, total = self.totals.get() if self.totals.exists() else (0, 0)
        for frame in rows:
            n, total = n + len(frame), total + int(frame["v"].sum())
        self.totals.update((n, total))
        yield pd.DataFrame({"k": [key[0]], "n": [n], "total": [total]})

    def close(self):
        pass


def write(frame, batch):
    frame.toPandas().to_json(f"{target}/{batch:06d}.json", orient="records")


spark = (
    SparkSession.builder.appName("transform-with-state")
    .config(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    .getOrCreate()
)
events = (
    spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
    .option("maxFilesPerTrigger", 1)
    .json(source)
)
counted = events.groupBy("k").transformWithStateInPandas(
    statefulProcessor=Counter(), outputStructType=OUTPUT, outputMode="Update", timeMode="None"
)
query = counted.writeStream.outputMode("update").foreachBatch(write).queryName("counter").start()
query.awaitTermination()
