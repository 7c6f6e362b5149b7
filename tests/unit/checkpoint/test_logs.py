"""Every version of the logs that Spark writes is read, and any other is refused by name."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkpoint.checkpoint.errors import DamagedError, UnknownFormatError
from sparkpoint.checkpoint.logs import (
    file_source_offset,
    parse_commit,
    parse_offsets,
    parse_query_id,
)
from sparkpoint.checkpoint.operators import (
    family_schemas,
    parse_operator,
    schema_fields,
    schema_tail,
)

_HEAD = '{"batchWatermarkMs":5,"batchTimestampMs":7,"conf":{"a":"b"}}'


def test_offsets_of_version_1_number_their_sources() -> None:
    entry = parse_offsets(f'v1\n{_HEAD}\n{{"logOffset":3}}\n-\n42'.encode(), 9)

    assert (entry.batch, entry.version, entry.watermark_ms, entry.timestamp_ms) == (9, 1, 5, 7)
    assert entry.conf == {"a": "b"}
    assert entry.sources == (("0", '{"logOffset":3}'), ("1", None), ("2", "42"))


def test_offsets_of_version_2_name_their_sources() -> None:
    entry = parse_offsets(f'v2\n{_HEAD}\nclicks:{{"topic":{{"0":1}}}}\nold:-'.encode(), 0)

    assert entry.sources == (("clicks", '{"topic":{"0":1}}'), ("old", None))


def test_offsets_without_metadata_line_have_no_conf() -> None:
    assert parse_offsets(b"v1\n\n1", 0).conf == {}


def test_commit_of_version_1_may_be_empty() -> None:
    assert parse_commit(b"v1\n{}", 3).next_watermark_ms == 0
    assert parse_commit(b"v1", 3).state_ids == {}


@pytest.mark.parametrize(("version", "extra"), [(2, {}), (3, {"sinkMetadataMap": {"s": {}}})])
def test_commit_names_the_unique_ids_of_its_state(version: int, extra: dict[str, object]) -> None:
    body = {"nextBatchWatermarkMs": 8, "stateUniqueIds": {"0": [["a", "b"], ["c", "d"]]}, **extra}

    entry = parse_commit(f"v{version}\n{json.dumps(body)}".encode(), 3)

    assert entry.version == version
    assert entry.state_ids == {0: ((("a",), ("b",)), (("c",), ("d",)))}


@pytest.mark.parametrize(
    ("parse", "data"),
    [
        (parse_offsets, b"v3\n{}\n1"),
        (parse_commit, b"v4\n{}"),
        (parse_commit, b"v0\n{}"),
        (parse_offsets, b"v99999999\n{}\n1"),
    ],
)
def test_unknown_version_is_refused_by_name(parse: object, data: bytes) -> None:
    with pytest.raises(UnknownFormatError, match=data.split(b"\n")[0].decode()):
        parse(data, 1)  # type: ignore[operator]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"v1",
        b"v1\n{}",
        b"v1\n{}\n",
        b'v1\n{"batchWatermarkMs":5\n1',
        b'v1\n{}\n{"logOff',
        b"v1\n[]\n1",
        b'v1\n{"conf":[]}\n1',
        b'v1\n{"conf":{"a":1}}\n1',
        b'v1\n{"batchWatermarkMs":1e400}\n1',
        b'v1\n{"batchWatermarkMs":true}\n1',
        b'v1\n{"batchWatermarkMs":' + b"9" * 5000 + b"}\n1",
        b"v1\n" + b"[" * 100_000 + b"\n1",
        b"v1\n{}\n1\0",
        b"\xff\xfe\n",
        b"v2\n{}\n../../etc:1",
        b"v2\n{}\nno colon",
        b"v2\n{}\n:1",
    ],
)
def test_damaged_offsets_are_called_damaged(data: bytes) -> None:
    with pytest.raises(DamagedError, match="offsets/4"):
        parse_offsets(data, 4)


@pytest.mark.parametrize("uid", ["../x", "a/b", "", "x" * 65, "a\\u0000b", "..", "a b"])
def test_unique_id_that_could_leave_its_folder_is_refused(uid: str) -> None:
    with pytest.raises(DamagedError, match="unique id"):
        parse_commit(f'v2\n{{"stateUniqueIds":{{"0":[["{uid}"]]}}}}'.encode(), 1)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"id":7}', b'{"id":"../x"}', b"[]", b'{"id":"a'])
def test_damaged_metadata_is_called_damaged(data: bytes) -> None:
    with pytest.raises(DamagedError, match="metadata"):
        parse_query_id(data)


def test_offset_of_a_file_source_is_told_from_others() -> None:
    assert file_source_offset('{"logOffset":12}', "o") == 12
    assert file_source_offset('{"topic":{"0":12}}', "o") is None
    assert file_source_offset('{"logOffset":{"0":12}}', "o") is None
    assert file_source_offset("12", "o") is None
    assert file_source_offset(None, "o") is None


def test_operator_metadata_of_version_2_knows_its_schemas() -> None:
    uri = "file:/old/ck/state/0/_stateSchema/default/0_ab"
    store = {"storeName": "default", "numPartitions": 4, "stateSchemaFilePaths": [uri]}
    info = {"operatorId": 0, "operatorName": "transformWithStateExec"}
    body = {"operatorInfo": info, "stateStoreInfo": [store], "operatorPropertiesJson": "{}"}

    operator = parse_operator(b"v2\n" + json.dumps(body).encode(), "m")

    assert operator.name == "transformWithStateExec"
    assert [schema_tail(u, "m") for s in operator.stores for u in s.schema_paths] == [
        "_stateSchema/default/0_ab"
    ]


@pytest.mark.parametrize("uri", ["x", "/_stateSchema/a", "file:/c/_stateSchema/../../x", ""])
def test_schema_path_that_leaves_its_folder_is_refused(uri: str) -> None:
    with pytest.raises(DamagedError):
        schema_tail(uri, "m")


def test_store_name_that_could_leave_its_folder_is_refused() -> None:
    store = {"storeName": "../../x", "numPartitions": 4}
    body = {"operatorInfo": {"operatorId": 0, "operatorName": "x"}, "stateStoreInfo": [store]}

    with pytest.raises(DamagedError, match="name of a state store"):
        parse_operator(b"v1\n" + json.dumps(body).encode(), "m")


def _written_by_java(text: str) -> bytes:
    units = text.encode("utf-16-be", "surrogatepass")
    characters = struct.unpack(f">{len(units) // 2}H", units)
    halves = "".join(map(chr, characters)).encode(errors="surrogatepass")
    return halves.replace(b"\0", b"\xc0\x80")


def _schema_of(*chunks: bytes) -> bytes:
    return struct.pack(">i", len(chunks)) + b"".join(_length(each) + each for each in chunks)


def _length(data: bytes) -> bytes:
    return struct.pack(">H", len(data))


@given(
    name=st.text(max_size=12) | st.text("a\0é€\U0001f600\U0001f601", max_size=6),
    cut=st.integers(0, 80),
)
def test_names_are_read_as_java_wrote_them(name: str, cut: int) -> None:
    column = name.replace("\0", "")  # no column of ours
    text = json.dumps({"fields": [{"name": column, "type": "long"}]}, ensure_ascii=False)
    data = text.encode("utf-16-be")
    # Spark cuts long texts at any half of a character.
    parts = data[: 2 * cut], data[2 * cut :]
    chunks = [_written_by_java(part.decode("utf-16-be", "surrogatepass")) for part in parts]
    family = _written_by_java(name)
    third = b"\0\2v3" + struct.pack(">i", 1) + _length(family) + family
    third += 2 * (b"\0\0" + _schema_of(*chunks)) + 2 * _schema_of(b"")

    found = schema_fields(b"\0\2v2" + 2 * _schema_of(*chunks), "schema")

    assert found == (((column, "long"),),) * 2
    assert family_schemas(third, "schema") == {name: (text, text)}


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0"])
def test_a_name_that_java_did_not_write_is_damage(bad: bytes) -> None:
    chunk = b'{"fields":[{"name":"a' + bad + b'","type":"long"}]}'

    with pytest.raises(DamagedError, match="no text"):
        schema_fields(b"\0\2v2" + 2 * _schema_of(chunk), "schema")


def test_half_a_character_is_told_as_such() -> None:
    chunk = b'{"fields":[{"name":"a\xed\xa0\x80","type":"long"}]}'

    found = schema_fields(b"\0\2v2" + 2 * _schema_of(chunk), "schema")

    assert found == ((("a\ufffd", "long"),),) * 2


def test_columns_are_read_from_a_schema_file() -> None:
    key = b'{"type":"struct","fields":[{"name":"k","type":"long"},{"name":"w","type":{}}]}'
    value = b'{"type":"struct","fields":[]}'
    texts = [len(text).to_bytes(2, "big") + text for text in (key, value)]
    data = b"\0\2v2" + b"".join(b"\0\0\0\1" + text for text in texts)

    assert schema_fields(data, "schema") == ((("k", "long"), ("w", "nested")), ())
    assert schema_fields(b"\0\2v1" + b"".join(texts), "schema") == schema_fields(data, "schema")
    assert schema_fields(b"\0\2v3" + data[4:], "schema") is None
