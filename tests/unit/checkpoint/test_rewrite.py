"""What a moved checkpoint must say anew."""

import json

import pytest

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.checkpoint.rewrite import (
    absolute_schema_roots,
    is_operator_metadata_v2,
    rewrite_operator,
    rewrite_query_id,
    split_compact,
)
from sparkpoint.checkpoint.sources import compact_interval

_PATH = "state/3/_metadata/v2/17"


def _operator(root: str) -> bytes:
    uris = [f"{root}/state/3/_stateSchema/default/{i}_ab" for i in range(2)]
    store = {"storeName": "default", "numPartitions": 4, "stateSchemaFilePaths": uris}
    body = {
        "operatorInfo": {"operatorId": 3, "operatorName": "transformWithStateExec"},
        "stateStoreInfo": [store],
        "operatorPropertiesJson": '{"timeMode":"EventTime"}',
    }
    return b"v2\n" + json.dumps(body, separators=(",", ":")).encode()


@pytest.mark.parametrize("old", ["file:/old/ck", "s3a://bucket/a/state/0/b", "hdfs://n:8020/x y"])
@pytest.mark.parametrize("new", ["file:/new", "s3a://other/ck/"])
def test_schema_paths_point_below_the_new_root(old: str, new: str) -> None:
    rewritten = rewrite_operator(_operator(old), _PATH, root=new)

    assert rewritten == _operator(new.rstrip("/"))
    assert absolute_schema_roots(rewritten, _PATH) == (new.rstrip("/"),)


def test_other_files_pass_unchanged() -> None:
    assert rewrite_operator(b"\0anything", "state/0/0/1.delta", root="file:/n") == b"\0anything"
    assert is_operator_metadata_v2(_PATH)
    assert not is_operator_metadata_v2("state/3/_metadata/metadata")
    assert absolute_schema_roots(b"", "metadata") == ()


def test_fork_gets_the_id_it_is_given() -> None:
    assert rewrite_query_id(b'{"id":"old"}', "new") == b'{"id":"new"}'


def test_id_that_is_no_id_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="id of a query"):
        rewrite_query_id(b'{"id":"old"}', 'x"}')


def test_older_entries_are_cut_out_of_a_newer_compacted_one() -> None:
    lines = [f'{{"path":"f{i}","timestamp":1,"batchId":{i}}}' for i in range(30)]
    compact = "\n".join(["v1", *lines]).encode()

    split = split_compact(compact, "sources/0/29.compact", last=21, interval=10)

    assert list(split) == ["9.compact", "19.compact", "20", "21"]
    assert split["9.compact"].decode().splitlines() == ["v1", *lines[:10]]
    assert split["19.compact"].decode().splitlines() == ["v1", *lines[:20]]
    assert split["21"].decode().splitlines() == ["v1", lines[21]]


@pytest.mark.parametrize(
    ("compacts", "interval"),
    [
        ([], 10),
        ([9], 10),
        ([4], 5),
        ([9, 19], 10),
        ([19], 20),
        ([21], 11),
        ([29], 10),
        ([11], 12),
        ([32], 11),
        ([10**9 + 6], 10**9 + 7),
        ([2 * (10**9 + 7) - 1], 10**9 + 7),
    ],
)
def test_interval_of_compaction_is_derived_as_spark_does(
    compacts: list[int], interval: int
) -> None:
    assert compact_interval(compacts) == interval


def test_smallest_divisor_is_the_one_that_a_plain_search_finds() -> None:
    for entries in range(21, 600):
        plain = next(i for i in range(10, entries + 1) if entries % i == 0)
        expected = plain if entries // 2 > 10 else entries

        assert compact_interval([entries - 1]) == expected


def test_number_that_no_log_can_have_reached_is_refused_at_once() -> None:
    with pytest.raises(DamagedError, match=r"1000000000000036\.compact"):
        compact_interval([10**15 + 36])


@pytest.mark.parametrize(("last", "interval"), [(10**15, 10**16), (500_000, 10**6), (5, 0)])
def test_compacted_entry_is_not_cut_into_more_entries_than_a_log_has(
    last: int, interval: int
) -> None:
    with pytest.raises(DamagedError, match="cannot be cut"):
        split_compact(b"v1", "sources/0/9.compact", last=last, interval=interval)
