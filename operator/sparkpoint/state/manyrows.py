"""Many UnsafeRows at once into Arrow's columns, by numpy; unsafe.py does the same one by one.

Only for the types that most state is made of; whatever else there is, `decoded` answers None, and
the rows are decoded one by one. `tests/unit/state` compares both ways.
"""

from collections.abc import Sequence
from typing import Any

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.state import swift
from sparkpoint.state.types import Atom, Column, DataType, Struct

__all__ = ["decoded"]

_WIDTHS = {
    "byte": "<i1",
    "short": "<i2",
    "integer": "<i4",
    "date": "<i4",
    "long": "<i8",
    "timestamp": "<i8",
    "timestamp_ntz": "<i8",
    "float": "<f4",
    "double": "<f8",
}
_WORD = 8


def decoded(rows: Sequence[bytes], columns: Sequence[Column], kind: Any) -> Any:
    """A column of structs; None if these rows must be decoded one by one.

    `kind` is Arrow's type of it. DamagedError if a row is none of this schema.
    """
    arrow, numpy = swift.library("pyarrow"), swift.library("numpy")
    if arrow is None or numpy is None or not rows:
        return None
    if kind == arrow.null():
        return arrow.nulls(len(rows))
    if not all(_is_known(each.type) for each in columns):
        return None
    return _Rows(arrow, numpy, rows).structs(columns, kind)


def _is_known(kind: DataType) -> bool:
    match kind:
        case Atom(name):
            return name in _WIDTHS or name in ("boolean", "string", "binary")
        case Struct(columns):
            return bool(columns) and all(_is_known(each.type) for each in columns)
        case _:
            return False


class _Rows:
    """Rows that begin somewhere in a run of bytes."""

    def __init__(self, arrow: Any, numpy: Any, rows: Sequence[bytes]) -> None:
        self._arrow, self._numpy = arrow, numpy
        self._data = numpy.frombuffer(b"".join(rows), dtype=numpy.uint8)
        self._sizes = numpy.fromiter(map(len, rows), dtype=numpy.int64, count=len(rows))
        self._starts = numpy.cumsum(self._sizes) - self._sizes

    def structs(self, columns: Sequence[Column], kind: Any) -> Any:
        """All rows as one column; None if they are better decoded one by one."""
        found = self._struct(self._starts, self._sizes, columns, kind)
        if found is None:
            return None
        try:
            found.validate(full=True)
        except self._arrow.ArrowInvalid:
            return None  # a text that is no UTF-8
        return found

    def _struct(self, starts: Any, sizes: Any, columns: Sequence[Column], kind: Any) -> Any:
        head = (len(columns) + 63) // 64 * _WORD
        if (sizes < head + _WORD * len(columns)).any():
            raise DamagedError(f"a row is too short for {len(columns)} columns.")
        arrays = []
        for number, column in enumerate(columns):
            nulls = self._data[starts + (number >> 3)] >> (number & 7) & 1 != 0
            at = starts + head + _WORD * number
            field = kind.field(number).type
            made = self._column(starts, sizes, at, nulls, column.type, field)
            if made is None:
                return None
            arrays.append(made)
        return self._arrow.StructArray.from_arrays(arrays, fields=list(kind))

    def _column(
        self, starts: Any, sizes: Any, at: Any, nulls: Any, kind: DataType, field: Any
    ) -> Any:
        match kind:
            case Struct(columns):
                if nulls.any():
                    return None
                offsets, lengths = self._places(sizes, at, nulls)
                return self._struct(starts + offsets, lengths, columns, field)
            case Atom("string" | "binary"):
                offsets, lengths = self._places(sizes, at, nulls)
                return self._texts(starts + offsets, lengths, nulls, field)
            case Atom("boolean"):
                return self._arrow.array(self._data[at] != 0, mask=nulls)
            case Atom(name):
                values = self._numbers(at, _WIDTHS[name])
                plain = self._arrow.array(values, mask=nulls)
                return plain.view(field) if plain.type != field else plain
            case _:
                return None

    def _numbers(self, at: Any, width: str) -> Any:
        numpy = self._numpy
        kind = numpy.dtype(width)
        gathered = self._data[at[:, None] + numpy.arange(kind.itemsize)]
        return numpy.ascontiguousarray(gathered).view(kind).reshape(-1)

    def _places(self, sizes: Any, at: Any, nulls: Any) -> tuple[Any, Any]:
        """Where in its row each value is, and how long it is."""
        words = self._numbers(at, "<u8")
        lengths = (words & 0xFFFFFFFF).astype(self._numpy.int64)
        offsets = (words >> 32).astype(self._numpy.int64)
        lengths[nulls] = offsets[nulls] = 0
        if (offsets + lengths > sizes).any():
            raise DamagedError("a row points behind its end.")
        return offsets, lengths

    def _texts(self, starts: Any, lengths: Any, nulls: Any, field: Any) -> Any:
        numpy, arrow = self._numpy, self._arrow
        ends = numpy.cumsum(lengths)
        total = int(ends[-1])
        # For each byte of the answer, where it comes from.
        source = numpy.repeat(starts - (ends - lengths), lengths) + numpy.arange(total)
        offsets = numpy.concatenate(([0], ends)).astype("<i4")
        valid = arrow.array(~nulls).buffers()[1]
        buffers = [valid, arrow.py_buffer(offsets), arrow.py_buffer(self._data[source])]
        return arrow.Array.from_buffers(field, len(lengths), buffers)
