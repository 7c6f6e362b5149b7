"""What goes with Spark's own repartitioning: refusals by name, the batch that stays, the views."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from sparkpoint.savepoint.manifest import OperatorInfo, QueryInfo
from sparkpoint.state.errors import (
    MissingLibraryError,
    SparkFailedError,
    UnfaithfulError,
    UnsupportedStateError,
)
from sparkpoint.state.samebatch import keep_batch
from sparkpoint.state.spark.process import require_spark, run_spark
from sparkpoint.state.spark.raw import PartCount
from sparkpoint.state.sparkmove import (
    compared,
    refusal_by_spark,
    require_spark_to_move,
    tallies,
)
from sparkpoint.state.views import views_of
from tests.unit.state.test_compatibility import query
from tests.unit.state.writing import schema_of

_PARTITIONS = "spark.sql.shuffle.partitions"
_STRICT = "spark.sql.streaming.statefulOperator.useStrictDistribution"
_JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
_ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
_AVRO = {_STRICT: "true", _ENCODING: "avro"}
_VARIABLES = ("totals", "$ttl_totals", "$eventTimers_keyToTimestamp")


def operator(name: str | None, *, version: int = 1, store: str = "default") -> OperatorInfo:
    stores = [{"name": store, "partitions": 4, "base_versions": [1] * 4, "files": 4, "bytes": 40}]
    content = {"id": 0, "name": name, "metadata_version": version, "provider": "rocksdb"}
    return OperatorInfo.model_validate({**content, "partitions": 4, "stores": stores})


def refused(given: QueryInfo, name: str | None, *, partitions: int, keys: int = 1) -> str | None:
    schema = schema_of([(f"c{n}", "long") for n in range(keys)], [("v", "long")])
    given = given.model_copy(update={"conf": {_PARTITIONS: "4", **given.conf}})
    return refusal_by_spark(given, operator(name), partitions=partitions, read=lambda _: schema)


@pytest.mark.parametrize(
    ("name", "conf", "told"),
    [
        (None, {_STRICT: "true"}, "before 4.0"),
        ("globalLimit", {_STRICT: "true"}, "cannot repartition globalLimit"),
        ("symmetricHashJoin", {_STRICT: "true", _JOIN_FORMAT: "4"}, "join of format 4"),
        ("stateStoreSave", {}, "useStrictDistribution"),
        ("dedupe", {_STRICT: "true", _PARTITIONS: ""}, "does not say how many partitions"),
        ("dedupe", _AVRO, "encoded as avro"),
        ("symmetricHashJoin", {_STRICT: "true", _JOIN_FORMAT: "3"}, None),
        ("transformWithStateInPandasExec", {_STRICT: "true"}, None),
    ],
)
def test_what_spark_would_break_is_refused_by_name(
    name: str | None, conf: dict[str, str], told: str | None
) -> None:
    reason = refused(query(conf=conf), name, partitions=5)

    assert (reason is None) == (told is None)
    assert told is None or told in (reason or "")


@pytest.mark.parametrize(
    ("partitions", "keys", "possible"), [(5, 0, False), (7, 0, True), (5, 1, True)]
)
def test_an_aggregation_without_columns_moves_only_where_spark_looks_for_it(
    partitions: int, keys: int, possible: bool
) -> None:
    given = query(conf={_STRICT: "true"})

    reason = refused(given, "stateStoreSave", partitions=partitions, keys=keys)

    assert (reason is None) == possible
    assert possible or "1, 2, 3, 6, 7, 14, 21, 42" in (reason or "")


def test_a_commit_log_that_spark_cannot_rewrite_is_refused() -> None:
    given = query(conf={_STRICT: "true"}, commits_version=3)

    assert "version 3" in (refused(given, "dedupe", partitions=5) or "")


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def offsets(partitions: int) -> str:
    conf = {"spark.sql.shuffle.partitions": str(partitions), "other": "1"}
    return f"v1\n{json.dumps({'batchWatermarkMs': 0, 'conf': conf})}\n{{}}"


def test_the_batch_that_repartitioning_adds_is_undone_and_its_state_stays(tmp_path: Path) -> None:
    for batch, partitions in ((3, 4), (4, 4), (5, 2)):
        put(tmp_path, f"offsets/{batch}", offsets(partitions))
        put(tmp_path, f"offsets/.{batch}.crc", "x")
        put(tmp_path, f"commits/{batch}", f"v2\nids of {batch}")
    put(tmp_path, "state/0/_metadata/v2/0", "old")
    put(tmp_path, "state/0/_metadata/v2/5", "new")
    stores = {"numPartitions": 4, "storeName": "default"}
    content = {"operatorInfo": {}, "stateStoreInfo": [stores]}
    put(tmp_path, "state/1/_metadata/metadata", f"v1\n{json.dumps(content)}")
    for name in ("4.zip", "5.changelog", "6.zip", "6_a-b.zip", "6.changelog", "SSTs/1.sst"):
        put(tmp_path, f"state/0/0/{name}", name)
    put(tmp_path, "state/0/2/4.zip", "of a partition that is no more")
    put(tmp_path, "state/1/0/left-keyToNumValues/6.zip", "join")

    keep_batch(tmp_path, batch=4, partitions=2)

    assert sorted(p.name for p in (tmp_path / "offsets").iterdir()) == ["3", "4"]
    for batch in (3, 4):
        line = json.loads((tmp_path / f"offsets/{batch}").read_text().splitlines()[1])
        assert line["conf"] == {"spark.sql.shuffle.partitions": "2", "other": "1"}
    assert (tmp_path / "commits/4").read_text() == "v2\nids of 5"
    assert not (tmp_path / "commits/5").exists()
    assert (tmp_path / "state/0/_metadata/v2/0").read_text() == "new"
    assert not (tmp_path / "state/0/_metadata/v2/5").exists()
    metadata = json.loads((tmp_path / "state/1/_metadata/metadata").read_text().splitlines()[1])
    assert metadata["stateStoreInfo"][0]["numPartitions"] == 2
    left = {p.name: p.read_text() for p in (tmp_path / "state/0/0").iterdir() if p.is_file()}
    assert left == {"5.zip": "6.zip", "5_a-b.zip": "6_a-b.zip"}
    assert (tmp_path / "state/0/0/SSTs/1.sst").exists()
    assert not (tmp_path / "state/0/2").exists()
    assert (tmp_path / "state/1/0/left-keyToNumValues/5.zip").read_text() == "join"


def count(partition: int, rows: int, *, digest: int = 1, family: str = "default") -> PartCount:
    return PartCount(
        operator=0,
        store="default",
        family=family,
        partition=partition,
        rows=rows,
        bytes=rows,
        digest=f"{digest:032x}",
        misplaced=0,
    )


def test_rows_must_be_as_many_and_the_same_whatever_their_partitions() -> None:
    before = tallies([count(0, 3, digest=5), count(1, 2, digest=7)], 2)
    names: dict[int, str | None] = {0: "dedupe"}

    (moved,) = compared(before, tallies([count(2, 5, digest=12)], 3), names=names)

    assert [part.rows for part in moved.after.partitions] == [0, 0, 5]
    for wrong in ([count(0, 5, digest=13)], [count(0, 4, digest=12)], []):
        with pytest.raises(UnfaithfulError, match="store default of operator 0 had 5 rows"):
            compared(before, tallies(wrong, 3), names=names)


def metadata(variables: tuple[str, ...]) -> tuple[bytes, str]:
    listed = [{"stateName": name} for name in variables]
    content = {"operatorPropertiesJson": json.dumps({"stateVariables": listed})}
    return f"v2\n{json.dumps(content)}".encode(), "metadata"


@pytest.mark.parametrize(
    ("given", "conf", "names", "options"),
    [
        (operator("dedupe"), {}, ["default"], {"storeName": "default"}),
        (
            operator("transformWithStateInPandasExec", version=2),
            {},
            ["totals", "timers"],
            {"stateVarName": "totals"},
        ),
        (
            operator("symmetricHashJoin", store="left-keyToNumValues"),
            {},
            ["left-keyToNumValues"],
            {"storeName": "left-keyToNumValues"},
        ),
        (
            operator("symmetricHashJoin", version=2),
            {_JOIN_FORMAT: "3"},
            [
                *("left-keyToNumValues", "left-keyWithIndexToValue"),
                *("right-keyToNumValues", "right-keyWithIndexToValue"),
            ],
            {"stateVarName": "left-keyToNumValues"},
        ),
    ],
)
def test_stores_variables_and_sides_are_looked_at_by_themselves(
    given: OperatorInfo, conf: dict[str, str], names: list[str], options: dict[str, str]
) -> None:
    found = views_of(given, conf, lambda: metadata(_VARIABLES))

    assert [view.name for view in found] == names
    assert found[0].options == {"operatorId": "0", **options}


@pytest.mark.parametrize(("version", "does"), [("4.1.9", False), ("4.2.0", True), ("5.0", True)])
def test_a_spark_without_a_repartitioning_of_its_own_is_refused_before_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, version: str, does: bool
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: version)

    with nullcontext() if does else pytest.raises(UnsupportedStateError, match=r"from 4\.2 on"):
        require_spark_to_move()


def test_a_process_without_spark_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(MissingLibraryError, match=r"sparkpoint\[spark\]"):
        require_spark("this")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import sys; print('no java here'); sys.exit(3)", "exit code 3 .* no java here"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "by SIGKILL"),
        ("pass", "exit code 0"),
    ],
)
def test_a_process_that_ends_without_an_answer_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, told: str
) -> None:
    (tmp_path / "doomed.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    with pytest.raises(SparkFailedError, match=told):
        run_spark("doomed", "{}", tmp_path)


def test_the_answer_of_a_process_is_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying = "import sys, shutil; shutil.copy(sys.argv[1], sys.argv[2])"
    (tmp_path / "echoing.py").write_text(copying)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    assert run_spark("echoing", '{"a": 1}', tmp_path) == '{"a": 1}'
