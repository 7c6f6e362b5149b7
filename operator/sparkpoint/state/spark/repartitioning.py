"""The Spark process that repartitions RocksDB's state, by Spark's own means, on throw-away copies:
`python -m sparkpoint.state.spark.repartitioning ORDER ANSWER`.

Everything is counted before and after, and its place compared; what that means is for whoever
gave the order to say.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from sparkpoint.state.samebatch import keep_batch
from sparkpoint.state.spark.checksums import damaged_files
from sparkpoint.state.spark.raw import PartCount, StoreName, counted
from sparkpoint.state.spark.session import FORMAT, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["QueryMove", "QueryMoved", "Repartitioned", "Repartitioning", "main"]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class QueryMove(_Document):
    """One query in a copy of its checkpoint."""

    prefix: str
    checkpoint: str
    batch: int
    format: int
    """Of the checkpoint: 1, or 2 with ids of state files."""
    before: int
    """How many partitions it has."""
    stores: list[StoreName]


class Repartitioning(_Document):
    """What to do."""

    scratch: str
    partitions: int
    queries: Annotated[list[QueryMove], Field(min_length=1)]


class QueryMoved(_Document):
    """What was counted."""

    before: list[PartCount]
    after: list[PartCount]


class Repartitioned(_Document):
    """What came of it."""

    moved: dict[str, QueryMoved] = Field(default_factory=dict)
    problem: str | None = None
    """What Spark says against it."""


def main(order: Path, answer: Path) -> int:
    """Repartition one query after the other."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    wanted = Repartitioning.model_validate_json(order.read_text())
    spark = local_session("sparkpoint repartition", wanted.scratch)
    done = Repartitioned()
    for query in wanted.queries:
        if damaged := damaged_files(spark, query.checkpoint):
            answer.write_text(Repartitioned(problem=damaged[0]).model_dump_json())
            return 0
    try:
        moved = {query.prefix: _moved(spark, query, wanted.partitions) for query in wanted.queries}
        done = Repartitioned(moved=moved)
    except (PySparkException, Py4JJavaError) as error:
        done = Repartitioned(problem=str(error))
    answer.write_text(done.model_dump_json())
    return 0


def _moved(spark: "SparkSession", query: QueryMove, partitions: int) -> QueryMoved:
    # A format that is not the checkpoint's would leave a batch that is never finished.
    spark.conf.set(FORMAT, str(query.format))
    before = _counted(spark, query, query.before)
    if any(count.misplaced for count in before):
        return QueryMoved(before=before, after=[])
    spark._streamingCheckpointManager.repartition(query.checkpoint, partitions)
    keep_batch(Path(query.checkpoint), batch=query.batch, partitions=partitions)
    return QueryMoved(before=before, after=_counted(spark, query, partitions))


def _counted(spark: "SparkSession", query: QueryMove, partitions: int) -> list[PartCount]:
    return [
        count
        for store in query.stores
        for count in counted(
            spark, query.checkpoint, query.batch, store=store, partitions=partitions
        )
    ]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
