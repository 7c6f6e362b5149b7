"""Spark's UnsafeRow: one row of bytes, decoded by its schema into plain values.

A row is a bit per column that says null, a word of eight bytes per column, and what did not fit
those words behind them. Times stay numbers (microseconds, days), as Spark keeps them.
"""

import decimal
import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.state.errors import UnsupportedStateError
from sparkpoint.state.types import Array, Atom, Column, DataType, Decimal, Struct, Unknown

__all__ = ["Value", "decode_row"]

Value: TypeAlias = "bool | int | float | str | bytes | decimal.Decimal | tuple[Value, ...] | None"

_PLACE = struct.Struct("<II")
_NUMBERS = {
    "byte": struct.Struct("<b"),
    "short": struct.Struct("<h"),
    "integer": struct.Struct("<i"),
    "date": struct.Struct("<i"),
    "long": struct.Struct("<q"),
    "timestamp": struct.Struct("<q"),
    "timestamp_ntz": struct.Struct("<q"),
    "float": struct.Struct("<f"),
    "double": struct.Struct("<d"),
}
_LONG = _NUMBERS["long"]


def decode_row(row: bytes, columns: Sequence[Column]) -> tuple[Value, ...]:
    """The values of a row; DamagedError if it is none of this schema."""
    bitset = (len(columns) + 63) // 64 * 8
    if len(row) < bitset + 8 * len(columns):
        raise DamagedError(f"a row of {len(row)} bytes is too short for {len(columns)} columns.")
    return tuple(
        None
        if row[number >> 3] >> (number & 7) & 1
        else _value(row, bitset + 8 * number, column.type)
        for number, column in enumerate(columns)
    )


def _value(row: bytes, at: int, kind: DataType) -> Value:
    match kind:
        case Atom("boolean"):
            return row[at] != 0
        case Atom("string"):
            return _outside(row, at).decode(errors="replace")
        case Atom("binary"):
            return _outside(row, at)
        case Atom("void"):
            return None
        case Atom(name):
            number: Value = _NUMBERS[name].unpack_from(row, at)[0]
            return number
        case Decimal():
            return _decimal(row, at, kind)
        case Struct(columns):
            return decode_row(_outside(row, at), columns)
        case Array(element):
            return _array(_outside(row, at), element)
        case Unknown(name):
            raise UnsupportedStateError(f"values of type {name} cannot be read here.")


def _outside(row: bytes, at: int) -> bytes:
    """What a word points to, behind the words."""
    size, offset = _PLACE.unpack_from(row, at)
    if offset + size > len(row):
        raise DamagedError(f"a row of {len(row)} bytes points behind its end.")
    return row[offset : offset + size]


def _decimal(row: bytes, at: int, kind: Decimal) -> decimal.Decimal:
    if kind.fits_long:
        unscaled = int(_LONG.unpack_from(row, at)[0])
    else:
        unscaled = int.from_bytes(_outside(row, at), "big", signed=True)
    # Not by arithmetic, which rounds to the context's precision.
    digits = tuple(map(int, str(abs(unscaled))))
    return decimal.Decimal((unscaled < 0, digits, -kind.scale))


def _array(data: bytes, element: DataType) -> tuple[Value, ...]:
    count = int(_LONG.unpack_from(data)[0]) if len(data) >= 8 else -1
    head = 8 + (count + 63) // 64 * 8
    width = _element_width(element)
    if not 0 <= count <= len(data) or head + count * width > len(data):
        raise DamagedError("an array in a row is damaged.")
    read = _reader(data, element)
    return tuple(
        None if data[8 + (number >> 3)] >> (number & 7) & 1 else read(head + number * width)
        for number in range(count)
    )


def _reader(data: bytes, element: DataType) -> Callable[[int], Value]:
    return lambda at: _value(data, at, element)


def _element_width(element: DataType) -> int:
    """Elements of an array are as wide as their type, unlike columns, which are all words."""
    match element:
        case Atom("boolean"):
            return 1
        case Atom(name) if name in _NUMBERS:
            return _NUMBERS[name].size
        case _:
            return 8
