"""The rows of a store of the HDFS-backed provider, read out of a savepoint and decoded.

From the repository itself, one partition after the other: nothing is restored for it.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sparkpoint.savepoint.manifest import OperatorInfo, QueryInfo
from sparkpoint.state.errors import UnsupportedStateError
from sparkpoint.state.querystate import refusal_to_read, store_schema
from sparkpoint.state.records import Record, StoreVersion, read_store
from sparkpoint.state.survey import SavepointFiles, operator_of, store_versions
from sparkpoint.state.types import Array, DataType, StoreSchema, Struct, Unknown
from sparkpoint.state.unsafe import Value, decode_row

__all__ = ["HdfsStore", "Key", "StateRow", "open_store", "unreadable"]


@dataclass(frozen=True, slots=True)
class StateRow:
    """A key, its value, and where it is."""

    key: tuple[Value, ...]
    value: tuple[Value, ...]
    partition: int


@dataclass(frozen=True, slots=True)
class Key:
    """A single key."""

    row: bytes
    partition: int | None
    """Where it is; None if that is not known."""


@dataclass(frozen=True, slots=True)
class HdfsStore:
    """One store over all partitions."""

    files: SavepointFiles
    schema: StoreSchema
    versions: tuple[StoreVersion, ...]
    bytes: int
    """Of its files."""

    def records(self, done: Callable[[int], None] = lambda _: None) -> Iterator[Record]:
        """Keys and values as they are; `done` hears of each partition that is through."""
        for number, version in enumerate(self.versions):
            yield from read_store(self.files, version)
            done(number)

    def rows(self, done: Callable[[int], None] = lambda _: None) -> Iterator[StateRow]:
        """The same, decoded."""
        key, value = self.schema.key, self.schema.value
        for number, version in enumerate(self.versions):
            for raw_key, raw_value in read_store(self.files, version):
                yield StateRow(decode_row(raw_key, key), decode_row(raw_value, value), number)
            done(number)

    def several(
        self, most: int, done: Callable[[int], None] = lambda _: None
    ) -> Iterator[tuple[int, list[Record]]]:
        """Partition, and some of its rows as they are."""
        for number, version in enumerate(self.versions):
            source = read_store(self.files, version)
            while records := list(itertools.islice(source, most)):
                yield number, records
            done(number)

    def one(
        self, key: Key, done: Callable[[int], None] = lambda _: None
    ) -> Iterator[tuple[int, list[Record]]]:
        """The same of a single key."""
        for number, version in enumerate(self.versions):
            if key.partition in (None, number):
                found = (each for each in read_store(self.files, version) if each[0] == key.row)
                if (record := next(found, None)) is not None:
                    yield number, [record]
            done(number)


def unreadable(operator: OperatorInfo, query: QueryInfo, files: SavepointFiles) -> str | None:
    """Why the rows of an operator cannot be read without Spark; None if they can."""
    reason = refusal_to_read(operator_of(operator), query.conf)
    if reason is not None:
        return reason
    for store in operator.stores:
        schema = store_schema(operator.id, store.name, query.batch + 1, files.read)
        for column in (*schema.key, *schema.value):
            if (name := _unknown(column.type)) is not None:
                return f"its column {column.name} is of type {name}, which is not read here"
    return None


def open_store(
    files: SavepointFiles, query: QueryInfo, operator: OperatorInfo, name: str
) -> HdfsStore:
    """A store that `unreadable` has nothing against."""
    store = next((each for each in operator.stores if each.name == name), None)
    if store is None:
        raise UnsupportedStateError(f"operator {operator.id} has no store {name!r}.")
    schema = store_schema(operator.id, name, query.batch + 1, files.read)
    versions = store_versions(operator, store, version=query.batch + 1)
    return HdfsStore(files, schema, versions, store.bytes)


def _unknown(kind: DataType) -> str | None:
    match kind:
        case Unknown(name):
            return name
        case Struct(columns):
            return next((n for c in columns if (n := _unknown(c.type)) is not None), None)
        case Array(element):
            return _unknown(element)
        case _:
            return None
