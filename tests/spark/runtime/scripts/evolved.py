"""Queries with all kinds of state, and what new versions of them may be like.

Arguments: input, then the names of the queries; a version of `dedupe` is `dedupe-something`.
"""

import sys

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

source, *names = sys.argv[1:]
spark = SparkSession.builder.appName("evolved").getOrCreate()
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def events(delay="10 minutes"):
    rows = spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
    return rows.option("maxFilesPerTrigger", 1).json(source).withWatermark("ts", delay)


def counted(state, kind):
    def count(key, frames, group):
        (n,) = group.get if group.exists else (0,)
        n += sum(len(frame) for frame in frames)
        group.update((n,))
        yield pd.DataFrame({"k": [key[0]], "n": [n]})

    frame = events().groupBy("k")
    return frame.applyInPandasWithState(
        count, "k string, n long", f"{state} {kind}", "Update", GroupStateTimeout.NoTimeout
    )


class Counting(StatefulProcessor):
    def __init__(self, *variables):
        self._variables = variables

    def init(self, handle):
        self._states = [handle.getValueState(name, kind) for name, kind in self._variables]

    def handleInputRows(self, key, rows, timers):
        n = sum(len(frame) for frame in rows)
        for state in self._states:
            state.update((n,))
        yield pd.DataFrame({"k": [key[0]], "n": [n]})

    def close(self):
        pass


def transformed(*variables, mode="None", key="k"):
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    return (
        events()
        .groupBy(key)
        .transformWithStateInPandas(
            statefulProcessor=Counting(*variables),
            outputStructType="k string, n long",
            outputMode="Update",
            timeMode=mode,
        )
    )


def joined(left, right):
    ours = events().selectExpr(*left)
    theirs = events().selectExpr(*right)
    return ours.join(theirs, F.expr("a = b AND t <= u AND u <= t + interval 1 minute"))


def in_families(left, right):
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    spark.conf.set("spark.sql.streaming.join.stateFormatVersion", "3")
    return joined(left, right)


def sessions(gap, *keys):
    return events().groupBy(*keys, F.session_window("ts", gap)).count()


FRAMES = {
    "dedupe": lambda: events().dropDuplicates(["k", "side"]),
    "dedupe-filtered": lambda: events().where("v > 1").dropDuplicates(["k", "side"]),
    "dedupe-swapped": lambda: events().dropDuplicates(["side", "k"]),
    "dedupe-other": lambda: events().dropDuplicates(["id", "side"]),
    "dedupe-wider": lambda: events().dropDuplicates(["k", "side", "v"]),
    "windows": lambda: events().groupBy("k", F.window("ts", "1 minute")).count(),
    "windows-later": lambda: events("1 hour").groupBy("k", F.window("ts", "1 minute")).count(),
    "windows-first": lambda: events().groupBy(F.window("ts", "1 minute"), "k").count(),
    "windows-least": lambda: events().groupBy("k", F.window("ts", "1 minute")).agg(F.min("v")),
    "sessions": lambda: sessions("1 minute", "k"),
    "sessions-longer": lambda: sessions("5 minutes", "k"),
    "sessions-other": lambda: sessions("1 minute", "side"),
    "join": lambda: joined(("k a", "v x", "ts t"), ("k b", "v y", "ts u")),
    "join-renamed": lambda: joined(("k a", "v z", "ts t"), ("k b", "v y", "ts u")),
    "join-wider": lambda: joined(("k a", "v x", "ts t", "side"), ("k b", "v y", "ts u")),
    "families": lambda: in_families(("k a", "v x", "ts t"), ("k b", "v y", "ts u")),
    "families-renamed": lambda: in_families(("k a", "v z", "ts t"), ("k b", "v y", "ts u")),
    "groups": lambda: counted("n", "long"),
    "groups-renamed": lambda: counted("m", "long"),
    "groups-real": lambda: counted("n", "double"),
    "processor": lambda: transformed(("n", "n long")),
    "processor-more": lambda: transformed(("n", "n long"), ("m", "m long")),
    "processor-renamed": lambda: transformed(("m", "n long")),
    "processor-other": lambda: transformed(("n", "n long"), key="side"),
    "processor-text": lambda: transformed(("n", "n string")),
    "processor-timed": lambda: transformed(("n", "n long"), mode="ProcessingTime"),
}

for name in names:
    spark.conf.unset("spark.sql.streaming.stateStore.providerClass")
    spark.conf.unset("spark.sql.streaming.join.stateFormatVersion")
    mode = "update" if name.startswith(("groups", "processor")) else "append"
    writer = FRAMES[name]().writeStream.queryName(name).outputMode(mode)
    writer.format("noop").start()
spark.streams.awaitAnyTermination()
