"""Looking into the state of savepoints: rows, conditions and SQL, and what differs between two."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet
import pytest

from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint
from sparkpoint.state import buckets, repartition, swift
from sparkpoint.state.buckets import Difference, Totals, differences
from sparkpoint.state.changefile import ChangeFile
from sparkpoint.state.diff import Change, DiffRequest, StoreDiff, diff_state
from sparkpoint.state.errors import (
    AmbiguousStateError,
    BadQueryError,
    MissingLibraryError,
    NoSuchStateError,
    UnsupportedStateError,
    WorkFolderError,
)
from sparkpoint.state.hdfsrows import HdfsStore
from sparkpoint.state.query import QueryRequest, query_state
from sparkpoint.state.selection import Selection
from sparkpoint.state.types import distinct
from sparkpoint.storage import DirectoryStore
from tests.unit.state.test_savepoints import Setting, here, made
from tests.unit.state.writing import HandMade, Row, StoreOf

__all__ = ["here"]

_KEY = (("k", "string"), ("n", "long"))
_VALUE = (("count", "long"),)


@pytest.fixture
def nightly(here: Setting) -> tuple[Setting, Savepoint, HandMade]:
    query = made(here.folder / "ck")
    return here, here.captured(), query


def rows_of(repository: Repository, savepoint: Savepoint, **asked: Any) -> list[Mapping[str, Any]]:
    selection = Selection(**{n: asked.pop(n) for n in ("query", "operator", "store") if n in asked})
    with query_state(repository, savepoint, QueryRequest(selection=selection, **asked)) as found:
        return list(found.rows())


def test_all_rows_are_those_that_the_checkpoint_holds(
    nightly: tuple[Setting, Savepoint, HandMade],
) -> None:
    here, savepoint, query = nightly

    rows = rows_of(here.repository, savepoint)

    found = {(r["key"]["k"], r["key"]["n"]): (r["value"]["count"],) for r in rows}
    assert found == query.rows()
    assert len(rows) == 47
    assert {r["partition_id"] for r in rows} == {0, 1, 2, 3}


@pytest.mark.parametrize("where", [None, "value.sum >= 0", "key.k = 'a' AND key.k_1 = 1"])
def test_columns_of_one_name_are_all_shown(here: Setting, where: str | None) -> None:
    """Spark calls what it keeps of two sums `sum`, and two columns of a key as they are called."""
    key, value = (("k", "string"), ("k", "long")), (("sum", "long"), ("sum", "long"), ("n", "long"))
    stores = {"default": StoreOf(key, value, [{("a", 1): (5, 6, 7)}])}
    HandMade(here.folder / "ck", stores, 2, snapshots=(1,)).write()

    (row,) = rows_of(here.repository, here.captured(), where=where)

    assert row["key"] == {"k": "a", "k_1": 1}
    assert row["value"] == {"sum": 5, "sum_1": 6, "n": 7}


def test_sql_tells_columns_of_one_name_apart(here: Setting) -> None:
    stores = {"default": StoreOf((("k", "long"),), (("sum", "long"),) * 2, [{(1,): (5, 6)}])}
    HandMade(here.folder / "ck", stores, 2, snapshots=(1,)).write()

    (row,) = rows_of(here.repository, here.captured(), sql="SELECT value.* FROM state")

    assert row == {"sum": 5, "sum_1": 6}


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["sum", "count"], ["sum", "count"]),
        (["sum", "sum", "sum"], ["sum", "sum_1", "sum_2"]),
        (["Id", "id"], ["Id", "id_1"]),
        (["sum", "sum", "sum_1"], ["sum", "sum_2", "sum_1"]),
    ],
)
def test_a_name_that_occurs_again_gets_a_number_that_nobody_has(
    names: list[str], shown: list[str]
) -> None:
    assert distinct(names) == shown


def test_rows_can_be_listed_without_any_library(
    nightly: tuple[Setting, Savepoint, HandMade], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, savepoint, _ = nightly
    monkeypatch.setattr(swift, "library", lambda name: None)

    assert len(rows_of(here.repository, savepoint, limit=5)) == 5
    with pytest.raises(MissingLibraryError, match=r"sparkpoint\[query\]"):
        rows_of(here.repository, savepoint, where="key.n = 3")


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("key.k = 'key3'", {3}),
        ("value.count < 0", {3, 6, 9, 12, 15, 18}),
        ("key.n BETWEEN 30 AND 32 AND partition_id >= 0", {30, 31, 32}),
        ("key.n > 1000", set()),
    ],
)
def test_a_condition_chooses_rows(
    nightly: tuple[Setting, Savepoint, HandMade], condition: str, keys: set[int]
) -> None:
    here, savepoint, _ = nightly

    rows = rows_of(here.repository, savepoint, where=condition)

    assert {row["key"]["n"] for row in rows} == keys


def test_sql_answers_with_columns_of_its_own(
    nightly: tuple[Setting, Savepoint, HandMade],
) -> None:
    here, savepoint, query = nightly
    sql = "SELECT count(*) AS n, sum(value.count) AS total FROM state"

    (row,) = rows_of(here.repository, savepoint, sql=sql)

    assert row == {"n": 47, "total": str(sum(v[0] for v in query.rows().values()))}  # type: ignore[misc]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM state WHERE value.count <= (SELECT max(value.count) FROM State)",
        'SELECT count(*) AS n FROM state a JOIN "state" b ON a.key = b.key',
        "WITH rows AS (FROM state) SELECT count(*) AS n FROM rows a JOIN rows b USING (key)",
        "SELECT count(*) // 2 AS n FROM (FROM state UNION ALL FROM state)",
        "SELECT count(*) AS n FROM state JOIN query_table('state') USING (key)",
        "SELECT count(*) AS n FROM state, (SELECT 1 FROM histogram('state', partition_id) LIMIT 1)",
        "SELECT count(*) AS n FROM query('FROM state UNION FROM state')",
    ],
)
def test_sql_may_go_through_the_rows_several_times(
    nightly: tuple[Setting, Savepoint, HandMade], sql: str
) -> None:
    here, savepoint, _ = nightly

    assert rows_of(here.repository, savepoint, sql=sql) == [{"n": 47}]


@pytest.mark.parametrize(
    "asked",
    [
        {"where": "key.state = 'CA'"},
        {"where": "key.state >= 'B' AND value.state = 'open'"},
        {"where": "state.key.state = 'CA'"},
        {"where": "value.state <> 'state' -- state, with nothing from a table"},
        {"sql": "SELECT state.key, state.value FROM state"},
        {"sql": "SELECT key, value FROM state, unnest([1]) QUALIFY count(*) OVER () = 1"},
    ],
)
def test_rows_that_are_gone_through_once_need_no_room(
    here: Setting, monkeypatch: pytest.MonkeyPatch, asked: Mapping[str, str]
) -> None:
    rows: dict[Row, Row | None] = {("CA",): ("open",)}
    key, value = (("state", "string"),), (("state", "string"),)
    HandMade(here.folder / "ck", {"default": StoreOf(key, value, [rows])}, 1).write()
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    monkeypatch.setattr("sparkpoint.state.query._kept", lambda *_: pytest.fail("they are kept"))

    (row,) = rows_of(here.repository, here.captured(), **asked)

    assert (row["key"], row["value"]) == ({"state": "CA"}, {"state": "open"})


def test_only_the_store_that_is_asked_for_needs_room(
    here: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = StoreOf(_KEY, _VALUE, [{("a", 1): (1,)}])
    large = StoreOf(_KEY, _VALUE, [{(f"key{n}", n): (n,) for n in range(5000)}])
    HandMade(here.folder / "ck", {"small": small, "large": large}).write()
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10_000))
    twice, savepoint = "FROM state WHERE key IN (SELECT key FROM state)", here.captured()

    assert len(rows_of(here.repository, savepoint, store="small", sql=twice)) == 1
    with pytest.raises(WorkFolderError, match="MiB free"):
        rows_of(here.repository, savepoint, store="large", sql=twice)


def test_sql_may_answer_with_any_type(nightly: tuple[Setting, Savepoint, HandMade]) -> None:
    here, savepoint, _ = nightly

    rows = rows_of(here.repository, savepoint, sql="SELECT union_value(a := 1) AS x FROM state")

    assert rows == [{"x": 1}] * 47


@pytest.mark.parametrize("asked", [{}, {"where": "true"}, {"sql": "SELECT key, value FROM state"}])
def test_times_beyond_the_years_of_python_are_told_by_their_numbers(
    here: Setting, asked: Mapping[str, str]
) -> None:
    """Such as milliseconds that were cast to a timestamp as if they were seconds."""
    far = 1_735_689_600_000 * 1_000_000
    key, value = (("at", "timestamp"),), (("day", "date"), ("n", "long"))
    rows: dict[Row, Row | None] = {(far,): (2**30, 1), (0,): (0, 2)}
    HandMade(here.folder / "ck", {"default": StoreOf(key, value, [rows])}, 1).write()

    found = rows_of(here.repository, here.captured(), **asked)

    assert {row["key"]["at"]: row["value"]["day"] for row in found} == {
        far: 2**30,
        "1970-01-01T00:00:00Z": "1970-01-01",
    }


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"where": "key.nobody = 1"}, "nobody"),
        ({"where": "key.k ="}, "cannot be answered"),
        ({"where": " "}, "is empty"),
        ({"sql": ""}, "is empty"),
        ({"sql": "SELECT * FROM elsewhere"}, "elsewhere"),
        ({"sql": "CREATE TABLE x (a int)"}, "begin it with SELECT"),
        ({"sql": "SELECT 1", "where": "true"}, "one of the two"),
    ],
)
def test_what_is_no_question_is_told(
    nightly: tuple[Setting, Savepoint, HandMade], asked: Mapping[str, str], told: str
) -> None:
    here, savepoint, _ = nightly

    with pytest.raises(BadQueryError, match=told):
        rows_of(here.repository, savepoint, **asked)


def test_which_state_is_meant_must_be_clear(here: Setting) -> None:
    store = StoreOf(_KEY, _VALUE, [{("a", 1): (1,)}])
    names = ("left-keyToNumValues", "right-keyToNumValues")
    HandMade(here.folder / "ck/one", dict.fromkeys(names, store)).write()
    HandMade(here.folder / "ck/two", {"default": store}).write()
    savepoint = here.captured()

    with pytest.raises(AmbiguousStateError, match="--query") as several:
        rows_of(here.repository, savepoint)
    assert several.value.candidates == ("one", "two")
    with pytest.raises(AmbiguousStateError, match="--store"):
        rows_of(here.repository, savepoint, query="one")
    with pytest.raises(NoSuchStateError, match="has no query 'three'"):
        rows_of(here.repository, savepoint, query="three")
    with pytest.raises(NoSuchStateError, match="no stateful operator 5"):
        rows_of(here.repository, savepoint, query="one", operator=5)
    with pytest.raises(NoSuchStateError, match="has no store 'middle'"):
        rows_of(here.repository, savepoint, query="one", store="middle")
    assert len(rows_of(here.repository, savepoint, query="one", store=names[1])) == 1


def compared(
    here: Setting, before: Savepoint, after: Savepoint, **asked: Any
) -> tuple[list[StoreDiff], list[Change]]:
    taken: list[Change] = []
    found = diff_state(here.repository, before, after, DiffRequest(**asked), take=taken.append)
    return found, taken


def _next(here: Setting, query: HandMade, changes: Mapping[Row, Row | None]) -> Savepoint:
    store = query.stores["default"]
    after = StoreOf(store.key, store.value, [*store.changes, changes])
    HandMade(here.folder / "later", {"default": after}, query.partitions).write()
    source = DirectoryStore(here.folder / "later")
    return here.repository.capture(source, CaptureRequest(job="visits", name="later")).savepoint


def test_a_diff_tells_every_key_that_was_added_removed_or_changed(
    nightly: tuple[Setting, Savepoint, HandMade],
) -> None:
    here, savepoint, query = nightly
    changes: Mapping[Row, Row | None] = {
        ("new", 1): (5,),
        ("key30", 30): (0,),
        ("key31", 31): (31,),
        ("key40", 40): None,
    }
    later = _next(here, query, changes)

    (store,), taken = compared(here, savepoint, later)

    assert store.totals == Totals(added=1, removed=1, changed=1, same=45)
    told = {change.kind: change for change in taken}
    assert told["added"].key == {"k": "new", "n": 1}
    assert (told["added"].before, told["added"].after) == (None, {"count": 5})
    assert (told["changed"].before, told["changed"].after) == ({"count": 30}, {"count": 0})
    assert told["removed"].key == {"k": "key40", "n": 40}
    assert sorted(store.samples, key=lambda each: each.kind) == sorted(
        taken, key=lambda each: each.kind
    )


def test_partitions_make_no_difference(nightly: tuple[Setting, Savepoint, HandMade]) -> None:
    here, savepoint, _ = nightly
    child = repartition(here.repository, savepoint, here.asked(7)).savepoint

    (store,), taken = compared(here, savepoint, child)

    assert (store.totals, taken) == (Totals(same=47), [])


def test_a_store_that_only_one_of_them_has_is_all_new(
    nightly: tuple[Setting, Savepoint, HandMade],
) -> None:
    here, savepoint, _ = nightly
    store = StoreOf(_KEY, _VALUE, [{("a", 1): (1,)}])
    HandMade(here.folder / "other/more", {"default": store}).write()
    source = DirectoryStore(here.folder / "other")
    other = here.repository.capture(source, CaptureRequest(job="visits", name="other")).savepoint

    found, taken = compared(here, savepoint, other, samples=2)

    assert [(s.query, s.missing) for s in found] == [("", "after"), ("more", "before")]
    assert [s.totals for s in found] == [Totals(removed=47), Totals(added=1)]
    assert [len(s.samples) for s in found] == [2, 1]
    assert len(taken) == 48


def test_another_operator_under_the_same_number_is_not_compared_with_it(here: Setting) -> None:
    def of(folder: str, name: str | None) -> Savepoint:
        stores = {"default": StoreOf(_KEY, _VALUE, [{("a", 1): (1,)}])}
        HandMade(here.folder / folder, stores, name=name).write()
        source = DirectoryStore(here.folder / folder)
        return here.repository.capture(source, CaptureRequest(job="j", name=folder)).savepoint

    saved, dedupe, unnamed = of("a", "stateStoreSave"), of("b", "dedupe"), of("c", None)
    real_time = of("d", "StatefulStreamlineAggregate")

    found, taken = compared(here, saved, dedupe)
    (same,), _ = compared(here, saved, unnamed)
    (turned,), _ = compared(here, saved, real_time)

    told = [(each.operator_name, each.missing, each.totals) for each in found]
    assert told == [
        ("stateStoreSave", "after", Totals(removed=1)),
        ("dedupe", "before", Totals(added=1)),
    ]
    assert [change.kind for change in taken] == ["removed", "added"]
    # Spark 3.5 has no names of operators.
    assert (same.totals, same.missing) == (Totals(same=1), None)
    # Spark 4.3 goes on with either of them from the state of the other.
    assert (turned.totals, turned.missing) == (Totals(same=1), None)


@pytest.mark.parametrize("buckets", [1, 3])
def test_rows_of_a_join_are_the_same_whatever_their_numbers(
    here: Setting, monkeypatch: pytest.MonkeyPatch, buckets: int
) -> None:
    monkeypatch.setattr("sparkpoint.state.diff.buckets_for", lambda stored: buckets)
    key = (("k", "string"), ("index", "long"))

    def of(folder: str, *values: int) -> Savepoint:
        rows: dict[Row, Row | None] = {("a", n): (value,) for n, value in enumerate(values)}
        stores = {"left-keyWithIndexToValue": StoreOf(key, (("v", "long"),), [rows], hashed=1)}
        HandMade(here.folder / folder, stores, name="symmetricHashJoin").write()
        source = DirectoryStore(here.folder / folder)
        return here.repository.capture(source, CaptureRequest(job="j", name=folder)).savepoint

    before = of("a", 1, 2, 2, 3)
    (turned,), _ = compared(here, before, of("b", 3, 2, 1, 2), unnumbered=True)
    (other,), changes = compared(here, before, of("c", 3, 2, 1, 4), unnumbered=True)
    (numbered,), _ = compared(here, before, of("d", 3, 2, 1, 2))

    assert turned.totals == Totals(same=3)
    assert other.totals == Totals(added=1, changed=1, same=2)
    assert {change.kind: (change.key, change.before, change.after) for change in changes} == {
        "added": ({"key": {"k": "a"}, "value": {"v": 4}}, None, 1),
        "changed": ({"key": {"k": "a"}, "value": {"v": 2}}, 2, 1),
    }
    assert numbered.totals.changed == 3


@pytest.mark.parametrize("store", ["left-keyWithTsToValues", "right-tsWithKey"])
def test_rows_of_a_join_that_have_key_and_time_in_common_are_counted(
    here: Setting, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    """Joins of format 4 merge them under one key, which Spark's reader tells once for each."""
    stores = {store: StoreOf((("k", "string"), ("ts", "long")), _VALUE, [{("a", 5): (1,)}])}
    HandMade(here.folder / "ck", stores, 1, name="symmetricHashJoin").write()
    savepoint, read, times = here.captured(), HdfsStore.records, iter([2, 2, 3, 2])
    monkeypatch.setattr(HdfsStore, "records", lambda store: list(read(store)) * next(times))

    (same,), _ = compared(here, savepoint, savepoint, unnumbered=True)
    (fewer,), (change,) = compared(here, savepoint, savepoint, unnumbered=True)

    assert (same.totals, fewer.totals) == (Totals(same=1), Totals(changed=1))
    assert (change.before, change.after) == (3, 2)


def test_state_with_other_columns_is_compared_by_what_it_says(here: Setting) -> None:
    def with_value(folder: str, kind: str, count: int) -> Savepoint:
        value = (("count", kind),)
        stores = {"default": StoreOf(_KEY, value, [{("a", 1): (1,), ("b", 2): (count,)}])}
        HandMade(here.folder / folder, stores).write()
        source = DirectoryStore(here.folder / folder)
        return here.repository.capture(source, CaptureRequest(job="j", name=folder)).savepoint

    (store,), _ = compared(here, with_value("a", "integer", 2), with_value("b", "long", 3))

    assert store.totals == Totals(changed=1, same=1)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_buckets_give_the_same_answer_however_many_there_are(tmp_path: Path, count: int) -> None:
    before = [(f"k{n}".encode(), b"%d" % n) for n in range(300)]
    after = [(f"k{n}".encode(), b"%d" % (n // 2 * 2)) for n in range(100, 400)]
    totals = Totals()

    found = list(differences(before, after, totals=totals, buckets=count, folder=tmp_path / "b"))

    assert totals == Totals(added=100, removed=100, changed=100, same=100)
    assert set(found) >= {
        Difference(b"k0", b"0", None),
        Difference(b"k101", b"101", b"100"),
        Difference(b"k399", None, b"398"),
    }
    assert not list(tmp_path.rglob("*-*"))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 1), (1, 2), (0, 2)])
def test_keys_that_occur_several_times_are_refused_and_not_counted_wrongly(
    tmp_path: Path, count: int, before: int, after: int
) -> None:
    old, new = ([(b"k", b"%d" % n) for n in range(times)] for times in (before, after))

    with pytest.raises(UnsupportedStateError, match="occurs several times"):
        list(differences(old, new, totals=Totals(), buckets=count, folder=tmp_path / "b"))


def test_a_folder_that_cannot_hold_the_rows_is_told() -> None:
    rows = [(b"k", b"v")]

    with pytest.raises(WorkFolderError, match=r"^/proc/b cannot hold the rows: .*--work-dir"):
        list(differences(rows, rows, totals=Totals(), buckets=2, folder=Path("/proc/b")))


def test_large_state_goes_through_the_disk() -> None:
    assert buckets.buckets_for(1000) == 1
    assert buckets.buckets_for(1 << 30) > 100
    assert buckets.buckets_for(1 << 50) == 500
    assert buckets.room_for(1000) == 0
    assert buckets.room_for(1 << 30) > 1 << 30


def test_all_differences_are_in_the_file_or_there_is_no_file(tmp_path: Path) -> None:
    changes = [
        Change("", 0, "default", {"k": n}, None if n % 2 else {"v": n}, {"v": -n}, "added")
        for n in range(20_000)
    ]
    with ChangeFile(tmp_path / "all.parquet") as file:
        assert file.take is not None
        for change in changes:
            file.take(change)
    with pytest.raises(KeyError), ChangeFile(tmp_path / "none.parquet"):
        raise KeyError

    rows = pyarrow.parquet.read_table(tmp_path / "all.parquet").to_pylist()

    assert [json.loads(row["key"])["k"] for row in rows] == list(range(20_000))
    assert rows[1]["before"] is None
    assert json.loads(rows[2]["before"]) == {"v": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["all.parquet"]
