"""The hash of murmur.py for thousands of keys at a time, by numpy.

Keys are laid end to end. An UnsafeRow is a multiple of eight bytes, so all its words are aligned,
and one step of the hash is one operation on a column of words. Gives what murmur.py gives, which
the tests compare; raises IndexError for rows that point behind their end.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sparkpoint.state.murmur import SEED, hash_bytes
from sparkpoint.state.types import Atom, Column, DataType, Decimal, Struct

__all__ = ["hash_keys"]

_LONG_TEXT = 256
"""Words from which on a text is hashed by itself: few are so long, and all would wait for them."""
_ONE_WORD = ("boolean", "byte", "short", "integer", "date")
_TWO_WORDS = ("long", "timestamp", "timestamp_ntz")


def hash_keys(
    numpy: Any, keys: Sequence[bytes], columns: Sequence[Column], *, width: int
) -> list[int]:
    """The signed hash of each key over its first columns; keys are `width` columns wide."""
    data = b"".join(keys)
    sizes = numpy.fromiter(map(len, keys), dtype=numpy.int64, count=len(keys))
    if (sizes & 7).any():
        raise IndexError("a row that is no multiple of eight bytes")
    words = numpy.frombuffer(data, dtype="<u4")
    seeds = numpy.full(len(keys), SEED, dtype=numpy.uint32)
    batch = _Batch(numpy, data, words)
    found = batch.rows((numpy.cumsum(sizes) - sizes) >> 2, sizes, seeds, columns, width)
    hashes: list[int] = found.view(numpy.int32).tolist()
    return hashes


class _Batch:
    """Rows end to end, as bytes and as words."""

    def __init__(self, numpy: Any, data: bytes, words: Any) -> None:
        self._numpy, self._data, self._words = numpy, data, words
        u = numpy.uint32
        self._c1, self._c2, self._five, self._mix = (
            u(0xCC9E2D51),
            u(0x1B873593),
            u(5),
            u(0xE6546B64),
        )
        self._first, self._second = u(0x85EBCA6B), u(0xC2B2AE35)

    def rows(
        self, starts: Any, sizes: Any, seeds: Any, columns: Sequence[Column], width: int
    ) -> Any:
        """The hashes of rows that begin at these words, from these seeds."""
        head = (width + 63) // 64 * 2
        if (sizes < 4 * (head + 2 * width)).any():
            raise IndexError("a row that is shorter than its columns")
        for number, column in enumerate(columns):
            bits = self._words[starts + (number >> 5)] >> self._numpy.uint32(number & 31)
            there = self._numpy.flatnonzero((bits & self._numpy.uint32(1)) == 0)
            if there.size:
                at = starts[there] + (head + 2 * number)
                seeds[there] = self._column(
                    column.type, at, starts[there], sizes[there], seeds[there]
                )
        return seeds

    def _column(self, kind: DataType, at: Any, starts: Any, sizes: Any, seeds: Any) -> Any:
        match kind:
            case Atom("void"):
                return seeds
            case Atom("float"):
                return self._int(self._float(self._words[at]), seeds)
            case Atom("double"):
                return self._long(*self._double(self._words[at], self._words[at + 1]), seeds)
            case Atom(name) if name in _ONE_WORD:
                return self._int(self._narrow(name)(self._words[at]), seeds)
            case Atom(name) if name in _TWO_WORDS:
                return self._long(self._words[at], self._words[at + 1], seeds)
            case Decimal() if kind.fits_long:
                return self._long(self._words[at], self._words[at + 1], seeds)
            case Struct(columns):
                inner, length = self._outside(at, starts, sizes)
                return self.rows(inner, length, seeds, columns, len(columns))
            case _:
                return self._texts(*self._outside(at, starts, sizes), seeds)

    def _outside(self, at: Any, starts: Any, sizes: Any) -> tuple[Any, Any]:
        """Where words point to, behind the words: the first word there, and the size in bytes."""
        size = self._words[at].astype(self._numpy.int64)
        offset = self._words[at + 1].astype(self._numpy.int64)
        if ((offset + size > sizes) | (offset & 3 != 0)).any():
            raise IndexError("a row that points behind its end")
        return starts + (offset >> 2), size

    def _narrow(self, name: str) -> Callable[[Any], Any]:
        """What a word holds of a type that is narrower, widened with its sign."""
        u = self._numpy.uint32
        match name:
            case "boolean":
                return lambda word: ((word & u(0xFF)) != 0).astype(u)
            case "byte":
                return lambda word: ((word & u(0xFF)) ^ u(0x80)) - u(0x80)
            case "short":
                return lambda word: ((word & u(0xFFFF)) ^ u(0x8000)) - u(0x8000)
            case _:
                return lambda word: word

    def _float(self, word: Any) -> Any:
        u, where = self._numpy.uint32, self._numpy.where
        size = word & u(0x7FFFFFFF)
        return where(size > u(0x7F800000), u(0x7FC00000), where(size == u(0), u(0), word))

    def _double(self, low: Any, high: Any) -> tuple[Any, Any]:
        u, where = self._numpy.uint32, self._numpy.where
        size = high & u(0x7FFFFFFF)
        none = (size > u(0x7FF00000)) | ((size == u(0x7FF00000)) & (low != u(0)))
        zero = (size == u(0)) & (low == u(0))
        return where(none, u(0), low), where(none, u(0x7FF80000), where(zero, u(0), high))

    def _int(self, word: Any, seeds: Any) -> Any:
        return self._finish(self._mixed(seeds, word), self._numpy.uint32(4))

    def _long(self, low: Any, high: Any, seeds: Any) -> Any:
        mixed = self._mixed(self._mixed(seeds, low), high)
        return self._finish(mixed, self._numpy.uint32(8))

    def _texts(self, starts: Any, sizes: Any, seeds: Any) -> Any:
        numpy, u = self._numpy, self._numpy.uint32
        whole, mixed = sizes >> 2, seeds.copy()
        short = whole <= _LONG_TEXT
        for step in range(int(whole[short].max(initial=0))):
            more = numpy.flatnonzero(short & (whole > step))
            mixed[more] = self._mixed(mixed[more], self._words[starts[more] + step])
        for step in range(3):
            more = numpy.flatnonzero(short & (sizes & 3 > step))
            byte = self._words[starts[more] + whole[more]] >> u(8 * step) & u(0xFF)
            mixed[more] = self._mixed(mixed[more], (byte ^ u(0x80)) - u(0x80))
        mixed = self._finish(mixed, sizes.astype(u))
        for row in numpy.flatnonzero(~short).tolist():
            place, size, seed = int(starts[row]) * 4, int(sizes[row]), int(seeds[row])
            mixed[row] = hash_bytes(self._data, place, size, seed)
        return mixed

    def _mixed(self, seeds: Any, word: Any) -> Any:
        u = self._numpy.uint32
        word = word * self._c1
        word = (word << u(15) | word >> u(17)) * self._c2
        mixed = seeds ^ word
        return (mixed << u(13) | mixed >> u(19)) * self._five + self._mix

    def _finish(self, mixed: Any, size: Any) -> Any:
        u = self._numpy.uint32
        mixed = mixed ^ size
        mixed = (mixed ^ mixed >> u(16)) * self._first
        mixed = (mixed ^ mixed >> u(13)) * self._second
        return mixed ^ mixed >> u(16)
