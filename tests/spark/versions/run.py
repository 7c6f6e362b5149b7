"""A Spark of some version that runs queries: `python -m tests.spark.versions.run ORDER ANSWER`.

The order is a list of queries with their places. The answer is a line of JSON for whatever happens:
which Spark it is, which query begins (by its number in the order), and what it has come to.
"""

import json
import os
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.versions.queries import PROVIDERS, QUERIES, Output
from tests.spark.versions.rows import schema

__all__ = ["DEADLINE", "main"]

DEADLINE = "DEADLINE"
"""What a query died of that did not end in time: of the machine, perhaps."""
_AT_ONCE = 4
_SECONDS = 600
_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.log.level": "ERROR",
}
Answer = dict[str, Any]


def main(order: Path, answer: Path) -> int:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("versions")
    for key, value in _CONF.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    telling = threading.Lock()

    def tell(**line: Any) -> None:
        with telling, answer.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def run(number: int, order: dict[str, str]) -> None:
        tell(begun=number)
        tell(number=number, answer=_run(spark, order))

    tell(spark=spark.version)
    orders = json.loads(order.read_text())
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(run, range(len(orders)), orders))
    spark.stop()
    return 0


def _run(spark: SparkSession, order: dict[str, str]) -> Answer:
    """The rows that a query gave to its sink, or what it died of."""
    rows: list[Output] = []
    try:
        started = _start(spark, order, rows)
        if not started.awaitTermination(_SECONDS):
            return {"died": DEADLINE, "of": f"It did not end within {_SECONDS} s."}
    # Whatever it is: that it died, and of what, is what is to be found out.
    except Exception as error:
        if _is_lost(spark):
            # No answer: whoever reads the others asks again, one query at a time.
            os._exit(1)
        return _died(f"{type(error).__name__}: {error}")
    return {"rows": rows}


def _start(spark: SparkSession, order: dict[str, str], rows: list[Output]) -> StreamingQuery:
    query = QUERIES[order["query"]]
    session = spark.newSession()  # confs of its own, also while others start
    for key, value in PROVIDERS[order["provider"]].items():
        session.conf.set(key, value)

    def keep(batch: DataFrame, _: int) -> None:
        rows.extend(tuple(row) for row in batch.collect())

    stream = session.readStream.schema(schema()).option("maxFilesPerTrigger", 1)
    frame = query.build(stream.json(order["input"])).select(*query.columns)
    writer = frame.writeStream.outputMode(query.mode).foreachBatch(keep)
    writer = writer.option("checkpointLocation", order["checkpoint"]).trigger(availableNow=True)
    return writer.start()


def _is_lost(spark: SparkSession) -> bool:
    """Whether Java has died or given up: queries then fail of that, not of what they are."""
    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())
    except Exception:
        return True


_WRAPPERS = {"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR"}
"""They say that a query has failed, and not of what."""


def _died(message: str) -> Answer:
    conditions = re.findall(r"\[([A-Z][A-Z0-9_.]+)\]", message)
    # Those without a condition have at least a class.
    causes = re.findall(r"(?:Caused by: |: )(?:[a-z]\w*\.)+(\w+(?:Error|Exception))", message)
    named = [name for name in conditions if name not in _WRAPPERS] or causes[-1:]
    if "UnsupportedLogVersion" in message or "maximum supported log version" in message:
        named = ["UnsupportedLogVersion", *named]
    # What Python itself says, of a name that this Spark does not have.
    return {"died": named[0] if named else message.partition(":")[0], "of": message[:4000]}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
