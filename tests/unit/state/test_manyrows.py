"""Rows that are decoded together, against the same ones decoded one by one."""

import random
import struct

import pyarrow as pa
import pytest

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.state.arrow import arrow_schema
from sparkpoint.state.manyrows import decoded
from sparkpoint.state.types import Array, Atom, Column, DataType, Decimal, StoreSchema, Struct
from sparkpoint.state.unsafe import decode_row

_FORMS = {
    "byte": ("b", 7),
    "short": ("h", 6),
    "integer": ("i", 4),
    "date": ("i", 4),
    "long": ("q", 0),
    "timestamp": ("q", 0),
    "timestamp_ntz": ("q", 0),
}
_TEXTS = ("", "a", "ü", "\N{PILE OF POO}", "user-4242", "x" * 100)
_WINDOW = Struct((Column("start", Atom("timestamp")), Column("end", Atom("timestamp"))))
_NESTED = Struct((Column("w", _WINDOW), Column("t", Atom("string")), Column("n", Atom("long"))))


def packed(columns: tuple[Column, ...], rng: random.Random, *, nulls: bool) -> bytes:
    """A row of random values, as Spark packs them."""
    head, words, behind = bytearray((len(columns) + 63) // 64 * 8), b"", b""
    start = len(head) + 8 * len(columns)
    for number, column in enumerate(columns):
        if nulls and not isinstance(column.type, Struct) and rng.random() < 0.3:
            head[number // 8] |= 1 << number % 8
            words += bytes(8)
            continue
        word, data = value_of(column.type, rng, nulls=nulls)
        if data is not None:
            word = struct.pack("<II", len(data), start + len(behind))
            behind += data + bytes(-len(data) % 8)
        words += word
    return bytes(head) + words + behind


def value_of(kind: DataType, rng: random.Random, *, nulls: bool) -> tuple[bytes, bytes | None]:
    match kind:
        case Struct(columns):
            return b"", packed(columns, rng, nulls=nulls)
        case Atom("string" | "binary"):
            return b"", rng.choice(_TEXTS).encode()
        case Atom("boolean"):
            return bytes([rng.random() < 0.5]) + bytes(7), None
        case Atom("float"):
            return struct.pack("<f4x", rng.random()), None
        case Atom("double"):
            return struct.pack("<d", rng.random()), None
        case Atom(name):
            form, rest = _FORMS[name]
            size = struct.calcsize(form) * 8 - 2
            # Days that Python's dates can tell.
            value = rng.randrange(40_000) if name == "date" else rng.getrandbits(min(size, 50))
            return struct.pack(f"<{form}{rest}x", -value if name == "long" else value), None
        case _:
            raise AssertionError(kind)


def kind_of(columns: tuple[Column, ...]) -> object:
    return arrow_schema(pa, StoreSchema(columns, ())).field("key").type


@pytest.mark.parametrize("nulls", [False, True])
def test_rows_decoded_together_are_those_decoded_one_by_one(nulls: bool) -> None:
    rng = random.Random("rows")
    atoms = (*_FORMS, "string", "binary", "boolean", "float", "double")
    columns = (*(Column(name, Atom(name)) for name in atoms), Column("deep", _NESTED))
    # So many that their nulls need more than one word.
    columns += tuple(Column(f"n{number}", Atom("long")) for number in range(60))
    rows = [packed(columns, rng, nulls=nulls) for _ in range(200)]
    kind = kind_of(columns)

    together = decoded(rows, columns, kind)

    one_by_one = pa.array([decode_row(row, columns) for row in rows], kind)
    assert together.to_pylist() == one_by_one.to_pylist()
    assert together.type == kind


@pytest.mark.parametrize(
    "kind", [Decimal(10, 2), Array(Atom("long")), Struct((Column("a", Array(Atom("long"))),))]
)
def test_types_that_are_not_known_are_left_to_others(kind: DataType) -> None:
    columns = (Column("a", kind),)

    assert decoded([bytes(16)], columns, kind_of(columns)) is None


def test_a_text_that_is_none_is_left_to_others() -> None:
    row = bytes(8) + struct.pack("<II", 2, 16) + b"\xff\xfe" + bytes(6)
    columns = (Column("k", Atom("string")),)

    assert decoded([row], columns, kind_of(columns)) is None
    assert decode_row(row, columns) == ("\ufffd\ufffd",)


def test_a_struct_that_is_absent_is_left_to_others() -> None:
    columns = (Column("w", _WINDOW),)

    assert decoded([b"\x01" + bytes(15)], columns, kind_of(columns)) is None


@pytest.mark.parametrize(
    "row", [bytes(15), bytes(8) + struct.pack("<II", 9, 16) + bytes(8)], ids=["short", "beyond"]
)
def test_damaged_rows_are_told(row: bytes) -> None:
    columns = (Column("k", Atom("string")),)

    with pytest.raises(DamagedError):
        decoded([row], columns, kind_of(columns))
