"""The Spark process that writes rows into RocksDB, on throw-away copies:
`python -m sparkpoint.state.spark.migrating ORDER ANSWER`.

Spark has no writer of state for everybody, but one for its own repartitioning (4.2 and later),
which takes keys and values as bytes and makes a snapshot of them. It is called once for each
partition of each store, with rows that were written to Parquet before.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from sparkpoint.checkpoint.names import ROCKSDB_PROVIDER
from sparkpoint.state.spark.raw import PartCount, StoreName, counted
from sparkpoint.state.spark.session import FORMAT, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Migrated", "Migrating", "QueryRows", "StoreRows", "main"]

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_FAMILY = "default"


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StoreRows(_Document):
    """One store, and where its rows are: a Parquet file for each partition."""

    name: StoreName
    prefix_columns: int
    """How many columns of the key Spark scans by; 0 for none."""
    files: list[str]


class QueryRows(_Document):
    """One query in a copy of its checkpoint."""

    prefix: str
    checkpoint: str
    batch: int
    partitions: int
    stores: list[StoreRows]


class Migrating(_Document):
    """What to write."""

    scratch: str
    queries: list[QueryRows]


class Migrated(_Document):
    """What is there now."""

    counts: dict[str, list[PartCount]] = Field(default_factory=dict)
    """By query."""
    problem: str | None = None
    """What Spark says against it."""


def main(order: Path, answer: Path) -> int:
    """Write all that is asked for."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    wanted = Migrating.model_validate_json(order.read_text())
    conf = {_PROVIDER: ROCKSDB_PROVIDER, FORMAT: "1"}
    spark = local_session("sparkpoint migrate", wanted.scratch, conf)
    done = Migrated()
    try:
        done = Migrated(counts={query.prefix: _moved(spark, query) for query in wanted.queries})
    except (PySparkException, Py4JJavaError) as error:
        done = Migrated(problem=str(error))
    answer.write_text(done.model_dump_json())
    return 0


def _moved(spark: "SparkSession", query: QueryRows) -> list[PartCount]:
    """Write every store, and read it again."""
    for store in query.stores:
        _write(spark, query, store)
    found = []
    for store in query.stores:
        found += counted(
            spark, query.checkpoint, query.batch, store=store.name, partitions=query.partitions
        )
    return found


def _write(spark: "SparkSession", query: QueryRows, store: StoreRows) -> None:
    """Hand each partition's rows to a writer of its own."""
    jvm: Any = spark._jvm  # py4j has no types for what is behind it
    state = jvm.org.apache.spark.sql.execution.streaming.state
    session = spark._jsparkSession.sessionState()
    hadoop = session.newHadoopConf()
    nothing = jvm.scala.Option.empty()
    info = state.StatePartitionWriterColumnFamilyInfo(
        _family(jvm, query, store, hadoop, nothing), False
    )
    families = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({_FAMILY: info})
    for partition, file in enumerate(store.files):
        writer = state.StatePartitionAllColumnFamiliesWriter(
            state.StateStoreConf.apply(session.conf()),
            hadoop,
            partition,
            query.checkpoint,
            store.name.operator,
            store.name.store,
            query.batch,
            families,
            nothing,
        )
        frame = spark.read.parquet(file).selectExpr(
            "0 AS partition_key", "key_bytes", "value_bytes", f"'{_FAMILY}' AS column_family_name"
        )
        writer.write(frame._jdf.queryExecution().executedPlan().executeToIterator())


def _family(jvm: Any, query: QueryRows, store: StoreRows, hadoop: Any, nothing: Any) -> Any:
    """The store's schema, with the way in which RocksDB encodes its keys."""
    state = jvm.org.apache.spark.sql.execution.streaming.state
    place = state.StateStoreId(
        f"{query.checkpoint}/state", store.name.operator, 0, store.name.store
    )
    identity = state.StateStoreProviderId(place, jvm.java.util.UUID.randomUUID())
    no_files = jvm.org.apache.spark.api.python.PythonUtils.toSeq([]).toList()
    checker = state.StateSchemaCompatibilityChecker(identity, hadoop, no_files, nothing, False)
    schema = checker.readSchemaFile().head()
    key = schema.keySchema()
    if store.prefix_columns:
        encoder = state.PrefixKeyScanStateEncoderSpec(key, store.prefix_columns)
    else:
        encoder = state.NoPrefixKeyStateEncoderSpec(key)
    return state.StateStoreColFamilySchema(
        schema.colFamilyName(),
        schema.keySchemaId(),
        key,
        schema.valueSchemaId(),
        schema.valueSchema(),
        jvm.scala.Some(encoder),
        schema.userKeyEncoderSchema(),
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
