"""What Spark knows of a query before it starts; nothing of it is worth a start that fails."""

import logging

from pyspark.sql import DataFrame, SparkSession

from sparkpoint.runtime.execution import LostError, answered, qualified

__all__ = ["file_sink", "sources_of"]

_DEFAULT_FORMAT = "spark.sql.sources.default"
_FILES = ("avro", "csv", "json", "orc", "parquet", "text", "xml")
_RELATIONS = ("StreamingRelation", "StreamingRelationV2")

logger = logging.getLogger("sparkpoint.runtime")


def sources_of(frame: DataFrame) -> tuple[str, ...]:
    """The formats of the streams that it reads; nothing where Spark does not tell."""
    try:
        with answered():
            leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
            found = [leaves.apply(number) for number in range(leaves.size())]
            return tuple(
                str(leaf.sourceName())
                for leaf in found
                if str(leaf.getClass().getSimpleName()) in _RELATIONS
            )
    except LostError as lost:
        # A query that Spark cannot analyze says so when it starts.
        logger.debug("The sources of a query are not known: %s", lost)
        return ()


def file_sink(session: SparkSession, sink: str | None, path: str | None) -> str | None:
    """The place of a file sink, if this is one: a table's is known to its catalogue alone."""
    kind = sink or session.conf.get(_DEFAULT_FORMAT, None) or ""
    jvm = session._jvm
    if jvm is None or path is None or kind.lower() not in _FILES:
        return None
    try:
        with answered():
            return qualified(jvm, session._jsparkSession, path)
    except LostError as lost:
        logger.debug("The place of a sink is not known: %s", lost)
        return None
