"""State in other partitions: the same rows, each where Spark will look for it."""

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.checkpoint.model import Operator, StateStore
from sparkpoint.checkpoint.operators import parse_operator
from sparkpoint.checkpoint.plan import plan_batch
from sparkpoint.state.errors import MisplacedStateError, UnsupportedStateError
from sparkpoint.state.placement import placement_of
from sparkpoint.state.querystate import placed_stores
from sparkpoint.state.records import Record, read_store
from sparkpoint.state.repartition import repartition_query
from sparkpoint.state.types import Atom, Column, StoreSchema
from sparkpoint.storage import DirectoryStore
from tests.unit.state.test_reading import _CASES as CASES
from tests.unit.state.writing import (
    Fields,
    HandMade,
    Row,
    StoreOf,
    file_of,
    pack_row,
    partition_of,
)

_KEY = (("k", "string"), ("n", "long"))
_VALUE = (("count", "long"),)
_JOIN = {
    "left-keyToNumValues": (_KEY, 2),
    "left-keyWithIndexToValue": ((*_KEY, ("index", "long")), 2),
    "right-keyToNumValues": (_KEY, 2),
    "right-keyWithIndexToValue": ((*_KEY, ("index", "long")), 2),
}

Placed = dict[str, list[Counter[Record]]]


def placed(root: Path) -> Placed:
    """`operator/store` -> the rows of each partition."""
    files = DirectoryStore(root)
    plan = plan_batch(files)
    return {
        f"{operator.id}/{store.name}": [Counter(read_store(files, p)) for p in store.partitions]
        for operator in plan.operators
        for store in placed_stores(operator, version=plan.batch + 1, read=files.read)
    }


def together(rows: Placed) -> dict[str, Counter[Record]]:
    return {name: sum(parts, Counter()) for name, parts in rows.items()}


@pytest.mark.parametrize(
    ("case", "partitions"), [*((case, n) for case in CASES for n in (1, 2, 7)), ("join-2", 200)]
)
def test_state_of_every_operator_of_real_spark_moves_and_comes_back(
    golden: Path, tmp_path: Path, case: str, partitions: int
) -> None:
    root = tmp_path / case
    shutil.copytree(golden / case, root)
    before = placed(root)

    moved = repartition_query(root, partitions=partitions)

    after = placed(root)
    plan = plan_batch(DirectoryStore(root))
    assert together(after) == together(before)
    assert plan.offsets.conf["spark.sql.shuffle.partitions"] == str(partitions)
    expected = 1 if case in ("global", "limit") else partitions
    assert {len(parts) for parts in after.values()} == {expected}
    assert [m.before.digest for m in moved] == [m.after.digest for m in moved]
    for operator in plan.operators:
        path = f"state/{operator.id}/_metadata/metadata"
        metadata = parse_operator((root / path).read_bytes(), path)
        assert {store.partitions for store in metadata.stores} == {partitions}

    repartition_query(root, partitions=3)

    assert placed(root) == before


_KEYS = st.tuples(st.text(max_size=5) | st.none(), st.integers(-3, 3) | st.none())
_CHANGES = st.lists(
    st.dictionaries(_KEYS, st.tuples(st.integers(-9, 9)) | st.none(), max_size=8),
    min_size=1,
    max_size=4,
)


@given(_CHANGES, st.integers(1, 9), st.integers(1, 9), st.booleans())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_state_is_the_same_in_any_number_of_partitions_and_back(
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[Mapping[Row, Row | None]],
    was: int,
    wanted: int,
    snapshot: bool,
) -> None:
    store = StoreOf(_KEY, _VALUE, changes)
    made = HandMade(
        tmp_path_factory.mktemp("made"), {"default": store}, was, snapshots=[2] if snapshot else []
    )
    root = made.write()
    before = placed(root)

    repartition_query(root, partitions=wanted)

    expected: list[Counter[Record]] = [Counter() for _ in range(wanted)]
    for key, value in made.rows().items():
        row = (pack_row(key, _KEY), pack_row(value, _VALUE))
        expected[partition_of(key, _KEY, wanted)][row] += 1
    assert placed(root) == {"0/default": expected}

    repartition_query(root, partitions=was)

    assert placed(root) == before


@given(st.lists(st.tuples(_KEYS, st.integers(0, 4)), max_size=12), st.integers(1, 6))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_joins_stores_move_together_by_the_join_key_alone(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[tuple[str | None, int | None], int]],
    wanted: int,
) -> None:
    stores = {
        name: StoreOf(key, _VALUE, [{(*k, i)[: len(key)]: (1,) for k, i in rows}], hashed)
        for name, (key, hashed) in _JOIN.items()
    }
    conf = {"spark.sql.streaming.join.stateFormatVersion": "2"}
    folder = tmp_path_factory.mktemp("made")
    made = HandMade(folder, stores, 3, name="symmetricHashJoin", conf=conf)
    root = made.write()

    repartition_query(root, partitions=wanted)

    for name, (key, _) in _JOIN.items():
        for number, part in enumerate(placed(root)[f"0/{name}"]):
            keys = [row for row in made.rows(name) if pack_row(row, key) in {k for k, _ in part}]
            assert all(partition_of(row[:2], _KEY, wanted) == number for row in keys)
            assert len(keys) == len(part)


def _made(root: Path, **changes: object) -> Path:
    rows: dict[Row, Row | None] = {(f"key{n}", n): (n,) for n in range(40)}
    stores = {"default": StoreOf(_KEY, _VALUE, [rows])}
    return HandMade(root, **{"stores": stores, "partitions": 4, **changes}).write()  # type: ignore[arg-type]


def test_rows_that_are_placed_by_another_rule_are_refused(tmp_path: Path) -> None:
    root = _made(tmp_path, place=lambda key, fields, partitions: len(str(key)) % partitions)

    with pytest.raises(MisplacedStateError, match="holds a key that belongs to partition"):
        repartition_query(root, partitions=2)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"name": "transformWithStateExec"}, "transformWithStateExec"),
        ({"conf": {"spark.sql.streaming.stateStore.compression.codec": "snappy"}}, "snappy"),
        ({"conf": {"spark.sql.streaming.stateStore.rowChecksum.enabled": "true"}}, "checksums"),
        ({"conf": {"spark.sql.streaming.stateStore.encodingFormat": "avro"}}, "avro"),
        (
            {
                "name": "symmetricHashJoin",
                "conf": {"spark.sql.streaming.join.stateFormatVersion": "4"},
            },
            "is 4",
        ),
        ({"name": "symmetricHashJoin"}, "join.stateFormatVersion is 1"),
        (
            {"conf": {"spark.sql.streaming.statefulOperator.useStrictDistribution": "false"}},
            "useStrictDistribution",
        ),
    ],
)
def test_what_cannot_be_repartitioned_is_named(
    tmp_path: Path, change: Mapping[str, object], named: str
) -> None:
    root = _made(tmp_path, **change)

    with pytest.raises(UnsupportedStateError, match=named):
        repartition_query(root, partitions=2)


_START, _WINDOW = ("sessionStartTime", "timestamp"), ("session_window", "window")
_NAMED_SO = ("sessionStartTime", "string")


@pytest.mark.parametrize(
    ("key", "value", "hashed"),
    [
        ((*_KEY, _START), (_WINDOW, *_KEY, ("count", "long")), 2),
        # The script may call the window otherwise, and a column as Spark calls the start.
        ((*_KEY, _START), (("w", "window"), *_KEY, ("count", "long")), 2),
        ((_NAMED_SO, _START), (_WINDOW, _NAMED_SO, ("count", "long")), 1),
        # A grouping by a column that happens to have the name of a session's start.
        ((*_KEY, _START), _VALUE, 3),
        ((*_KEY, _START), (_WINDOW, *_KEY, _START, ("count", "long")), 3),
        ((*_KEY, _START), (*_KEY, ("count", "long")), 3),
        ((*_KEY, ("sessionStartTime", "long")), (_WINDOW, *_KEY), 3),
        # Spark has no sessions of nobody.
        ((_START,), _VALUE, 1),
        ((_START,), (_WINDOW, ("count", "long")), 1),
    ],
)
@pytest.mark.parametrize("was", [1, 3])
def test_operators_of_spark_3_5_are_told_by_their_stores(
    tmp_path: Path, key: Fields, value: Fields, hashed: int, was: int
) -> None:
    """Out of one partition every rule seems to be right: nothing would be found misplaced."""

    def row(n: int, fields: Fields) -> Row:
        return tuple(f"k{n % 5}" if kind == "string" else n for _, kind in fields)

    rows: dict[Row, Row | None] = {row(n, key): row(n, value) for n in range(30)}
    store = StoreOf(key, value, [rows], hashed=hashed)
    root = HandMade(tmp_path, {"default": store}, was, name=None).write()

    repartition_query(root, partitions=5)

    expected: list[Counter[Record]] = [Counter() for _ in range(5)]
    for found, held in rows.items():
        assert held is not None
        record = (pack_row(found, key), pack_row(held, value))
        expected[partition_of(found[:hashed], key[:hashed], 5)][record] += 1
    assert placed(root)["0/default"] == expected


@pytest.mark.parametrize(
    ("key", "value", "hashed"),
    [
        (Column("key", Atom("void")), Column("value", Atom("long")), 0),
        (Column("key", Atom("void")), Column("__dummy__", Atom("void")), 1),
        (Column("k", Atom("void")), Column("value", Atom("long")), 1),
    ],
)
def test_a_limit_of_spark_3_5_is_told_by_its_columns(
    key: Column, value: Column, hashed: int
) -> None:
    store = StateStore("default", 1, (0,), 1, 1)
    operator = Operator(0, None, None, "hdfs", 1, (store,))

    placement = placement_of(operator, "default", StoreSchema((key,), (value,)))

    assert len(placement.columns) == hashed


def test_a_key_that_is_shorter_than_its_schema_is_damage(tmp_path: Path) -> None:
    root = _made(tmp_path, partitions=1)
    (root / "state/0/0/1.delta").write_bytes(file_of([(b"\0" * 8, b"")]))

    with pytest.raises(DamagedError, match="does not fit its schema"):
        repartition_query(root, partitions=2)


def test_nothing_that_spark_does_not_know_is_left_in_the_copy(golden: Path, tmp_path: Path) -> None:
    root = tmp_path / "ck"
    shutil.copytree(golden / "chained", root)

    repartition_query(root, partitions=2)

    left = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    data = {path for path in left if path.endswith((".delta", ".snapshot"))}
    version = plan_batch(DirectoryStore(root)).batch + 1
    assert data == {f"state/{o}/{p}/{version}.snapshot" for o in (0, 1) for p in (0, 1)}
    assert not any(path.name.startswith(".") for path in root.rglob("*"))
