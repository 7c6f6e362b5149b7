"""Arbitrary state, the older way: a running count and sum per key."""

import sys
from typing import Iterator, Tuple

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

source, target = sys.argv[1:]


def count(
    key: Tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    n, total = state.get if state.exists else (0, 0)
    for frame in frames:
        n, total = n + len(frame), total + int(frame["v"].sum())
    state.update((n, total))
    yield pd.DataFrame({"k": [key[0]], "n": [n], "total": [total]})


def write(frame, batch):
    frame.toPandas().to_json(f"{target}/{batch:06d}.json", orient="records")


spark = SparkSession.builder.appName("pandas-state").getOrCreate()
events = (
    spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
    .option("maxFilesPerTrigger", 2)
    .json(source)
)
counted = events.groupBy("k").applyInPandasWithState(
    count,
    outputStructType="k string, n long, total long",
    stateStructType="n long, total long",
    outputMode="Update",
    timeoutConf=GroupStateTimeout.NoTimeout,
)
query = (
    counted.writeStream.outputMode("update")
    .foreachBatch(write)
    .queryName("pandas")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
