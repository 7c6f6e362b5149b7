"""Whether a savepoint can go on with a Spark and a configuration, as far as files tell. Pure.

What Spark pins in a checkpoint wins over what a session asks for, without an error: that is told as
a note. What a Spark cannot read, or would read wrongly without a word, is an obstacle. Whether code
fits the state is not told by files; a trial tells it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sparkpoint.checkpoint.layout import DEFAULT_STORE
from sparkpoint.savepoint.manifest import OperatorInfo, QueryInfo
from sparkpoint.state.querystate import store_schema

__all__ = ["Finding", "findings"]

_KEY_ORDER = "spark.sql.dropDuplicates.deterministicKeyOrder.enabled"
_PARTITIONS = "spark.sql.shuffle.partitions"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_UNORDERED = 5
"""Columns from which on Spark before 4.3 puts those of dropDuplicates in an order of its own."""
_WITH_IDS = 2
"""The version of the commit log in which it names state files by ids."""
_COMMITS = {_WITH_IDS: (4, 0), 3: (4, 3)}
_OFFSETS = {2: (4, 2)}
"""Version of a log -> the first Spark that reads it."""
_STATE = "spark.sql.streaming.stateStore"
_FORMATS = {
    (f"{_STATE}.encodingFormat", "avro"): (4, 0),
    ("spark.sql.streaming.join.stateFormatVersion", "3"): (4, 1),
    # 4.2 has it for tests of Spark's own.
    ("spark.sql.streaming.join.stateFormatVersion", "4"): (4, 3),
    # 4.1 knows it, and goes by its own setting and not by what the checkpoint says.
    (f"{_STATE}.rowChecksum.enabled", "true"): (4, 2),
}
"""What a checkpoint has pinned of the form of state -> the first Spark that reads it. One before it
does not know the setting: it refuses the state, or takes what was added for a part of the rows."""
_OF_JOINS = "spark.sql.streaming.join."


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that files tell."""

    query: str
    is_obstacle: bool
    """Else it is only good to know."""
    message: str
    remedy: str


def findings(
    query: QueryInfo,
    *,
    spark_version: str | None,
    conf: Mapping[str, str],
    read: Callable[[str], bytes],
    written_by: str | None = None,
) -> list[Finding]:
    """What to say of one query; `read` gives the content of a small file of its checkpoint.

    `written_by` is the Spark that ran it, if that is known.
    """
    version = _parsed(spark_version)
    found = _pinned(query, conf)
    if version is not None and spark_version is not None:
        found += _logs(query, version, spark_version)
        found += _formats(query, version, spark_version)
        found += _order(query, version, spark_version, read)
        found += _processors(query, version, spark_version)
        found += _old_joins(query, version, spark_version)
        found += _unique_ids(query, version, _parsed(written_by))
    return found


def _parsed(text: str | None) -> tuple[int, int] | None:
    match = re.match(r"([0-9]+)\.([0-9]+)", text or "")
    return (int(match[1]), int(match[2])) if match else None


def _logs(query: QueryInfo, version: tuple[int, int], told: str) -> list[Finding]:
    logs = (
        ("commit", query.commits_version, _COMMITS),
        ("offset", query.offsets_version, _OFFSETS),
    )
    return [
        Finding(
            query.prefix,
            is_obstacle=True,
            message=f"Spark {told} cannot read its {name} log, which is of version {number}.",
            remedy=f"Use Spark {first[number][0]}.{first[number][1]} or later.",
        )
        for name, number, first in logs
        if number in first and version < first[number]
    ]


def _formats(query: QueryInfo, version: tuple[int, int], told: str) -> list[Finding]:
    has_join = any(operator.name == "symmetricHashJoin" for operator in query.operators)
    return [
        Finding(
            query.prefix,
            is_obstacle=True,
            message=f"Spark {told} cannot read its state, which was begun with {key}={value}.",
            remedy=f"Use Spark {first[0]}.{first[1]} or later.",
        )
        for (key, value), first in _FORMATS.items()
        if query.conf.get(key) == value
        and version < first
        and (has_join if key.startswith(_OF_JOINS) else query.operators)
    ]


def _order(
    query: QueryInfo, version: tuple[int, int], told: str, read: Callable[[str], bytes]
) -> list[Finding]:
    """Going down, Spark takes the columns of a key for each other, and says nothing."""
    if version >= (4, 3) or query.conf.get(_KEY_ORDER) != "true":
        return []
    return [
        Finding(
            query.prefix,
            is_obstacle=True,
            message=f"Spark {told} would read the columns of dropDuplicates (operator "
            f"{operator.id}) in another order, and let duplicates through without a word.",
            remedy="Use Spark 4.3 or later, or restore a savepoint from before the upgrade to it.",
        )
        for operator in query.operators
        if _is_wide_dedupe(query, operator, read)
    ]


def _is_wide_dedupe(query: QueryInfo, operator: OperatorInfo, read: Callable[[str], bytes]) -> bool:
    if operator.name not in ("dedupe", "dedupeWithinWatermark"):
        return False
    schema = store_schema(operator.id, DEFAULT_STORE, query.batch + 1, read)
    return len(schema.key) >= _UNORDERED


def _processors(query: QueryInfo, version: tuple[int, int], told: str) -> list[Finding]:
    if version >= (4, 0):
        return []
    return [
        Finding(
            query.prefix,
            is_obstacle=True,
            message=f"Spark {told} has no transformWithState, which operator {operator.id} is.",
            remedy="Use Spark 4.0 or later.",
        )
        for operator in query.operators
        if operator.name is not None and operator.name.startswith("transformWithState")
    ]


def _old_joins(query: QueryInfo, version: tuple[int, int], told: str) -> list[Finding]:
    """Spark 4 takes columns of outer joins for nullable that were not, and refuses their state."""
    if version < (4, 0):
        return []
    return [
        Finding(
            query.prefix,
            is_obstacle=False,
            message=f"Its join (operator {operator.id}) was begun by a Spark before 4.0. Spark "
            f"{told} may refuse the state of an outer join for columns that can be null now.",
            remedy="If it does, for code that is the same, set "
            "spark.sql.streaming.stateStore.stateSchemaCheck to false for the first start.",
        )
        for operator in query.operators
        # Who began it recorded no names of operators; a join is told by its stores.
        if operator.name is None and any(s.name != DEFAULT_STORE for s in operator.stores)
    ]


def _unique_ids(
    query: QueryInfo, version: tuple[int, int], written_by: tuple[int, int] | None
) -> list[Finding]:
    """Snapshots of state with unique ids have another number in 4.0 than in the lines after it."""
    crossed = written_by is None or (written_by == (4, 0)) != (version == (4, 0))
    in_rocksdb = any(operator.provider == "rocksdb" for operator in query.operators)
    if query.commits_version != _WITH_IDS or not in_rocksdb or version < (4, 0) or not crossed:
        return []
    return [
        Finding(
            query.prefix,
            is_obstacle=False,
            message="Its state has unique ids (checkpoint format 2). Spark 4.0 and the lines after "
            "it do not read each other's snapshots of such state.",
            remedy="Go on with the line that wrote it, if the trial fails.",
        )
    ]


def _pinned(query: QueryInfo, conf: Mapping[str, str]) -> list[Finding]:
    """Spark goes on with what the offset log says, whatever the session asks for."""
    if not query.operators:
        return []
    remedies = {
        _PARTITIONS: "Change it with `sparkpoint state repartition`.",
        _PROVIDER: "Change it with `sparkpoint state migrate`.",
    }
    return [
        Finding(
            query.prefix,
            is_obstacle=False,
            message=f"{key} is pinned to {query.conf[key]}; {wanted} will have no effect.",
            remedy=remedies.get(key, "Leave it as it is, or start without state."),
        )
        for key, wanted in conf.items()
        if key in query.conf and wanted != query.conf[key]
    ]
