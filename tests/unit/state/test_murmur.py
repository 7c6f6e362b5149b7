"""The hash is Spark's: of every type that a key can have."""

import json
import struct
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkpoint.state.errors import UnsupportedStateError
from sparkpoint.state.manyhash import hash_keys
from sparkpoint.state.murmur import SEED, hash_bytes, hash_int, hash_long, row_hasher
from sparkpoint.state.placement import Placement
from sparkpoint.state.types import Array, Atom, Column, DataType, Unknown, parse_columns
from tests.unit.state.writing import pack_row, partition_of

_HASHES = json.loads((Path(__file__).parent / "golden/hashes.json").read_text())
_COLUMNS = parse_columns(_HASHES["schema"], "golden")
_KEY = (("a", "long"), ("b", "string"), ("c", "integer"))


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


@pytest.mark.parametrize("number", range(len(_HASHES["rows"])))
def test_a_row_of_every_type_has_the_hash_that_spark_gave_it(number: int) -> None:
    row, expected = _HASHES["rows"][number]

    found = row_hasher(_COLUMNS, width=len(_COLUMNS))(bytes.fromhex(row), 0, SEED)

    assert _signed(found) == expected


def test_the_hashes_of_all_rows_at_once_are_those_of_each() -> None:
    rows = [bytes.fromhex(row) for row, _ in _HASHES["rows"]]

    found = hash_keys(numpy, rows, _COLUMNS, width=len(_COLUMNS))

    assert found == [expected for _, expected in _HASHES["rows"]]


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1) | st.none(), st.text() | st.none())))
def test_keys_of_any_length_are_hashed_alike_one_by_one_and_at_once(
    keys: list[tuple[int | None, str | None]],
) -> None:
    fields = (("a", "long"), ("b", "string"))
    columns = tuple(Column(name, Atom(kind)) for name, kind in fields)
    rows = [pack_row(key, fields) for key in [*keys, (1, "long " * 300)]]
    hashed = row_hasher(columns, width=2)

    found = hash_keys(numpy, rows, columns, width=2)

    assert found == [_signed(hashed(row, 0, SEED)) for row in rows]


@pytest.mark.parametrize(
    "row", [b"", bytes(15), bytes(16), bytes(16) + b"\x09\0\0\0\x10\0\0\0", bytes(20) + b"\1\0\0\0"]
)
def test_a_row_that_does_not_fit_its_schema_is_never_hashed(row: bytes) -> None:
    columns = (Column("a", Atom("long")), Column("b", Atom("string")))

    with pytest.raises(IndexError):
        hash_keys(numpy, [row], columns, width=2)


@pytest.mark.parametrize(
    ("found", "expected"),
    [  # SELECT hash(…) in Spark
        (hash_int(0, SEED), 933211791),
        (hash_int(1, SEED), -559580957),
        (hash_long(1, 0, SEED), -1712319331),
        (hash_bytes(b"", 0, 0, SEED), 142593372),
        (hash_bytes(b"Spark", 0, 5, SEED), 228093765),
    ],
)
def test_well_known_hashes(found: int, expected: int) -> None:
    assert _signed(found) == expected


@given(
    st.integers(-(2**63), 2**63 - 1) | st.none(),
    st.text(max_size=40) | st.none(),
    st.integers(-(2**31), 2**31 - 1) | st.none(),
    st.integers(1, 500),
)
def test_a_key_is_placed_as_the_definition_says(
    a: int | None, b: str | None, c: int | None, partitions: int
) -> None:
    columns = tuple(Column(name, Atom(kind)) for name, kind in _KEY)
    row = pack_row((a, b, c), _KEY)

    place = Placement(columns, 3).hasher()([row])[0] % partitions

    assert place == partition_of((a, b, c), _KEY, partitions)


def test_only_the_first_columns_count_when_others_stand_behind_them() -> None:
    columns = (Column("a", Atom("long")),)
    hashed = Placement(columns, 3).hasher()

    rows = [pack_row((7, text, 1), _KEY) for text in ("x", "y", None)]

    assert set(hashed(rows)) == {_signed(hash_long(7, 0, SEED))}
    assert set(hashed(rows * 50)) == {_signed(hash_long(7, 0, SEED))}


def test_minus_zero_and_every_nan_have_one_hash() -> None:
    hashed = row_hasher((Column("x", Atom("double")),), width=1)
    nans = [b"\1\0\0\0\0\0\xf8\x7f", b"\0\0\0\0\0\0\xf8\xff"]

    assert hashed(bytes(8) + struct.pack("<d", -0.0), 0, 1) == hashed(bytes(16), 0, 1)
    assert len({hashed(bytes(8) + nan, 0, 1) for nan in nans}) == 1


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (Array(Atom("long")), "array"),
        (Unknown("map"), "map"),
        (Unknown("string with a collation"), "collation"),
    ],
)
def test_a_type_that_cannot_be_hashed_is_named(kind: DataType, named: str) -> None:
    with pytest.raises(UnsupportedStateError, match=f"'tags'.*{named}"):
        row_hasher((Column("tags", kind),), width=1)
