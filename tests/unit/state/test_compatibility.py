"""What the files of a savepoint tell about going on with another Spark or configuration."""

from collections.abc import Mapping
from typing import Any

import pytest

from sparkpoint.savepoint.manifest import OperatorInfo, QueryInfo
from sparkpoint.state.compatibility import findings
from tests.unit.state.writing import schema_of

_ORDER = "spark.sql.dropDuplicates.deterministicKeyOrder.enabled"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def query(
    *, conf: Mapping[str, str] | None = None, name: str = "stateStoreSave", **given: Any
) -> QueryInfo:
    operator = {
        "id": 0,
        "name": name,
        "metadata_version": 1,
        "provider": "hdfs",
        "partitions": 4,
        "stores": [],
    }
    return QueryInfo.model_validate(
        {
            "prefix": "",
            "id": "7b4c26e8-0000-4000-8000-000000000001",
            "batch": 3,
            "watermark_ms": 0,
            "next_watermark_ms": 0,
            "timestamp_ms": 0,
            "sources": [],
            "conf": dict(conf or {}),
            "operators": [operator],
            "pending": False,
            "offsets_version": 1,
            "commits_version": 1,
            **given,
        }
    )


def obstacles(given: QueryInfo, version: str | None, *, columns: int = 2) -> list[str]:
    def read(_: str) -> bytes:
        return schema_of([(f"c{n}", "long") for n in range(columns)], [("v", "long")])

    found = findings(given, spark_version=version, conf={}, read=read)
    return [each.message for each in found if each.is_obstacle]


_JOIN = "spark.sql.streaming.join.stateFormatVersion"
_CHECKSUM = "spark.sql.streaming.stateStore.rowChecksum.enabled"
_ENCODING = "spark.sql.streaming.stateStore.encodingFormat"


@pytest.mark.parametrize(
    ("key", "value", "below", "first"),
    [
        (_JOIN, "3", "4.0.5", "4.1.0"),
        (_JOIN, "4", "4.2.1", "4.3.0"),
        (_CHECKSUM, "true", "4.1.4", "4.2.1"),
        (_ENCODING, "avro", "3.5.9", "4.0.5"),
    ],
)
def test_a_form_of_state_that_an_older_spark_does_not_know_is_an_obstacle(
    key: str, value: str, below: str, first: str
) -> None:
    join = query(conf={key: value}, name="symmetricHashJoin")

    (told,) = obstacles(join, below)

    assert f"Spark {below} cannot read its state, which was begun with {key}={value}." == told
    assert obstacles(join, first) == []


@pytest.mark.parametrize(
    ("key", "value", "name"),
    [
        (_JOIN, "2", "symmetricHashJoin"),
        (_JOIN, "3", "stateStoreSave"),
        (_CHECKSUM, "false", "dedupe"),
        (_ENCODING, "unsaferow", "dedupe"),
    ],
)
def test_the_form_that_every_spark_knows_or_that_no_operator_has_is_none(
    key: str, value: str, name: str
) -> None:
    assert obstacles(query(conf={key: value}, name=name), "3.5.9") == []


@pytest.mark.parametrize(
    ("logs", "version", "told"),
    [
        ({"commits_version": 2}, "3.5.9", "commit log, which is of version 2"),
        ({"commits_version": 2}, "4.0.0", None),
        ({"commits_version": 3}, "4.2.1", "commit log, which is of version 3"),
        ({"commits_version": 3}, "4.3.0", None),
        ({"offsets_version": 2}, "4.1.4", "offset log, which is of version 2"),
        ({"offsets_version": 2}, "4.2.0", None),
        ({}, "3.5.9", None),
        ({"commits_version": 3}, None, None),
    ],
)
def test_a_log_is_read_only_by_a_spark_that_knows_its_version(
    logs: Mapping[str, Any], version: str | None, told: str | None
) -> None:
    found = obstacles(query(**logs), version)

    assert len(found) == (told is not None)
    assert told is None or told in found[0]


@pytest.mark.parametrize(
    ("name", "version", "refused"),
    [
        ("transformWithStateInPandasExec", "3.5.9", True),
        ("transformWithStateExec", "4.0.0", False),
        ("applyInPandasWithState", "3.5.9", False),
    ],
)
def test_a_spark_before_4_cannot_go_on_with_a_stateful_processor(
    name: str, version: str, refused: bool
) -> None:
    assert any("transformWithState" in each for each in obstacles(query(name=name), version)) == (
        refused
    )


@pytest.mark.parametrize(
    ("version", "columns", "ordered", "name", "refused"),
    [
        ("4.2.1", 5, "true", "dedupe", True),
        ("3.5.9", 7, "true", "dedupeWithinWatermark", True),
        ("4.2.1", 4, "true", "dedupe", False),
        ("4.2.1", 5, "false", "dedupe", False),
        ("4.3.0", 5, "true", "dedupe", False),
        ("4.2.1", 5, "true", "stateStoreSave", False),
    ],
)
def test_duplicates_that_would_come_through_without_a_word_are_an_obstacle(
    version: str, columns: int, ordered: str, name: str, refused: bool
) -> None:
    found = obstacles(query(conf={_ORDER: ordered}, name=name), version, columns=columns)

    assert bool(found) == refused
    assert not refused or "without a word" in found[0]


def test_what_is_pinned_is_told_if_the_session_asks_for_something_else() -> None:
    policy = "spark.sql.streaming.multipleWatermarkPolicy"
    pinned = {"spark.sql.shuffle.partitions": "4", _PROVIDER: "a.b.Hdfs", policy: "min"}
    asked = {"spark.sql.shuffle.partitions": "9", _PROVIDER: "a.b.Hdfs", "spark.other": "1"}
    asked |= {policy: "max"}

    found = findings(query(conf=pinned), spark_version="4.3.0", conf=asked, read=lambda _: b"")

    assert [(each.is_obstacle, each.remedy) for each in found] == [
        (False, "Change it with `sparkpoint state repartition`."),
        (False, "Leave it as it is, or start without state."),
    ]


@pytest.mark.parametrize(
    ("version", "name", "store", "told"),
    [
        ("4.3.0", None, "left-keyToNumValues", True),
        ("3.5.9", None, "left-keyToNumValues", False),
        ("4.3.0", None, "default", False),
        ("4.3.0", "symmetricHashJoin", "left-keyToNumValues", False),
    ],
)
def test_a_join_that_spark_4_may_refuse_is_told_with_a_way_out(
    version: str, name: str | None, store: str, told: bool
) -> None:
    stores = [{"name": store, "partitions": 1, "base_versions": [1], "files": 1, "bytes": 9}]
    given = query()
    (operator,) = given.operators
    changed = OperatorInfo.model_validate({**dict(operator), "name": name, "stores": stores})
    given = given.model_copy(update={"operators": [changed]})

    found = findings(given, spark_version=version, conf={}, read=lambda _: b"")

    assert [each.is_obstacle for each in found] == ([False] if told else [])
    assert not told or "stateSchemaCheck" in found[0].remedy


@pytest.mark.parametrize(
    ("written_by", "version", "provider", "told"),
    [
        ("4.0.5", "4.3.0", "rocksdb", True),
        ("4.3.0", "4.0.5", "rocksdb", True),
        (None, "4.3.0", "rocksdb", True),
        ("4.1.4", "4.3.0", "rocksdb", False),
        ("4.0.1", "4.0.5", "rocksdb", False),
        ("4.0.5", "4.3.0", "hdfs", False),
    ],
)
def test_snapshots_with_ids_that_one_line_numbers_otherwise_are_told(
    written_by: str | None, version: str, provider: str, told: bool
) -> None:
    given = query(commits_version=2)
    (operator,) = given.operators
    changed = operator.model_copy(update={"provider": provider})
    given = given.model_copy(update={"operators": [changed]})

    found = findings(
        given, spark_version=version, conf={}, read=lambda _: b"", written_by=written_by
    )

    assert [each.is_obstacle for each in found] == ([False] if told else [])
