"""A condition that names one whole key: the bytes of that key, and the partition that it is in.

Then one partition is read instead of all, and nothing is decoded but the row. Only for what is
beyond doubt, columns that equal a text or a whole number, joined by AND; whatever else a condition
says, the answer is None, and all rows are looked at.
"""

import re
import struct
from collections.abc import Mapping, Sequence

from sparkpoint.savepoint.manifest import OperatorInfo, QueryInfo
from sparkpoint.state.errors import UnsupportedStateError
from sparkpoint.state.placement import placement_of
from sparkpoint.state.querystate import refusal_to_move
from sparkpoint.state.survey import operator_of
from sparkpoint.state.types import Atom, Column, StoreSchema

__all__ = ["key_of_condition", "partition_of_key"]

_EQUALITY = r"""\s*key\.(?:"(?P<quoted>[^"]+)"|(?P<name>[A-Za-z_][A-Za-z0-9_]*))\s*=\s*
(?:'(?P<text>(?:[^']|'')*)'|(?P<number>-?[0-9]{1,18}))\s*"""
_ONE = re.compile(_EQUALITY, re.VERBOSE)
_AND = re.compile(r"and\b", re.IGNORECASE)
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_WORD = 8


def key_of_condition(condition: str, columns: Sequence[Column]) -> bytes | None:
    """The UnsafeRow of the only key for which the condition can be true; None if not clear."""
    given = _equalities(condition)
    # DuckDB does not tell upper from lower case in names, and Spark may.
    if given is None or given.keys() != {c.name for c in columns} or len(given) != len(columns):
        return None
    words, behind = b"", b""
    start = _head(columns) + _WORD * len(columns)
    for column in columns:
        packed = _packed(given[column.name], column)
        if packed is None:
            return None
        if isinstance(given[column.name], str):
            words += struct.pack("<II", len(packed), start + len(behind))
            behind += packed + bytes(-len(packed) % _WORD)
        else:
            words += packed
    return bytes(_head(columns)) + words + behind


def partition_of_key(
    key: bytes, query: QueryInfo, operator: OperatorInfo, *, store: str, schema: StoreSchema
) -> int | None:
    """Where Spark looks for it; None if its rule is not known here."""
    known = operator_of(operator)
    if refusal_to_move(known, query.conf) is not None:
        return None
    try:
        hashed = placement_of(known, store, schema).hasher()
    except UnsupportedStateError:
        return None
    partitions = next(each.partitions for each in operator.stores if each.name == store)
    return hashed([key])[0] % partitions


def _equalities(condition: str) -> Mapping[str, str | int] | None:
    """Column -> what it must equal; None if the condition says anything else, or twice."""
    found: dict[str, str | int] = {}
    at = 0
    while (one := _ONE.match(condition, at)) is not None:
        name = one["quoted"] or one["name"]
        if name in found:
            return None
        text = one["text"]
        found[name] = int(one["number"]) if text is None else text.replace("''", "'")
        if one.end() == len(condition):
            return found
        if (joined := _AND.match(condition, one.end())) is None:
            return None
        at = joined.end()
    return None


def _head(columns: Sequence[Column]) -> int:
    """Bytes of the bits that say null; none of them is set in a key that equals something."""
    return (len(columns) + 63) // 64 * _WORD


def _packed(value: str | int, column: Column) -> bytes | None:
    """The value as a row holds it; None if the column is of another type."""
    match column.type, value:
        case Atom("string"), str():
            return value.encode()
        case Atom(kind), int() if kind in _BITS:
            size = _BITS[kind]
            if not -(1 << (size - 1)) <= value < 1 << (size - 1):
                return None
            # Only as many bytes of the word as the type has are its sign's.
            return (value & ((1 << size) - 1)).to_bytes(_WORD, "little")
        case _:
            return None
