"""Manifests and tables at the border: golden files, round trips, and whatever a fuzzer makes of
them."""

import contextlib
import json
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkpoint.checkpoint.model import Role
from sparkpoint.cli.render.text import moment
from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.savepoint.errors import DamagedError, NewerFormatError, SavepointError
from sparkpoint.savepoint.manifest import (
    FileSet,
    Manifest,
    OperatorInfo,
    Parent,
    QueryInfo,
    SinkInfo,
    SourceCut,
    SourceInfo,
    SourceOffset,
    StoreInfo,
    Timing,
    canonical,
    identity_of,
    parse_manifest,
)
from sparkpoint.savepoint.names import digest_of_path, object_path
from sparkpoint.savepoint.table import FileRecord, decode_table, encode_table
from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.digest import is_md5, md5_digest
from sparkpoint.storage.errors import StorageError
from sparkpoint.storage.interface import check_path
from tests.unit.savepoint.synthetic import SyntheticQuery

GOLDEN = Path(__file__).parent / "golden"
DIGEST = st.text("0123456789abcdef", min_size=64, max_size=64)
MD5_DIGEST = st.builds(
    md5_digest, st.text("0123456789abcdef", min_size=32, max_size=32), st.text(max_size=8)
)
PART = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="/\\"),
    min_size=1,
    max_size=12,
).filter(lambda part: part not in (".", ".."))
RECORD = st.builds(
    FileRecord,
    path=st.lists(PART, min_size=1, max_size=4).map("/".join),
    size=st.integers(0, 2**62),
    digest=DIGEST | MD5_DIGEST,
    object=DIGEST,
    offset=st.integers(0, 2**40),
    role=st.sampled_from(Role),
    stamp=st.text(max_size=20),
)
T = TypeVar("T")


def built(model: Callable[..., T], **parts: st.SearchStrategy[Any]) -> st.SearchStrategy[T]:
    """As `st.builds`, which would give every field twice: by its name and by its alias."""
    return st.fixed_dictionaries(parts).map(lambda values: model(**values))


COUNT = st.integers(0, 2**63 - 1)
TEXT = st.text(max_size=20)
NAME = st.from_regex(r"[a-z0-9]([-a-z0-9._]{0,12}[a-z0-9])?", fullmatch=True)
ZONES = st.sampled_from([UTC, *(timezone(timedelta(hours=hours)) for hours in (-14, -7, 14))])
MOMENT = st.datetimes(datetime(1971, 1, 1), datetime(9998, 12, 31), timezones=ZONES)
ENDS = st.sampled_from([datetime.min, datetime.max, datetime(1970, 1, 1), datetime(9999, 1, 1)])
ANY_MOMENT = st.builds(
    lambda time, zone: time.replace(tzinfo=zone).isoformat(), ENDS | st.datetimes(), ZONES
)
STORE = built(
    StoreInfo,
    name=TEXT,
    partitions=COUNT,
    base_versions=st.lists(COUNT, max_size=3),
    files=COUNT,
    bytes=COUNT,
)
OPERATOR = built(
    OperatorInfo,
    id=COUNT,
    name=st.none() | TEXT,
    metadata_version=st.none() | COUNT,
    provider=TEXT,
    partitions=COUNT,
    stores=st.lists(STORE, max_size=2),
)
CUT = built(SourceCut, source=TEXT, path=TEXT, last=COUNT, interval=st.integers(1, 2**31 - 1))
SINK = built(SinkInfo, kind=st.sampled_from(["file", "delta", "other"]), uri=st.none() | TEXT)
QUERY = built(
    QueryInfo,
    prefix=PART,
    id=TEXT,
    batch=COUNT,
    watermark_ms=st.integers(),
    next_watermark_ms=st.integers(),
    timestamp_ms=st.integers(),
    sources=st.lists(built(SourceOffset, key=TEXT, offset=st.none() | TEXT), max_size=2),
    conf=st.dictionaries(TEXT, TEXT, max_size=2),
    operators=st.lists(OPERATOR, max_size=2),
    sink=st.none() | SINK,
    rows=st.none() | COUNT,
    pending=st.booleans(),
    offsets_version=COUNT,
    commits_version=COUNT,
    source_cuts=st.lists(CUT, max_size=1),
    warnings=st.lists(TEXT, max_size=1),
)
MANIFEST = built(
    Manifest,
    format=st.sampled_from([1, 2]),
    namespace=NAME,
    job=NAME,
    name=NAME,
    created=MOMENT,
    parent=st.none() | built(Parent, id=DIGEST, namespace=NAME, job=NAME, name=NAME),
    source=built(SourceInfo, uri=TEXT, epoch=st.none() | TEXT),
    revision=st.none() | TEXT,
    spark_version=st.none() | TEXT,
    trigger=st.none() | TEXT,
    queries=st.lists(QUERY, min_size=1, max_size=2, unique_by=lambda query: query.prefix),
    files=built(
        FileSet,
        table=DIGEST,
        table_bytes=COUNT,
        count=COUNT,
        bytes=COUNT,
        new_bytes=COUNT,
        new_objects=COUNT,
    ),
    timing=built(Timing, started=MOMENT, seconds=st.floats(0, 1e9), tries=COUNT),
)


@given(manifest=MANIFEST)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_manifest_is_read_back_as_it_was_written(manifest: Manifest) -> None:
    data = canonical(manifest)

    assert parse_manifest(data, "here") == manifest
    assert canonical(parse_manifest(data, "here")) == data


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("manifest-*.json")), ids=lambda p: p.stem)
def test_golden_manifests_are_read_and_written_back_byte_by_byte(path: Path) -> None:
    data = path.read_bytes()

    assert canonical(parse_manifest(data, path.name)) == data
    assert identity_of(data) == (path.with_suffix(".id")).read_text().strip()


def test_the_golden_table_is_read(tmp_path: Path) -> None:
    table = decode_table((GOLDEN / "table-1.bin").read_bytes(), "golden")

    assert [record.path for record in table.files.values()] == [
        "commits/0",
        "offsets/0",
        "state/0/0/1.delta",
    ]
    assert table.files["offsets/0"].offset == 29


def test_the_golden_table_of_the_second_format_is_read_and_written_back() -> None:
    data = (GOLDEN / "table-2.bin").read_bytes()

    table = decode_table(data, "golden")

    large = table.files["state/0/0/SSTs/000001-a.sst"]
    assert large.digest == large.object
    assert large.digest == md5_digest("0" * 32, "default/visits/state/0/0/SSTs/000001-a.sst")
    assert table.format == 2
    assert decode_table(encode_table(table.files.values()), "again") == table


@given(records=st.lists(RECORD, max_size=20, unique_by=lambda record: record.path.split("/")[0]))
@settings(max_examples=30, deadline=None)
def test_tables_round_trip(records: list[FileRecord]) -> None:
    # Content that is named by its MD5 is an object by itself.
    given = [replace(r, object=r.digest) if is_md5(r.digest) else r for r in records]
    whole = [r for r in given if r.object != r.digest or r.offset == 0]

    data = encode_table(whole)
    table = decode_table(data, "table")

    assert dict(table.files) == {record.path: record for record in whole}
    text = zlib.decompress(data[4:]).decode()
    content = json.loads(text)
    assert text == json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def golden() -> dict[str, object]:
    content: dict[str, object] = json.loads((GOLDEN / "manifest-1.json").read_bytes())
    return content


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(key=st.sampled_from(sorted(golden())), value=JSON)
@settings(max_examples=40, deadline=None)
def test_a_manifest_with_any_field_swapped_is_read_or_refused_in_words(
    key: str, value: object
) -> None:
    data = json.dumps({**golden(), key: value}).encode()

    with contextlib.suppress(SavepointError):
        assert isinstance(parse_manifest(data, "manifest"), Manifest)


@pytest.mark.parametrize("field", ["created", "started"])
@pytest.mark.parametrize(
    "time",
    [
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "1969-12-31T23:59:59Z",
        "9999-01-01T00:00:00Z",
    ],
)
def test_a_manifest_of_no_time_that_can_be_is_damaged(field: str, time: str) -> None:
    with pytest.raises(DamagedError, match=rf"{field}.*years"):
        parse_manifest(dated(**{field: time}), "manifest")


@given(created=ANY_MOMENT, started=ANY_MOMENT)
@settings(max_examples=60, deadline=None)
def test_a_manifest_of_any_time_can_be_shown_or_is_refused_in_words(
    created: str, started: str
) -> None:
    data = dated(created=created, started=started)

    with contextlib.suppress(DamagedError):
        manifest = parse_manifest(data, "manifest")
        for each in (manifest.created, manifest.timing.started):
            assert moment(each).endswith("Z")


def dated(**times: str) -> bytes:
    content: dict[str, Any] = golden()
    content["created"] = times.get("created", content["created"])
    content["timing"]["started"] = times.get("started", content["timing"]["started"])
    return json.dumps(content).encode()


@given(data=st.binary(max_size=200), cut=st.integers(0, 2000))
@settings(max_examples=30, deadline=None)
def test_a_manifest_that_is_cut_off_or_garbage_is_refused_in_words(data: bytes, cut: int) -> None:
    whole = (GOLDEN / "manifest-1.json").read_bytes()
    for broken in (data, whole[: min(cut, len(whole) - 2)], whole + data + b"x"):
        with pytest.raises(SavepointError):
            parse_manifest(broken, "manifest")


@pytest.mark.parametrize(
    "change",
    [
        {"format": 3},
        {"format": 10**30},
    ],
)
def test_a_manifest_of_a_newer_format_is_refused_by_name(change: dict[str, object]) -> None:
    with pytest.raises(NewerFormatError, match="Update Sparkpoint"):
        parse_manifest(json.dumps({**golden(), **change}).encode(), "manifest")


@pytest.mark.parametrize(
    "path",
    ["../escape", "/etc/passwd", "a/../../b", "a//b", "", "a\0b", "./a", "a/", "x" * 2000, "."],
)
def test_a_table_with_a_dangerous_path_is_refused(path: str) -> None:
    row = {"path": path, "size": 1, "digest": "0" * 64, "role": "state"}

    with pytest.raises(DamagedError):
        decode_table(packed({"format": 1, "files": [row]}), "table")


@pytest.mark.parametrize(
    "row",
    [
        {"size": -1},
        {"size": 2**70},
        {"size": "1"},
        {"digest": "0" * 63},
        {"digest": "G" * 64},
        {"digest": "0" * 63 + "\n"},
        {"role": "root"},
        {"offset": 5},
        {"offset": -5, "object": "1" * 64},
        {"object": "../" * 20},
        {"surprise": 1},
    ],
    ids=str,
)
def test_a_table_with_a_bad_value_is_refused(row: dict[str, object]) -> None:
    good = {"path": "a", "size": 1, "digest": "0" * 64, "role": "state"}

    with pytest.raises(DamagedError):
        decode_table(packed({"format": 1, "files": [{**good, **row}]}), "table")


MD5_NAMED = f"md5-{'0' * 32}-{'1' * 32}"


@pytest.mark.parametrize(
    "row",
    [
        {"digest": f"md5-{'0' * 32}"},
        {"digest": f"md5-{'0' * 31}-{'1' * 32}"},
        {"digest": f"md5-{'0' * 32}-{'1' * 31}"},
        {"digest": f"md5-{'0' * 32}-{'1' * 32}\n"},
        {"digest": f"md5-{'0' * 32}-{'1' * 32}-5"},
        {"digest": f"md5-{'A' * 32}-{'1' * 32}"},
        {"digest": f"md5-{'../' * 10}00-{'1' * 32}"},
        {"digest": f"md5-{'0' * 32}-{'../' * 10}00"},
        {"digest": f"sha1-{'0' * 32}-{'1' * 32}"},
        {"digest": f"0000{'0' * 32}-{'1' * 32}"},
        {"object": "2" * 64},
        {"object": "2" * 64, "offset": 7},
        {"object": f"md5-{'0' * 32}-{'2' * 32}"},
        {"offset": 7},
    ],
    ids=str,
)
def test_a_table_with_a_bad_md5_is_refused(row: dict[str, object]) -> None:
    good = {"path": "a", "size": 1, "digest": MD5_NAMED, "role": "state"}

    decode_table(packed({"format": 2, "files": [good]}), "table")
    with pytest.raises(DamagedError):
        decode_table(packed({"format": 2, "files": [{**good, **row}]}), "table")


def test_the_first_format_knows_no_md5() -> None:
    row = {"path": "a", "size": 1, "digest": MD5_NAMED, "role": "state"}

    with pytest.raises(DamagedError, match="format does not know"):
        decode_table(packed({"format": 1, "files": [row]}), "table")


@given(digest=st.text("0123456789abcdefmd5-./\0\n", max_size=72) | MD5_DIGEST | DIGEST)
@settings(max_examples=60, deadline=None)
def test_a_name_of_an_object_leads_to_its_own_place_or_is_refused(digest: str) -> None:
    try:
        path = object_path(digest)
    except DamagedError:
        return
    assert digest_of_path(path) == digest
    assert check_path(path).count("/") == 2


def test_a_table_that_lists_a_file_twice_or_as_a_folder_is_refused() -> None:
    row = {"path": "a", "size": 1, "digest": "0" * 64, "role": "state"}

    for other in ("a", "a/b"):
        with pytest.raises(DamagedError, match=r"twice|both"):
            decode_table(packed({"format": 1, "files": [row, {**row, "path": other}]}), "table")


def test_a_table_that_is_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkpoint.savepoint.table._LIMIT", 1_000_000)

    with pytest.raises(DamagedError, match="too long"):
        decode_table(b"SPT1" + zlib.compress(b" " * 50_000_000), "table")


@given(data=st.binary(max_size=300), cut=st.integers(0, 300))
@settings(max_examples=30, deadline=None)
def test_a_table_of_garbage_is_refused(data: bytes, cut: int) -> None:
    whole = (GOLDEN / "table-1.bin").read_bytes()
    for broken in (data, whole[: min(cut, len(whole) - 1)], whole + b"x", b"SPT1" + data):
        with pytest.raises(SavepointError):
            decode_table(broken, "table")


def packed(content: object) -> bytes:
    return b"SPT1" + zlib.compress(json.dumps(content).encode())


@pytest.mark.parametrize("depth", [2_000, 100_000])
def test_deeply_nested_documents_are_refused_in_words(depth: int) -> None:
    nest = "[" * depth + "]" * depth

    with pytest.raises(DamagedError):
        parse_manifest(f'{{"format":1,"queries":{nest}}}'.encode(), "manifest")
    with pytest.raises(DamagedError):
        decode_table(b"SPT1" + zlib.compress(f'{{"format":1,"files":{nest}}}'.encode()), "table")


def test_a_bomb_is_stopped_before_it_takes_memory() -> None:
    bomb = zlib.compressobj(9)
    data = b"SPT1" + b"".join(bomb.compress(bytes(1024 * 1024)) for _ in range(256))
    data += bomb.flush()
    tracemalloc.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sparkpoint.savepoint.table._LIMIT", 1024 * 1024)
            with pytest.raises(DamagedError, match="too long"):
                decode_table(data, "table")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    # Very much of nothing in a small file: what is made of it is the bound, and no more.
    assert len(data) < 512 * 1024
    assert most < 16 * 1024 * 1024


@pytest.mark.parametrize("size", [2**40, 2**62])
def test_a_table_that_promises_more_than_there_is_takes_no_memory_for_it(
    size: int, repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(2)
    one = repository.capture(DirectoryStore(query.root), CaptureRequest(job="visits", name="one"))
    pack = identity_of(b"packed")
    repository.store.put(object_path(pack), [b"packed"])
    row = {"path": "a", "size": size, "digest": "0" * 64, "object": pack, "role": "state"}
    _publish(repository, one.savepoint.manifest, [row])

    with pytest.raises(DamagedError):
        repository.materialize(repository.find("evil"), DirectoryStore(tmp_path / "target"))
    assert not repository.verify([repository.find("evil")])[0].good


def test_a_link_in_a_target_is_no_way_out(repository: Repository, tmp_path: Path) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(2)
    one = repository.capture(DirectoryStore(query.root), CaptureRequest(job="visits", name="one"))
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    target.mkdir()
    (target / "state").symlink_to(outside, target_is_directory=True)

    with pytest.raises((SavepointError, StorageError)):
        repository.materialize(one.savepoint, DirectoryStore(target))
    assert list(outside.iterdir()) == []


def _publish(repository: Repository, like: Manifest, rows: list[dict[str, Any]]) -> None:
    """A savepoint `evil` with this table, as somebody who can write to the repository makes it."""
    table = packed({"format": 1, "files": rows})
    repository.store.put(object_path(identity_of(table)), [table])
    files = like.files.model_copy(update={"table": identity_of(table)})
    evil = like.model_copy(update={"name": "evil", "files": files})
    repository.store.create("savepoints/default/visits/evil.json", canonical(evil))


def test_a_tampered_savepoint_writes_nothing_outside_of_its_target(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(2)
    request = CaptureRequest(job="visits", name="one")
    one = repository.capture(DirectoryStore(query.root), request).savepoint
    rows = [
        {"path": "../../escaped", "size": 2, "digest": "0" * 64, "role": "state"},
    ]
    _publish(repository, one.manifest, rows)

    with pytest.raises(DamagedError):
        repository.materialize(repository.find("evil"), DirectoryStore(tmp_path / "deep/er/target"))
    assert not repository.verify([repository.find("evil")])[0].good
    assert not list(tmp_path.rglob("escaped"))


def test_a_link_in_the_target_leads_nothing_outside(repository: Repository, tmp_path: Path) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(2)
    request = CaptureRequest(job="visits", name="one")
    one = repository.capture(DirectoryStore(query.root), request).savepoint
    (tmp_path / "outside").mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "target/state").symlink_to(tmp_path / "outside")

    with pytest.raises(Exception, match="symbolic link"):
        repository.materialize(one, DirectoryStore(tmp_path / "target"))
    assert list((tmp_path / "outside").iterdir()) == []


def test_an_unreadable_manifest_is_listed_as_such_and_stops_collection(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(2)
    repository.capture(DirectoryStore(query.root), CaptureRequest(job="visits", name="one"))
    repository.store.put("savepoints/default/visits/two.json", [b'{"format": 1, "na'])

    found = repository.list()

    assert [each.manifest.name for each in found.savepoints] == ["one"]
    assert "two.json" in found.unreadable[0].problem
    with pytest.raises(DamagedError, match="Nothing was collected"):
        repository.collect(grace=0)
