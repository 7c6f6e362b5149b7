"""The state of one query as a checkpoint holds it: every store, its schema and how it is placed.

Refuses by name what cannot be read here. Reads schemas, and no state.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sparkpoint.checkpoint.errors import IncompleteError
from sparkpoint.checkpoint.layout import DEFAULT_STORE, store_folder
from sparkpoint.checkpoint.model import Operator
from sparkpoint.checkpoint.names import CODEC, DECODABLE, codec_name
from sparkpoint.state.errors import UnsupportedStateError
from sparkpoint.state.placement import Placement, placement_of
from sparkpoint.state.records import StoreVersion
from sparkpoint.state.types import StoreSchema, parse_store_schema
from sparkpoint.storage.errors import NotFoundError

__all__ = ["PlacedStore", "placed_stores", "refusal_to_move", "refusal_to_read", "schema_path"]

_CHECKSUMS = "spark.sql.streaming.stateStore.rowChecksum.enabled"
_ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
_STRICT = "spark.sql.streaming.statefulOperator.useStrictDistribution"
_AGGREGATION = "spark.sql.streaming.aggregation.stateFormatVersion"
_JOIN = "spark.sql.streaming.join.stateFormatVersion"
_GROUPS = "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion"
_FORMATS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "stateStoreSave": {_AGGREGATION: ("1", "2")},
    "symmetricHashJoin": {_JOIN: ("2",)},
    "flatMapGroupsWithState": {_GROUPS: ("1", "2")},
    "applyInPandasWithState": {_GROUPS: ("1", "2")},
}
"""Operator -> conf -> the state formats whose keys we know. Spark 4 runs no join of format 1."""
_LEGACY = "1"
"""The format of a checkpoint that is too old to say it."""


@dataclass(frozen=True, slots=True)
class PlacedStore:
    """One store of an operator, over all partitions."""

    operator: Operator
    name: str
    schema: StoreSchema
    placement: Placement
    partitions: tuple[StoreVersion, ...]


def refusal_to_read(operator: Operator, conf: Mapping[str, str]) -> str | None:
    """Why the rows of an operator cannot be read without Spark; None if they can."""
    codec = codec_name(conf.get(CODEC, DECODABLE)) or conf.get(CODEC)
    if operator.provider != "hdfs":
        return f"it is kept by the {operator.provider} provider, whose files only Spark reads"
    if operator.metadata_version not in (None, 1):
        return f"its metadata is of version {operator.metadata_version}, with column families"
    if codec != DECODABLE:
        return f"it is compressed with {codec}, and only {DECODABLE} is read here"
    if conf.get(_CHECKSUMS, "false") != "false":
        return f"its rows carry checksums ({_CHECKSUMS})"
    if conf.get(_ENCODING, "unsaferow") != "unsaferow":
        return f"its rows are encoded as {conf[_ENCODING]} ({_ENCODING})"
    return None


def refusal_to_move(operator: Operator, conf: Mapping[str, str]) -> str | None:
    """Why the rows of an operator cannot be moved to other partitions; None if they can."""
    unreadable = refusal_to_read(operator, conf)
    if unreadable is not None:
        return unreadable
    if conf.get(_STRICT) != "true":
        return f"its keys may be placed by some of their columns only ({_STRICT} is not true)"
    for key, known in _formats(operator).items():
        found = conf.get(key, _LEGACY)
        if found not in known:
            return f"{key} is {found}; known is {' and '.join(known)}"
    return None


def _formats(operator: Operator) -> Mapping[str, tuple[str, ...]]:
    if operator.name is not None:
        return _FORMATS.get(operator.name, {})
    # Spark 3.5 records no names; a join is told by its stores.
    joins = any(store.name != DEFAULT_STORE for store in operator.stores)
    return _FORMATS["symmetricHashJoin"] if joins else _FORMATS["stateStoreSave"]


def placed_stores(
    operator: Operator, *, version: int, read: Callable[[str], bytes]
) -> Iterator[PlacedStore]:
    """Every store of an operator that can be read; `read` gives the content of a small file."""
    for store in operator.stores:
        schema = _schema(operator, store.name, version, read)
        yield PlacedStore(
            operator=operator,
            name=store.name,
            schema=schema,
            placement=placement_of(operator, store.name, schema),
            partitions=tuple(
                StoreVersion(store_folder(operator.id, number, store.name), base, version)
                for number, base in enumerate(store.base_versions)
            ),
        )


def schema_path(operator: int, store: str) -> str:
    """Where Spark keeps the schema of a store: in its first partition."""
    return f"{store_folder(operator, 0, store)}/_metadata/schema"


def _schema(
    operator: Operator, store: str, version: int, read: Callable[[str], bytes]
) -> StoreSchema:
    path = schema_path(operator.id, store)
    try:
        schema = parse_store_schema(read(path), path)
    except NotFoundError as error:
        raise IncompleteError([path], batch=version - 1) from error
    if schema is None:
        raise UnsupportedStateError(f"{path} is in a format that is not known here.")
    return schema
