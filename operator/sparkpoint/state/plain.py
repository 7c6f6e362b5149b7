"""Values of state as text and JSON can hold them, the same from whichever reader they come.

Times are RFC 3339, in UTC; decimals are text, so that no digit is lost; bytes are hexadecimal. Rows
that Spark read arrive as the objects of Python that Arrow makes of them, rows that we read as the
numbers that an UnsafeRow keeps: both become the same here, which comparing them relies on.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from typing import TypeAlias

from sparkpoint.state.types import Array, Atom, Column, DataType, Struct
from sparkpoint.state.unsafe import Value

__all__ = ["Plain", "plain_object", "plain_row"]

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"

_EPOCH = datetime(1970, 1, 1)


def plain_row(values: Sequence[Value], columns: Sequence[Column]) -> dict[str, Plain]:
    """A row that `unsafe` decoded, by the names of its columns."""
    return {
        column.name: _plain(value, column.type)
        for value, column in zip(values, columns, strict=True)
    }


def _plain(value: Value, kind: DataType) -> Plain:
    match kind, value:
        case _, None:
            return None
        case Struct(columns), tuple():
            return dict(plain_row(value, columns))
        case Array(element), tuple():
            return [_plain(each, element) for each in value]
        case Atom("timestamp"), int():
            return _moment(value, "Z")
        case Atom("timestamp_ntz"), int():
            return _moment(value, "")
        case Atom("date"), int():
            return _day(value)
        case _:
            return plain_object(value)


def plain_object(value: object) -> Plain:
    """What Arrow made of a value; what JSON has no word for is told as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Number():
            return format(value, "f")
        case bytes():
            return value.hex()
        case datetime():
            return _written(value)
        case date():
            return value.isoformat()
        case Mapping():
            return {str(name): plain_object(each) for name, each in value.items()}
        case Sequence():
            return [plain_object(each) for each in value]
        case _:
            return str(value)


def _written(moment: datetime) -> str:
    if moment.tzinfo is None:
        return moment.isoformat()
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _moment(micros: int, ending: str) -> Plain:
    try:
        return (_EPOCH + timedelta(microseconds=micros)).isoformat() + ending
    except OverflowError:
        return micros  # Spark's years go further than Python's


def _day(days: int) -> Plain:
    try:
        return (_EPOCH + timedelta(days=days)).date().isoformat()
    except OverflowError:
        return days
