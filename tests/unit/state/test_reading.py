"""State files of the HDFS-backed provider: read whole, or not at all."""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkpoint.checkpoint.errors import DamagedError, IncompleteError
from sparkpoint.checkpoint.lz4 import xxh32
from sparkpoint.checkpoint.plan import plan_batch
from sparkpoint.state import swift
from sparkpoint.state.blocks import END, framed_blocks, inflate
from sparkpoint.state.errors import UnsupportedStateError
from sparkpoint.state.querystate import PlacedStore, placed_stores, refusal_to_read
from sparkpoint.state.records import StoreVersion, read_store
from sparkpoint.state.types import parse_columns
from sparkpoint.state.unsafe import decode_row
from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.errors import NotFoundError
from tests.unit.state.writing import file_of

_CASES = [
    *("aggregation", "types", "dedup", "within", "session", "join-inner", "join-2"),
    *("pandas", "pandas-1", "chained", "global", "limit"),
]


class Memory:
    """Files in a dictionary."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        if path not in self.files:
            raise NotFoundError(path)
        yield io.BytesIO(self.files[path])


def stores_of(root: Path) -> list[PlacedStore]:
    store = DirectoryStore(root)
    plan = plan_batch(store)
    operators = [placed_stores(o, version=plan.batch + 1, read=store.read) for o in plan.operators]
    return [each for stores in operators for each in stores]


@pytest.fixture(params=["with the libraries", "without them"])
def libraries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without them":
        monkeypatch.setattr(swift, "library", lambda name: None)


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("case", _CASES)
def test_there_are_as_many_rows_as_spark_reads_and_each_is_where_it_belongs(
    golden: Path, golden_rows: Mapping[str, Mapping[str, list[int]]], case: str
) -> None:
    files = DirectoryStore(golden / case)
    for store in stores_of(golden / case):
        hashed = store.placement.hasher()
        rows = [list(read_store(files, part)) for part in store.partitions]

        expected = golden_rows[case][f"{store.operator.id}/{store.name}"]
        assert [*map(len, rows), 0, 0][:3] == expected
        for number, part in enumerate(rows):
            places = hashed([key for key, _ in part])
            assert {place % len(store.partitions) for place in places} <= {number}
            for key, value in part:
                decode_row(key, store.schema.key)
                decode_row(value, store.schema.value)


def test_a_store_that_is_compressed_otherwise_is_refused_by_name(golden: Path) -> None:
    plan = plan_batch(DirectoryStore(golden / "zstd"))

    reason = refusal_to_read(plan.operators[0], plan.offsets.conf)

    assert reason == "it is compressed with zstd, and only lz4 is read here"


def test_the_values_of_every_type_are_read() -> None:
    content = json.loads((Path(__file__).parent / "golden/hashes.json").read_text())
    columns = parse_columns(content["schema"], "golden")

    rows = [decode_row(bytes.fromhex(row), columns) for row, _ in content["rows"]]

    by_name = [dict(zip((c.name for c in columns), row, strict=True)) for row in rows]
    assert {"", "Größe", "日本語", "😀 face", None} <= {row["k"] for row in by_name}
    assert {2**31 - 1, -(2**31), None} <= {row["n"] for row in by_name}
    assert {2**63 - 1, -(2**63)} <= {row["v"] for row in by_name}
    assert Decimal("9" * 30 + ".1234") in {row["d"] for row in by_name}
    assert Decimal("-99999999.99") in {row["sd"] for row in by_name}
    assert b"\xff\xff\xff\xff" in {row["bi"] for row in by_name}
    assert -719162 in {row["da"] for row in by_name}
    assert {True, False} <= {row["bo"] for row in by_name}
    assert (0, "p") in {row["s"] for row in by_name}


@given(
    st.lists(st.dictionaries(st.binary(max_size=9), st.binary(max_size=9) | st.none())), st.data()
)
def test_changes_over_any_snapshot_give_the_same_state(
    changes: list[dict[bytes, bytes | None]], data: st.DataObject
) -> None:
    base = data.draw(st.integers(0, len(changes)))
    state: dict[bytes, bytes | None] = {}
    files = {}
    for version, change in enumerate(changes, start=1):
        state |= change
        files[f"s/{version}.delta"] = file_of(change.items())
        if version == base:
            live = [(key, value) for key, value in state.items() if value is not None]
            files[f"s/{version}.snapshot"] = file_of(live)

    found = list(read_store(Memory(files), StoreVersion("s", base, len(changes))))

    assert dict(found) == {key: value for key, value in state.items() if value is not None}
    assert len(found) == len(dict(found))


def test_too_many_changes_since_a_snapshot_are_refused() -> None:
    files = {"s/1.delta": file_of([(b"k" * 100, b"v" * 100)])}

    with pytest.raises(UnsupportedStateError, match="changes since its last snapshot"):
        list(read_store(Memory(files), StoreVersion("s", 0, 1), changes_limit=150))


def test_a_missing_delta_is_named() -> None:
    with pytest.raises(IncompleteError, match=r"s/1\.delta"):
        list(read_store(Memory({}), StoreVersion("s", 0, 1)))


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("damage", ["truncated", "flipped", "unended", "foreign", "deletes"])
def test_damage_is_found(damage: str) -> None:
    rows = [(b"key%d" % number, b"value" * number) for number in range(50)]
    whole = file_of(rows)
    content = {
        "truncated": whole[:-40],
        "flipped": whole[:200] + bytes([whole[200] ^ 1]) + whole[201:],
        "unended": b"".join(framed_blocks([b"\0\0\0\1k"])) + END,
        "foreign": b"something else than an LZ4 stream",
        "deletes": file_of([(b"k", None)]),
    }[damage]

    with pytest.raises(DamagedError, match=r"s/1\.snapshot"):
        list(read_store(Memory({"s/1.snapshot": content}), StoreVersion("s", 1, 1)))


@pytest.mark.usefixtures("libraries")
@given(st.lists(st.binary(max_size=100).map(lambda data: data * 7), max_size=12))
def test_blocks_are_read_as_they_were_written(blocks: list[bytes]) -> None:
    filled = [block for block in blocks if block]

    stream = io.BytesIO(b"".join(framed_blocks(filled)) + END)

    assert b"".join(inflate(stream, "x")) == b"".join(filled)


def test_checksums_of_many_blocks_at_once_are_those_of_each() -> None:
    blocks = [bytes([number]) * 4096 for number in range(20)] + [b"short", b""]

    assert swift.checksums(blocks) == [xxh32(block, seed=0x9747B28C) for block in blocks]
