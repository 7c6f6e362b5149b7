"""The Spark process of a deep verification: `python -m sparkpoint.worker.loading ORDER ANSWER`.

It reads every state store with Spark's own reader. That a store cannot be loaded tells of damage;
that the reader does not know its kind tells nothing.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from sparkpoint.runtime.model import Document
from sparkpoint.state.spark.checksums import damaged_files
from sparkpoint.state.spark.session import FORMAT, local_session
from sparkpoint.state.spark.words import condition_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

__all__ = ["Load", "Loaded", "QueryToLoad", "main", "said_of", "state_frames", "views_of"]

_JOIN = "symmetricHashJoin"
_TIMERS = "Timers_"
_SURROUNDINGS = re.compile("OutOfMemoryError|OUT_OF_MEMORY|No space left on device")
"""What tells of this pod, and not of the savepoint."""


class QueryToLoad(Document):
    """The checkpoint of one query that has state."""

    name: str
    checkpoint: str
    batch: int
    commits_version: int


class Load(Document):
    """What to load."""

    scratch: str
    queries: tuple[QueryToLoad, ...]


class Loaded(Document):
    """What came of it."""

    rows: dict[str, int] = Field(default_factory=dict)
    """Query -> rows of state."""
    broken: tuple[str, ...] = ()
    """What could not be loaded."""
    unread: tuple[str, ...] = ()
    """What Spark's reader does not know how to read."""


def main(order: Path, answer: Path) -> int:
    """Load everything, one store after the other."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    wanted = Load.model_validate_json(order.read_text())
    spark = local_session("sparkpoint verify", wanted.scratch)
    rows: dict[str, int] = {}
    broken: list[str] = []
    unread: list[str] = []
    for query in wanted.queries:
        # The reader takes the provider from the offset log, but the format from the session.
        spark.conf.set(FORMAT, "2" if query.commits_version > 1 else "1")
        if damaged := damaged_files(spark, query.checkpoint):
            broken += [said_of(query.name, each) for each in damaged]
            continue
        try:
            frames = list(state_frames(spark, query))
        except (PySparkException, Py4JJavaError) as error:
            unread.append(said_of(query.name, condition_in(str(error))))
            continue
        try:
            rows[query.name] = sum(frame.count() for frame in frames)
        except (PySparkException, Py4JJavaError) as error:
            if _SURROUNDINGS.search(str(error)):
                raise
            broken.append(said_of(query.name, condition_in(str(error))))
    loaded = Loaded(rows=rows, broken=tuple(broken), unread=tuple(unread))
    answer.write_text(loaded.model_dump_json())
    return 0


def said_of(query: str, said: str) -> str:
    """A savepoint of a single query's checkpoint has no folder to call it by."""
    return f"{query}: {said}" if query else said


def state_frames(spark: "SparkSession", query: QueryToLoad) -> "Iterator[DataFrame]":
    """Every row of state of a query."""
    stores = spark.read.format("state-metadata").load(query.checkpoint).collect()
    for options in views_of([_described(row) for row in stores]):
        reader = spark.read.format("statestore").option("batchId", query.batch)
        yield reader.options(**options).load(query.checkpoint)


def _described(row: "Row") -> dict[str, str]:
    content = row.asDict()
    return {
        "operator": str(content["operatorId"]),
        "kind": str(content["operatorName"]),
        "store": str(content["stateStoreName"]),
        "properties": str(content.get("operatorProperties") or "{}"),
    }


def views_of(stores: list[dict[str, str]]) -> list[dict[str, str]]:
    """Options of the reads that load every store of these operators."""
    views: list[dict[str, str]] = []
    for store in stores:
        operator = {"operatorId": store["operator"]}
        variables = _variables(store["properties"])
        if store["kind"] == _JOIN:
            views += [{**operator, "joinSide": side} for side in ("left", "right")]
        elif variables:
            views += [{**operator, **_variable(name)} for name in variables]
        else:
            views.append({**operator, "storeName": store["store"]})
    # A join has several stores, and each side reads more than one of them.
    return [dict(each) for each in dict.fromkeys(tuple(view.items()) for view in views)]


def _variable(name: str) -> dict[str, str]:
    """Timers are kept in variables of Spark's own, which cannot be read by their names."""
    return {"readRegisteredTimers": "true"} if name.startswith("$") else {"stateVarName": name}


def _variables(properties: str) -> list[str]:
    """The names of an operator's state variables, if its state is made of such, and of timers."""
    content = json.loads(properties)
    listed = content.get("stateVariables", []) if isinstance(content, Mapping) else []
    parsed = [json.loads(each) if isinstance(each, str) else each for each in listed]
    names = [str(each["stateName"]) for each in parsed]
    return [name for name in names if not name.startswith("$") or _TIMERS in name]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
