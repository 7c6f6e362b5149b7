"""A condition that names one key: its bytes are those of Spark, and all else is looked at whole."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sparkpoint.checkpoint.plan import plan_batch
from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint
from sparkpoint.state import hdfsrows, lookup, query
from sparkpoint.state.errors import BadQueryError
from sparkpoint.state.lookup import key_of_condition
from sparkpoint.state.query import QueryRequest, query_state
from sparkpoint.state.querystate import placed_stores
from sparkpoint.state.records import Files, Record, StoreVersion, read_store
from sparkpoint.state.types import Atom, Column, StoreSchema
from sparkpoint.state.unsafe import decode_row
from sparkpoint.storage import DirectoryStore
from tests.unit.state.test_savepoints import Setting, here, made
from tests.unit.state.writing import HandMade, Row, StoreOf, pack_row

__all__ = ["here"]

_KEY = (Column("k", Atom("string")), Column("n", Atom("long")))
_SMALL = (Column("b", Atom("byte")), Column("i", Atom("integer")))


@pytest.mark.parametrize(
    ("condition", "columns", "values"),
    [
        ("key.k = 'a' AND key.n = 7", _KEY, ("a", 7)),
        (" key.n=-7\nand key.k='it''s' ", _KEY, ("it's", -7)),
        ("key.\"k\" = 'ß日' AND key.n = 0", _KEY, ("ß日", 0)),
        ("key.k = '' and key.n = 1", _KEY, ("", 1)),
        ("key.k = 'a'", _KEY, None),
        ("key.k = 'a' OR key.n = 7", _KEY, None),
        ("key.k = 'a' AND key.n = 7 OR true", _KEY, None),
        ("key.k = 'a' AND key.n = 7 AND value.count > 1", _KEY, None),
        ("NOT key.k = 'a' AND key.n = 7", _KEY, None),
        ("key.k = 'a' AND key.n = 7 AND key.n = 8", _KEY, None),
        ("key.k = 'a' AND key.n = 7.5", _KEY, None),
        ("key.k = 'a' AND key.n = 7 + 1", _KEY, None),
        ("key.k = 'a' AND key.n = '7'", _KEY, None),
        ("key.k = 7 AND key.n = 7", _KEY, None),
        ("key.K = 'a' AND key.n = 7", _KEY, None),
        ("key.k = 'a' || 'b' AND key.n = 7", _KEY, None),
        ("key.k = 'a' COLLATE NOCASE AND key.n = 7", _KEY, None),
        ("", _KEY, None),
    ],
)
def test_only_a_condition_that_says_one_key_is_taken_for_one(
    condition: str, columns: Sequence[Column], values: tuple[str, int] | None
) -> None:
    found = key_of_condition(condition, columns)

    fields = (("k", "string"), ("n", "long"))
    assert found == (None if values is None else pack_row(values, fields))


def test_numbers_are_as_wide_as_their_columns() -> None:
    found = key_of_condition("key.b = -1 AND key.i = -2", _SMALL)

    assert found == bytes(8) + b"\xff" + bytes(7) + b"\xfe\xff\xff\xff" + bytes(4)
    assert key_of_condition("key.b = 200 AND key.i = 1", _SMALL) is None


@pytest.mark.parametrize("case", ["within", "pandas"])
def test_keys_that_spark_wrote_are_found_by_what_they_print_as(golden: Path, case: str) -> None:
    files = DirectoryStore(golden / case)
    plan = plan_batch(files)
    (operator,) = plan.operators
    (store,) = placed_stores(operator, version=plan.batch + 1, read=files.read)
    columns = store.schema.key

    found = 0
    for key, _ in (row for part in store.partitions for row in read_store(files, part)):
        values = decode_row(key, columns)
        if None not in values:
            said = [f"key.{c.name} = {v!r}" for c, v in zip(columns, values, strict=True)]
            assert key_of_condition(" AND ".join(said), columns) == key
            found += 1
    assert found > 5


def _asked(repository: Repository, savepoint: Savepoint, where: str) -> list[dict[str, object]]:
    with query_state(repository, savepoint, QueryRequest(where=where)) as found:
        return [dict(row) for row in found.rows()]


def test_a_lookup_reads_the_partition_of_its_key_and_says_what_the_whole_would(
    here: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(here.folder / "ck")
    savepoint = here.captured()
    conditions = [f"key.k = 'key{n}' AND key.n = {n}" for n in range(0, 62, 5)]
    looked_up = [_asked(here.repository, savepoint, each) for each in conditions]
    monkeypatch.setattr(query, "key_of_condition", lambda *_: None)

    assert looked_up == [_asked(here.repository, savepoint, each) for each in conditions]
    assert {len(rows) for rows in looked_up} == {0, 1}


def _looked_up_and_searched(
    here: Setting, monkeypatch: pytest.MonkeyPatch, conditions: Sequence[str]
) -> tuple[list[list[dict[str, object]]], list[list[dict[str, object]]]]:
    savepoint = here.captured()
    looked_up = [_asked(here.repository, savepoint, each) for each in conditions]
    monkeypatch.setattr(query, "key_of_condition", lambda *_: None)
    return looked_up, [_asked(here.repository, savepoint, each) for each in conditions]


def test_a_key_of_spark_3_5_that_is_called_like_the_start_of_sessions_is_found(
    here: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = (("sessionStartTime", "long"),)
    store = StoreOf(key, (("count", "long"),), [{(n,): (n,) for n in range(20)}])
    HandMade(here.folder / "ck", {"default": store}, 4, name=None).write()
    conditions = [f"key.sessionStartTime = {n}" for n in range(20)]

    looked_up, searched = _looked_up_and_searched(here, monkeypatch, conditions)

    assert looked_up == searched
    assert [len(rows) for rows in looked_up] == [1] * 20


def test_columns_that_differ_only_in_case_are_left_to_the_search(
    here: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not tell them apart, and a lookup would: one of the two answers would be wrong."""
    key = (("Id", "long"), ("id", "long"))
    rows: dict[Row, Row | None] = {(a, b): (10 * a + b,) for a in range(4) for b in range(4)}
    HandMade(here.folder / "ck", {"default": StoreOf(key, (("v", "long"),), [rows])}, 3).write()
    conditions = ["key.Id = 1 AND key.id = 2", "key.Id = 1 AND key.id = 1"]

    looked_up, searched = _looked_up_and_searched(here, monkeypatch, conditions)

    assert looked_up == searched


def test_a_condition_that_is_no_text_is_refused(here: Setting) -> None:
    made(here.folder / "ck")
    savepoint = here.captured()

    for condition in ("key.k = '\udcff' AND key.n = 1", "value.count > 1 OR key.k = '\udcff'"):
        with pytest.raises(BadQueryError, match="not text in UTF-8"):
            _asked(here.repository, savepoint, condition)


def test_state_of_another_partition_is_not_read(
    here: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(here.folder / "ck")
    savepoint = here.captured()
    whole = _asked(here.repository, savepoint, "key.n = 30")
    opened: list[str] = []

    def reading(files: Files, version: StoreVersion) -> Iterator[Record]:
        opened.append(version.folder)
        return read_store(files, version)

    monkeypatch.setattr(hdfsrows, "read_store", reading)

    assert _asked(here.repository, savepoint, "key.k = 'key30' AND key.n = 30") == whole
    assert opened == [f"state/0/{whole[0]['partition_id']}"]


def test_where_a_key_is_by_a_rule_that_is_not_known_everything_is_read(here: Setting) -> None:
    store = StoreOf((("k", "string"),), (("n", "long"),), [{("a",): (1,), ("b",): (2,)}])
    HandMade(here.folder / "ck", {"default": store}, 3, name="someFutureExec").write()
    source = DirectoryStore(here.folder / "ck")
    savepoint = here.repository.capture(source, CaptureRequest(job="j", name="s")).savepoint
    (told,) = savepoint.manifest.queries
    (operator,) = told.operators
    key = key_of_condition("key.k = 'b'", (Column("k", Atom("string")),))
    assert key is not None

    (row,) = _asked(here.repository, savepoint, "key.k = 'b'")

    assert row["value"] == {"n": 2}
    schema = StoreSchema((Column("k", Atom("string")),), (Column("n", Atom("long")),))
    rule = lookup.partition_of_key(key, told, operator, store="default", schema=schema)
    assert rule is None
