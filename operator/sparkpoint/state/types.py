"""The schema of a state store: the columns of its keys and values, as Spark's schema files say.

Knows the types that rows of state can hold; what it does not know it keeps by name, for whoever
needs to refuse it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparkpoint.checkpoint.jsonlog import Json, as_list, as_object, as_text, parse
from sparkpoint.checkpoint.operators import schema_texts

__all__ = ["Array", "Atom", "Column", "ColumnPath", "DataType", "Decimal", "StoreSchema", "Struct"]
__all__ += ["Unknown", "distinct", "parse_columns", "parse_store_schema"]

_ATOMS = frozenset(
    {
        *("boolean", "byte", "short", "integer", "long", "float", "double", "date"),
        *("timestamp", "timestamp_ntz", "string", "binary", "void"),
    }
)
_DECIMAL = re.compile(r"decimal\(([0-9]{1,2}),(-?[0-9]{1,2})\)")
_TIME = re.compile(r"time\([0-9]\)")
_COLLATIONS = "__COLLATIONS"
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Atom:
    """A type without parameters, by Spark's name for it; intervals and times are their numbers."""

    name: str


@dataclass(frozen=True, slots=True)
class Decimal:
    """`decimal(precision, scale)`."""

    precision: int
    scale: int

    @property
    def fits_long(self) -> bool:
        """Whether Spark keeps the unscaled number in the row itself."""
        return self.precision <= 18


@dataclass(frozen=True, slots=True)
class Struct:
    """A row inside of a row, such as a window."""

    columns: "tuple[Column, ...]"


@dataclass(frozen=True, slots=True)
class Array:
    """Several values of one type."""

    element: "DataType"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A type that we do not read: maps, collated strings, user-defined types, future ones."""

    name: str


ColumnPath = tuple[str, ...]
"""Names of columns, from the outermost inwards."""
DataType = Atom | Decimal | Struct | Array | Unknown


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a key or value."""

    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class StoreSchema:
    """What a store's keys and values are made of."""

    key: tuple[Column, ...]
    value: tuple[Column, ...]

    def paths(self) -> Iterator[ColumnPath]:
        """Of all columns that whoever looks at rows sees."""
        yield from _paths(self.key, ("key",))
        yield from _paths(self.value, ("value",))
        yield ("partition_id",)

    @property
    def shown(self) -> "StoreSchema":
        """With names that occur once, as whoever looks at rows sees them."""
        return StoreSchema(_distinct_columns(self.key), _distinct_columns(self.value))


def _paths(columns: tuple[Column, ...], above: ColumnPath) -> Iterator[ColumnPath]:
    if not columns:
        yield above
    for column in columns:
        inside = column.type.columns if isinstance(column.type, Struct) else ()
        yield from _paths(inside, (*above, column.name))


def distinct(names: Sequence[str]) -> list[str]:
    """`sum`, `sum_1` for two that are called `sum`, as Spark calls what it keeps of every sum.

    SQL does not tell upper from lower case.
    """
    given, found = {name.lower() for name in names}, list[str]()
    used: set[str] = set()
    for name in names:
        unique, number = name, 0
        while unique.lower() in used or (number and unique.lower() in given):
            number += 1
            unique = f"{name}_{number}"
        used.add(unique.lower())
        found.append(unique)
    return found


def _distinct_columns(columns: "tuple[Column, ...]") -> "tuple[Column, ...]":
    names = distinct([column.name for column in columns])
    return tuple(
        Column(name, _distinct_type(column.type))
        for name, column in zip(names, columns, strict=True)
    )


def _distinct_type(kind: DataType) -> DataType:
    match kind:
        case Struct(columns):
            return Struct(_distinct_columns(columns))
        case Array(element):
            return Array(_distinct_type(element))
        case _:
            return kind


def parse_store_schema(data: bytes, path: str) -> StoreSchema | None:
    """What a schema file says; None in a version that only stores with column families have."""
    texts = schema_texts(data, path)
    if texts is None:
        return None
    return StoreSchema(*(parse_columns(parse(text, path), path) for text in texts))


def parse_columns(schema: Json, path: str, *, depth: int = 0) -> tuple[Column, ...]:
    """The columns of a struct in Spark's JSON."""
    fields = as_list(as_object(schema, path, "the schema").get("fields"), path, "fields")
    return tuple(_column(as_object(field, path, "a field"), path, depth) for field in fields)


def _column(field: dict[str, Json], path: str, depth: int) -> Column:
    name = as_text(field.get("name"), path, "a field's name")
    metadata = as_object(field.get("metadata") or {}, path, "metadata")
    if _COLLATIONS in metadata:
        return Column(name, Unknown("string with a collation"))
    return Column(name, _type(field.get("type"), path, depth + 1))


def _type(kind: Json, path: str, depth: int) -> DataType:
    if isinstance(kind, str):
        return _simple(kind)
    fields = as_object(kind, path, "a type")
    name = as_text(fields.get("type"), path, "a type's name")
    if name == "struct" and depth < _DEEPEST:
        return Struct(parse_columns(fields, path, depth=depth))
    if name == "array" and depth < _DEEPEST:
        return Array(_type(fields.get("elementType"), path, depth + 1))
    return Unknown(name)


def _simple(name: str) -> DataType:
    if name in _ATOMS:
        return Atom(name)
    if found := _DECIMAL.fullmatch(name):
        return Decimal(int(found[1]), int(found[2]))
    if name.startswith("interval ") and name.endswith((" year", " month")):
        return Atom("integer")
    if name.startswith("interval ") or _TIME.fullmatch(name):
        return Atom("long")
    return Unknown(name)
