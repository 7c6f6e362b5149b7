"""Where Spark looks for a key: `pmod(hash(columns), partitions)`.

The hash is the Murmur3 of 32 bits with Spark's tail (each trailing byte is mixed as a signed word
of its own), chained over the columns from seed 42: the hash of one column seeds the next, and a
null leaves it as it is. It works on the bytes of an UnsafeRow and decodes nothing.

The arithmetic is spelt out in each function, as it runs for every row: calls cost most in Python.
"""

import math
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache

from sparkpoint.state.errors import UnsupportedStateError
from sparkpoint.state.types import Array, Atom, Column, DataType, Decimal, Struct, Unknown

__all__ = ["SEED", "hash_bytes", "hash_int", "hash_long", "row_hasher"]

SEED = 42

_MASK = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_MIX, _FIRST, _SECOND = 0xE6546B64, 0x85EBCA6B, 0xC2B2AE35
_BYTE, _SHORT = struct.Struct("<b"), struct.Struct("<h")
_INT = struct.Struct("<I")
_LONG = struct.Struct("<II")
_WORD = struct.Struct("<II")
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_NAN_INT, _NAN_LONG = 0x7FC00000, (0, 0x7FF80000)

_Hash = Callable[[bytes, int, int], int]
"""(row, where it begins, seed) -> hash, of one column that is not null."""


def hash_int(word: int, seed: int) -> int:
    """The hash of 32 bits, given as an unsigned number."""
    word = word * _C1 & _MASK
    word = (word << 15 | word >> 17) * _C2 & _MASK
    mixed = seed ^ word
    mixed = (mixed << 13 | mixed >> 19) * 5 + _MIX & _MASK ^ 4
    mixed = (mixed ^ mixed >> 16) * _FIRST & _MASK
    mixed = (mixed ^ mixed >> 13) * _SECOND & _MASK
    return mixed ^ mixed >> 16


def hash_long(low: int, high: int, seed: int) -> int:
    """The hash of 64 bits, given as two unsigned halves."""
    low = low * _C1 & _MASK
    low = (low << 15 | low >> 17) * _C2 & _MASK
    mixed = seed ^ low
    mixed = (mixed << 13 | mixed >> 19) * 5 + _MIX & _MASK
    high = high * _C1 & _MASK
    high = (high << 15 | high >> 17) * _C2 & _MASK
    mixed ^= high
    mixed = (mixed << 13 | mixed >> 19) * 5 + _MIX & _MASK ^ 8
    mixed = (mixed ^ mixed >> 16) * _FIRST & _MASK
    mixed = (mixed ^ mixed >> 13) * _SECOND & _MASK
    return mixed ^ mixed >> 16


@lru_cache(maxsize=4096)
def _words(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}I")


def hash_bytes(data: bytes, at: int, size: int, seed: int) -> int:
    """The hash of `size` bytes from `at`: of strings, binaries and large decimals."""
    mixed, whole = seed, size >> 2
    for word in _words(whole).unpack_from(data, at):
        word = word * _C1 & _MASK
        mixed ^= (word << 15 | word >> 17) * _C2 & _MASK
        mixed = (mixed << 13 | mixed >> 19) * 5 + _MIX & _MASK
    for byte in data[at + (whole << 2) : at + size]:
        word = (byte if byte < 128 else byte - 256) * _C1 & _MASK
        mixed ^= (word << 15 | word >> 17) * _C2 & _MASK
        mixed = (mixed << 13 | mixed >> 19) * 5 + _MIX & _MASK
    mixed ^= size
    mixed = (mixed ^ mixed >> 16) * _FIRST & _MASK
    mixed = (mixed ^ mixed >> 13) * _SECOND & _MASK
    return mixed ^ mixed >> 16


def row_hasher(columns: Sequence[Column], *, width: int) -> _Hash:
    """The hash over the first columns of rows of `width`; UnsupportedStateError names a type."""
    bitset = (width + 63) // 64 * 8
    parts = tuple(
        (number >> 3, 1 << (number & 7), _hasher(column.type, bitset + 8 * number, column.name))
        for number, column in enumerate(columns)
    )

    def hashed(row: bytes, base: int, seed: int) -> int:
        for byte, bit, part in parts:
            if not row[base + byte] & bit:
                seed = part(row, base, seed)
        return seed

    return hashed


def _hasher(kind: DataType, at: int, name: str) -> _Hash:
    match kind:
        case Atom(known) if known in _ATOMS:
            return _ATOMS[known](at)
        case Decimal():
            return _long(at) if kind.fits_long else _bytes(at)
        case Struct(columns):
            return _struct(at, row_hasher(columns, width=len(columns)))
        case Array():
            raise _unsupported(name, "array")
        case Atom(other) | Unknown(other):
            raise _unsupported(name, other)


def _unsupported(name: str, kind: str) -> UnsupportedStateError:
    return UnsupportedStateError(
        f"the key column {name!r} is of type {kind}, by which keys cannot be placed here."
    )


def _nothing(at: int) -> _Hash:
    return lambda row, base, seed: seed


def _boolean(at: int) -> _Hash:
    return lambda row, base, seed: hash_int(1 if row[base + at] else 0, seed)


def _byte(at: int) -> _Hash:
    return lambda row, base, seed: hash_int(_BYTE.unpack_from(row, base + at)[0] & _MASK, seed)


def _short(at: int) -> _Hash:
    return lambda row, base, seed: hash_int(_SHORT.unpack_from(row, base + at)[0] & _MASK, seed)


def _int(at: int) -> _Hash:
    def hashed(row: bytes, base: int, seed: int) -> int:
        return hash_int(_INT.unpack_from(row, base + at)[0], seed)

    return hashed


def _long(at: int) -> _Hash:
    def hashed(row: bytes, base: int, seed: int) -> int:
        low, high = _LONG.unpack_from(row, base + at)
        return hash_long(low, high, seed)

    return hashed


def _float(at: int) -> _Hash:
    def hashed(row: bytes, base: int, seed: int) -> int:
        # Equal numbers must have equal hashes: minus zero is zero, and there is one NaN.
        value = _FLOAT.unpack_from(row, base + at)[0]
        if math.isnan(value):
            return hash_int(_NAN_INT, seed)
        return hash_int(_INT.unpack_from(row, base + at)[0] if value else 0, seed)

    return hashed


def _double(at: int) -> _Hash:
    def hashed(row: bytes, base: int, seed: int) -> int:
        value = _DOUBLE.unpack_from(row, base + at)[0]
        if math.isnan(value):
            return hash_long(*_NAN_LONG, seed)
        low, high = _LONG.unpack_from(row, base + at) if value else (0, 0)
        return hash_long(low, high, seed)

    return hashed


def _bytes(at: int) -> _Hash:
    def hashed(row: bytes, base: int, seed: int) -> int:
        size, offset = _WORD.unpack_from(row, base + at)
        return hash_bytes(row, base + offset, size, seed)

    return hashed


def _struct(at: int, inner: _Hash) -> _Hash:
    def hashed(row: bytes, base: int, seed: int) -> int:
        return inner(row, base + _WORD.unpack_from(row, base + at)[1], seed)

    return hashed


_ATOMS: dict[str, Callable[[int], _Hash]] = {
    "void": _nothing,
    "boolean": _boolean,
    "byte": _byte,
    "short": _short,
    "integer": _int,
    "date": _int,
    "long": _long,
    "timestamp": _long,
    "timestamp_ntz": _long,
    "float": _float,
    "double": _double,
    "string": _bytes,
    "binary": _bytes,
}
