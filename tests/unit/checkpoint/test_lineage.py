"""Changelogs that name their lineage anew: the same changes, and blocks that Spark accepts."""

import json
import struct
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.checkpoint.lineage import (
    LONGEST_LINEAGE,
    REWRITABLE,
    lineage_of_changelog,
    lineages_to_restore,
    rewrite_lineage,
)
from sparkpoint.checkpoint.lz4 import Inflated, framed, xxh32

_GOLDEN = Path(__file__).parent / "golden" / "checkpoints.tar.xz"
_FRAME = struct.Struct("<8sBIII")
_SEED = 0x9747B28C


def _blocks(data: bytes) -> Iterator[tuple[int, bytes, int, int]]:
    """(token, content, size when decompressed, checksum) of every block but the empty last one."""
    at = 0
    while at < len(data):
        magic, token, packed, size, checksum = _FRAME.unpack_from(data, at)
        assert magic == b"LZ4Block"
        at += _FRAME.size + packed
        if size:
            yield token, data[at - packed : at], size, checksum


def _plain(data: bytes) -> bytes:
    """A stream decompressed, every block's checksum compared as Spark does."""
    plain = b""
    for token, content, size, checksum in _blocks(data):
        assert size <= 1 << (10 + (token & 0x0F))
        alone = _FRAME.pack(b"LZ4Block", token, len(content), size, checksum) + content
        block = Inflated(alone, "block")._take(size)
        assert xxh32(block, seed=_SEED) & 0x0FFFFFFF == checksum
        plain += block
    return plain


def _utf(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def _changelog(lineage: dict[int, str], body: bytes, *, level: int = 5) -> bytes:
    items = [{"version": v, "checkpointUniqueId": uid} for v, uid in lineage.items()]
    plain = _utf("v3") + _utf(json.dumps(items)) + body
    return framed(plain, level=level) + _FRAME.pack(b"LZ4Block", 0x10 | level, 0, 0, 0)


@pytest.fixture(scope="module")
def golden() -> dict[str, bytes]:
    """Every changelog that real Spark wrote with unique ids."""
    with tarfile.open(_GOLDEN) as archive:
        members = [m for m in archive if m.name.endswith(".changelog") and "_" in m.name[-60:]]
        files = {m.name: archive.extractfile(m) for m in members if "format-2" in m.name}
        return {name: file.read() for name, file in files.items() if file is not None}


@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [(b"", 0, 0x02CC5D05), (b"abc", 0, 0x32D153FF), (b"Nobody inspects", 0, None)],
)
def test_checksum_is_the_known_one(data: bytes, seed: int, expected: int | None) -> None:
    if expected is None:
        assert xxh32(data, seed=seed) != xxh32(data, seed=seed + 1)
    else:
        assert xxh32(data, seed=seed) == expected


def test_real_changelogs_keep_their_changes_and_get_the_lineage(golden: dict[str, bytes]) -> None:
    assert len(golden) > 5
    lineage = {version: f"id-{version}" for version in range(1, 40)}
    for name, data in golden.items():
        before = _plain(data)
        stream = Inflated(data, name)
        head = _utf(stream.utf()) + _utf(stream.utf())

        rewritten = rewrite_lineage(data, name, lineage)

        assert lineage_of_changelog(rewritten, name) == lineage
        assert _plain(rewritten).endswith(before[len(head) :])
        assert len(_plain(rewritten)) - len(before) == _header_size(rewritten) - len(head)


def _header_size(data: bytes) -> int:
    stream = Inflated(data, "changelog")
    return len(_utf(stream.utf())) + len(_utf(stream.utf()))


@given(
    body=st.binary(max_size=5000),
    level=st.integers(0, 3),
    old=st.integers(0, 30),
    new=st.integers(1, 60),
)
def test_any_changelog_of_many_blocks_keeps_its_changes(
    body: bytes, level: int, old: int, new: int
) -> None:
    known = {version: f"a{version}" for version in range(100 - old, 100)}
    wanted = {version: f"a{version}" for version in range(100 - new, 100)}

    rewritten = rewrite_lineage(_changelog(known, body, level=level), "c", wanted)

    assert _plain(rewritten)[_header_size(rewritten) :] == body
    assert lineage_of_changelog(rewritten, "c") == (wanted if new > old else known)


def test_the_longest_lineage_that_is_planned_with_fits() -> None:
    data = _changelog({}, b"x")
    lineage = {10**17 + v: "f" * 36 for v in range(LONGEST_LINEAGE)}

    assert lineage_of_changelog(rewrite_lineage(data, "c", lineage), "c") == lineage
    with pytest.raises(DamagedError, match="longer"):
        rewrite_lineage(data, "c", dict.fromkeys(range(2000), "f" * 64))


def test_only_stores_whose_names_leave_it_open_are_looked_into() -> None:
    sizes = {
        **{f"state/0/0/{v}_u{v}.changelog": 10 for v in range(3, 7)},
        "state/0/0/3_u3.zip": 9,
        "state/0/0/SSTs/1-a.sst": 9,
        **{f"state/0/1/{v}_w{v}.changelog": 10 for v in range(5, 7)},
        "state/0/1/5_w5.zip": 9,
        **{f"state/0/2/{v}.changelog": 10 for v in range(1, 7)},
        **{f"state/0/3/{v}_x{v}.changelog": REWRITABLE + 1 for v in range(1, 7)},
        **{f"state/0/4/left/{v}_y{v}.changelog": 10 for v in range(1, 4)},
        "offsets/5": 3,
    }

    assert lineages_to_restore(sizes) == {
        "state/0/0/5_u5.changelog": {3: "u3", 4: "u4"},
        "state/0/0/6_u6.changelog": {3: "u3", 4: "u4", 5: "u5"},
        "state/0/4/left/3_y3.changelog": {1: "y1", 2: "y2"},
    }
