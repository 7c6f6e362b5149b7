"""Whatever the bytes, reading ends in a value or a CheckpointError: never in another exception."""

import contextlib
import io
import json
import zipfile
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.checkpoint.lineage import lineage_of_changelog, rewrite_lineage
from sparkpoint.checkpoint.logs import (
    file_source_offset,
    parse_commit,
    parse_offsets,
    parse_query_id,
)
from sparkpoint.checkpoint.operators import parse_operator, schema_fields
from sparkpoint.checkpoint.overview import find_queries, read_checkpoint
from sparkpoint.checkpoint.plan import plan_batch
from sparkpoint.checkpoint.rewrite import (
    absolute_schema_roots,
    rewrite_operator,
    rewrite_query_id,
    split_compact,
)
from sparkpoint.checkpoint.sink import parse_sink_entry
from sparkpoint.checkpoint.zips import parse_zip
from tests.unit.checkpoint.memory import MemoryCheckpoint
from tests.unit.checkpoint.synthetic import SyntheticStore, checkpoint_of, lz4_raw

_V2 = "state/0/_metadata/v2/0"
_STORE = {
    "storeName": "s",
    "numPartitions": 2,
    "stateSchemaFilePaths": ["file:/c/_stateSchema/s/0"],
}
_OPERATOR = json.dumps(
    {"operatorInfo": {"operatorId": 0, "operatorName": "o"}, "stateStoreInfo": [_STORE]}
).encode()
_KEY = b'{"type":"struct","fields":[{"name":"k","type":"long"}]}'
_LINEAGE = b'[{"version":1,"checkpointUniqueId":"a"}]'


def _zipped(version: int = 1) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        sst = {"localFileName": "1.sst", "dfsSstFileName": "1-a.sst", "sizeBytes": 3}
        archive.writestr("metadata", f"v{version}\n" + json.dumps({"sstFiles": [sst]}))
        archive.writestr("CURRENT", "x" * 50)
    return buffer.getvalue()


_PARSERS: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "metadata": (parse_query_id, b'{"id":"a"}'),
    "offsets": (
        lambda data: [file_source_offset(o, "o") for _, o in parse_offsets(data, 1).sources],
        b'v1\n{"batchWatermarkMs":0,"conf":{"a":"b"}}\n{"logOffset":1}',
    ),
    "commits": (lambda data: parse_commit(data, 1), b'v2\n{"stateUniqueIds":{"0":[["a"]]}}'),
    "operator": (lambda data: parse_operator(data, "m"), b"v1\n" + _OPERATOR),
    "rewritten operator": (
        lambda data: rewrite_operator(data, _V2, root="file:/n"),
        b"v2\n" + _OPERATOR,
    ),
    "schema roots": (lambda data: absolute_schema_roots(data, _V2), b"v2\n" + _OPERATOR),
    "query id": (lambda data: rewrite_query_id(data, "b"), b'{"id":"a"}'),
    "schema": (
        lambda data: schema_fields(data, "s"),
        b"\0\2v2" + 2 * (b"\0\0\0\1" + len(_KEY).to_bytes(2, "big") + _KEY),
    ),
    "zip": (lambda data: parse_zip(data, "z"), _zipped()),
    "lineage": (
        lambda data: lineage_of_changelog(data, "c"),
        lz4_raw(b"\0\2v3" + len(_LINEAGE).to_bytes(2, "big") + _LINEAGE),
    ),
    "rewritten lineage": (
        lambda data: rewrite_lineage(data, "c", {1: "b", 2: "c"}),
        lz4_raw(b"\0\2v3" + len(_LINEAGE).to_bytes(2, "big") + _LINEAGE + b"changes"),
    ),
    "compressed lineage": (
        lambda data: lineage_of_changelog(data, "c"),
        bytes.fromhex("4c5a34426c6f636b25") + b"\x30\0\0\0\x60\0\0\0\0\0\0\0" + b"\xf0\x30" * 20,
    ),
    "source log": (
        lambda data: split_compact(data, "9.compact", last=3, interval=2),
        b'v1\n{"path":"file:///a","timestamp":1,"batchId":0}\n{"path":"b","batchId":3}',
    ),
    "sink log": (lambda data: parse_sink_entry(data, "1"), b'v1\n{"path":"a","action":"add"}'),
}


@st.composite
def _mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """Truncated, with bytes replaced, repeated, swapped or inserted; or anything at all."""
    kind = draw(st.sampled_from(["cut", "replace", "insert", "swap", "repeat", "noise"]))
    at = draw(st.integers(0, len(data)))
    upto = draw(st.integers(at, len(data)))
    noise = draw(st.binary(max_size=12))
    match kind:
        case "cut":
            return data[:at]
        case "replace":
            return data[:at] + noise + data[at + len(noise) :]
        case "insert":
            return (
                data[:at]
                + draw(st.sampled_from([noise, b"\0", b"../", b"{", b"[" * 9999]))
                + data[at:]
            )
        case "swap":
            return data[at:] + data[:at]
        case "repeat":
            return data[:at] + data[at:upto] * draw(st.integers(2, 50)) + data[upto:]
        case _:
            return noise


@pytest.mark.parametrize("name", _PARSERS)
def test_untouched_sample_is_read(name: str) -> None:
    parse, data = _PARSERS[name]

    if name != "compressed lineage":
        parse(data)


@pytest.mark.parametrize("name", _PARSERS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_mutated_bytes_end_in_a_value_or_a_checkpoint_error(name: str, data: st.DataObject) -> None:
    parse, sample = _PARSERS[name]
    mutated = data.draw(_mutated(sample))

    with contextlib.suppress(CheckpointError):
        parse(mutated)


_STORES = [[SyntheticStore(snapshots=frozenset({2}))]]
_WHOLE = {
    name: checkpoint_of(_STORES, provider=provider, batch=3, written=5, unique=unique).files
    for name, provider, unique in (
        ("hdfs", "hdfs", False),
        ("rocksdb", "rocksdb", False),
        ("format 2", "rocksdb", True),
    )
}


@pytest.mark.parametrize("name", _WHOLE)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_checkpoint_with_a_mutated_file_is_planned_or_refused(
    name: str, data: st.DataObject
) -> None:
    files = dict(_WHOLE[name])
    path = data.draw(st.sampled_from(sorted(files)))
    files[path] = data.draw(_mutated(files[path]))

    with contextlib.suppress(CheckpointError):
        plan_batch(MemoryCheckpoint(files))


@pytest.mark.parametrize("name", _WHOLE)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_checkpoint_with_renamed_files_is_described_or_refused(
    name: str, data: st.DataObject
) -> None:
    files = dict(_WHOLE[name])
    for path in data.draw(st.lists(st.sampled_from(sorted(files)), unique=True, max_size=6)):
        parts = path.split("/")
        odd = st.sampled_from(["", "-1", "01", "9" * 40, "x", ".0.crc", "1.delta.tmp", "٣"])
        parts[data.draw(st.integers(0, len(parts) - 1))] = data.draw(odd)
        files["/".join(parts)] = files.pop(path)
    checkpoint = MemoryCheckpoint(files)

    find_queries(checkpoint)
    with contextlib.suppress(CheckpointError):
        read_checkpoint(checkpoint)


@pytest.mark.parametrize("version", [1, 2])
def test_a_snapshot_is_read_whichever_number_spark_gives_it(version: int) -> None:
    """Spark 4.0 writes 2 where state has unique ids, later ones 1."""
    assert [each.path for each in parse_zip(_zipped(version), "1.zip").files] == ["SSTs/1-a.sst"]


def test_zip_bomb_is_refused_without_unpacking_it() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata", b"\0" * (80 * 1024 * 1024))

    with pytest.raises(CheckpointError, match="exceeds"):
        parse_zip(buffer.getvalue(), "1.zip")
