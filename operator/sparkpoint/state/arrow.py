"""Decoded rows as Arrow's columns, a few thousand at a time, for whoever queries or keeps them."""

import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sparkpoint.state import manyrows, swift
from sparkpoint.state.errors import MissingLibraryError, UnsupportedStateError
from sparkpoint.state.hdfsrows import HdfsStore, StateRow
from sparkpoint.state.records import Record
from sparkpoint.state.types import (
    Array,
    Atom,
    Column,
    ColumnPath,
    DataType,
    Decimal,
    StoreSchema,
    Struct,
)
from sparkpoint.state.unsafe import decode_row

__all__ = ["arrow_library", "arrow_schema", "batches", "column_paths", "limited", "no_rows"]
__all__ += ["objects", "parquet_batches", "record_batches", "store_batches", "write_parquet"]

_TOGETHER = 8192
_MANY = 32 * 1024
_ATOMS = {
    "boolean": "bool_",
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "date": "date32",
    "string": "string",
    "binary": "binary",
    "void": "null",
}


def arrow_library(what: str) -> Any:  # it has no types
    """pyarrow; MissingLibraryError says what needs it."""
    arrow = swift.library("pyarrow")
    if arrow is None:
        raise MissingLibraryError(
            f"{what} needs pyarrow. Install it with `pip install 'sparkpoint[query]'`."
        )
    return arrow


def arrow_schema(arrow: Any, schema: StoreSchema) -> Any:
    """`key`, `value` and `partition_id`, as Spark's state reader names them."""
    shown = schema.shown
    return arrow.schema(
        [
            arrow.field("key", _struct(arrow, shown.key)),
            arrow.field("value", _struct(arrow, shown.value)),
            arrow.field("partition_id", arrow.int32()),
        ]
    )


def column_paths(fields: Iterable[Any], above: ColumnPath = ()) -> Iterator[ColumnPath]:
    """Of the fields of a schema or a struct; those of a struct are columns of their own."""
    for field in fields:
        path = (*above, str(field.name))
        is_struct = importlib.import_module("pyarrow.types").is_struct(field.type)
        if is_struct and field.type.num_fields:
            yield from column_paths(field.type, path)
        else:
            yield path


def no_rows(schema: Any) -> Any:
    """What tells nothing but the columns, for whoever has no other: a table, as batches of no rows
    cannot be made of every type."""
    return importlib.import_module("pyarrow").Table.from_batches([], schema=schema)


def batches(arrow: Any, schema: Any, rows: Iterable[StateRow]) -> Iterator[Any]:
    """The rows in batches of Arrow's, after one that tells the columns."""
    yield no_rows(schema)
    source = iter(rows)
    while several := list(itertools.islice(source, _TOGETHER)):
        columns = [
            _column(arrow, [row.key for row in several], schema.field("key").type),
            _column(arrow, [row.value for row in several], schema.field("value").type),
            arrow.array([row.partition for row in several], arrow.int32()),
        ]
        yield arrow.record_batch(columns, schema=schema)


def store_batches(
    arrow: Any, store: HdfsStore, done: Callable[[int], None] = lambda _: None
) -> Iterator[Any]:
    """All rows of a store in batches, decoded together where that is possible."""
    return record_batches(arrow, store.schema, store.several(_MANY, done))


def record_batches(
    arrow: Any, columns: StoreSchema, several: Iterable[tuple[int, list[Record]]]
) -> Iterator[Any]:
    """Rows of a store, given with their partitions, in batches."""
    schema = arrow_schema(arrow, columns)
    for partition, records in several:
        keys, values = zip(*records, strict=True)
        numbers = arrow.array([partition] * len(records), arrow.int32())
        decoded = [
            _decoded(arrow, keys, columns.key, schema.field("key").type),
            _decoded(arrow, values, columns.value, schema.field("value").type),
        ]
        yield arrow.record_batch([*decoded, numbers], schema=schema)


def _decoded(arrow: Any, rows: Sequence[bytes], columns: Sequence[Column], kind: Any) -> Any:
    together = manyrows.decoded(rows, columns, kind)
    if together is not None:
        return together
    return _column(arrow, [decode_row(row, columns) for row in rows], kind)


def parquet_batches(folder: Path) -> Iterator[Any]:
    """What the files of a folder hold, after a batch that tells the columns."""
    dataset = importlib.import_module("pyarrow.dataset").dataset(folder, format="parquet")
    yield no_rows(dataset.schema)
    yield from (each for each in dataset.to_batches(batch_size=_TOGETHER) if each.num_rows)


def objects(batch: Any) -> Iterator[dict[str, object]]:
    """The rows of a batch as Python's objects; times beyond Python's years as their numbers, and
    what is no UTF-8 in texts replaced."""
    try:
        yield from batch.to_pylist()
    except (OverflowError, ValueError):
        # Whole batches are converted before the first row is given: none was yielded yet.
        names = batch.schema.names
        for number in range(batch.num_rows):
            yield {name: _object(batch.column(at)[number]) for at, name in enumerate(names)}


def _object(scalar: Any) -> object:
    kinds = importlib.import_module("pyarrow.types")
    if not scalar.is_valid:
        return None
    if kinds.is_struct(scalar.type):
        fields = range(scalar.type.num_fields)
        return {scalar.type.field(at).name: _object(scalar[at]) for at in fields}
    if kinds.is_map(scalar.type):
        pairs = ((_object(each[0]), _object(each[1])) for each in scalar.values)
        return list(pairs)
    lists = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)
    if any(is_list(scalar.type) for is_list in lists):
        return [_object(each) for each in scalar.values]
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes().decode(errors="replace")
    except (OverflowError, ValueError):
        return scalar.value


def limited(source: Iterable[Any], limit: int | None) -> Iterator[Any]:
    """Not more than so many rows of them."""
    left = limit
    for batch in source:
        if left is None:
            yield batch
            continue
        if left <= 0:
            return
        yield batch.slice(0, left)
        left -= batch.num_rows


def write_parquet(source: Iterable[Any], target: Path) -> int:
    """Write batches to a new file, which is there only when it is whole; the number of rows.

    The first tells the columns, and is written only if it has rows: some readers of Parquet do not
    take a group of none.
    """
    parquet = importlib.import_module("pyarrow.parquet")
    growing = target.with_name(f".{target.name}.growing")
    batches, rows = iter(source), 0
    first = next(batches)
    try:
        with parquet.ParquetWriter(growing, first.schema) as writer:
            for batch in itertools.chain([first], batches):
                if batch.num_rows:
                    writer.write_batch(batch)
                    rows += batch.num_rows
        growing.replace(target)
    finally:
        growing.unlink(missing_ok=True)
    return rows


def _column(arrow: Any, values: Sequence[object], kind: Any) -> Any:
    if kind == arrow.null():
        return arrow.nulls(len(values))
    return arrow.array(values, kind)


def _struct(arrow: Any, columns: Sequence[Column]) -> Any:
    if not columns:
        return arrow.null()  # a struct of nothing is more than most readers know
    return arrow.struct([arrow.field(c.name, _type(arrow, c.type)) for c in columns])


def _type(arrow: Any, kind: DataType) -> Any:
    match kind:
        case Atom("timestamp"):
            return arrow.timestamp("us", tz="UTC")
        case Atom("timestamp_ntz"):
            return arrow.timestamp("us")
        case Atom(name):
            return getattr(arrow, _ATOMS[name])()
        case Decimal(precision, scale):
            return arrow.decimal128(precision, scale)
        case Struct(columns):
            return _struct(arrow, columns)
        case Array(element):
            return arrow.list_(_type(arrow, element))
        case _:
            raise UnsupportedStateError(f"values of type {kind.name} cannot be read here.")
