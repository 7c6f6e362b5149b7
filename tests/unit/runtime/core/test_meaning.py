"""What is said of state whose columns or variables have other names than they had."""

import json
import struct
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import tests.unit.checkpoint
from sparkpoint.checkpoint.plan import plan_batch
from sparkpoint.runtime.execution import LostError
from sparkpoint.runtime.families import Columns, columns_of_schemas
from sparkpoint.runtime.meaning import Names, NamesUnknownError, StateNames, changes_between
from sparkpoint.savepoint.manifest import OperatorInfo
from sparkpoint.storage import DirectoryStore
from tests.unit.state.writing import HandMade, StoreOf, schema_of

SUM: Names = {"key of operator 0": ("url",), "value of operator 0": ("count", "sum")}
VARIABLES = "state variables of operator 0"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (SUM, SUM, []),
        (SUM, {}, []),
        (
            SUM,
            {**SUM, "value of operator 0": ("count", "max")},
            ["the value of operator 0 was count, sum, and is count, max in this code"],
        ),
        (
            {"key of operator 1": ("a", "b")},
            {"key of operator 1": ("b", "a")},
            ["the key of operator 1 was a, b, and is b, a in this code"],
        ),
        ({VARIABLES: ("seen",)}, {VARIABLES: ("last", "seen")}, []),
        (
            {VARIABLES: ("seen",)},
            {VARIABLES: ("visits",)},
            [f"of the {VARIABLES}, seen is not in this code, and visits begins empty"],
        ),
        (
            {VARIABLES: ("last", "seen")},
            {VARIABLES: ("seen",)},
            [f"of the {VARIABLES}, last is not in this code"],
        ),
    ],
)
def test_other_names_are_told_and_new_ones_are_not(
    before: Names, after: Names, said: list[str]
) -> None:
    assert list(changes_between(before, after)) == said


class Code:
    """Code whose plan calls the columns of operator 0 so."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def write_schemas(self) -> None:
        pass

    def family_columns(self) -> dict[int, Columns]:
        return {0: self._columns}


def families(name: str | None, **changes: object) -> OperatorInfo:
    content = {"id": 0, "name": name, "metadata_version": 2, "provider": "rocksdb"}
    return OperatorInfo.model_validate({**content, "partitions": 2, "stores": [], **changes})


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of real Spark: a join in column families."""
    folder = tmp_path_factory.mktemp("golden")
    golden = Path(tests.unit.checkpoint.__path__[0], "golden", "checkpoints.tar.xz")
    with tarfile.open(golden) as archive:
        inside = [each for each in archive if each.name.startswith("4.3.0/join-families")]
        archive.extractall(folder, inside, filter="data")
    return folder / "4.3.0" / "join-families"


@pytest.mark.parametrize(
    ("right", "said"),
    [
        (("k", "w"), ()),
        (
            ("k", "x"),
            ("the right side of operator 0 was k, w, and is k, x in this code",),
        ),
    ],
)
def test_columns_of_a_join_in_families_are_compared_with_the_plan(
    joined: Path, right: tuple[str, ...], said: tuple[str, ...]
) -> None:
    store = DirectoryStore(joined)
    assert [each.name for each in plan_batch(store).operators] == ["symmetricHashJoin"]
    names = StateNames(store, [families("symmetricHashJoin")])

    assert names.changes(Code({"left side": ("k", "v"), "right side": right})) == said


def columns(*names: str, **inside: object) -> dict[str, object]:
    """A schema of numbers, and of columns that have others inside."""
    kinds = {**dict.fromkeys(names, "long"), **inside}
    return {"type": "struct", "fields": [{"name": n, "type": t} for n, t in kinds.items()]}


def transforming(root: Path, *, variables: Sequence[str] = ("seen", "pages")) -> Path:
    """An operator with a variable, a map, and a family of Spark's own."""

    def text(content: object) -> bytes:
        packed = json.dumps(content).encode()
        return struct.pack(">iH", 1, len(packed)) + packed

    keys = {
        "$ttl_seen": columns("expirationMs", "key"),
        "pages": columns(key=columns("user", "day"), userKey=columns("page")),
        "seen": columns("user", "day"),
    }
    data = b"\0\2v3" + struct.pack(">i", len(keys))
    for family, key in keys.items():
        data += struct.pack(">H", len(family)) + family.encode()
        data += struct.pack(">H", 0) + text(key)
        data += struct.pack(">H", 0) + text(columns("n")) + text({}) + text({})
    (root / "state/0/_stateSchema/default").mkdir(parents=True)
    (root / "state/0/_stateSchema/default/0_ab").write_bytes(data)
    path = "file:/elsewhere/state/0/_stateSchema/default/0_ab"
    store = {"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": [path]}
    named = [{"stateName": name} for name in (*variables, "$ttl_seen")]
    content = {
        "operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateInPySparkExec"},
        "stateStoreInfo": [store],
        "operatorPropertiesJson": json.dumps({"stateVariables": named}),
    }
    (root / "state/0/_metadata/v2").mkdir(parents=True)
    (root / "state/0/_metadata/v2/0").write_text(f"v2\n{json.dumps(content)}")
    return root


@pytest.mark.parametrize("variables", [("seen", "pages"), ("pages",)])
@pytest.mark.parametrize(
    ("key", "said"),
    [
        (("user", "day"), ()),
        (
            ("day", "user"),
            ("the key of operator 0 was user, day, and is day, user in this code",),
        ),
    ],
)
def test_the_key_of_a_transformation_is_compared_with_the_plan(
    tmp_path: Path, variables: Sequence[str], key: tuple[str, ...], said: tuple[str, ...]
) -> None:
    """That of a map has what rows are grouped by inside of it."""
    store = DirectoryStore(transforming(tmp_path, variables=variables))
    names = StateNames(store, [families("transformWithStateInPySparkExec")])

    assert names.changes(Code({"key": key})) == said


def test_a_grouping_by_columns_that_are_called_like_those_of_maps_is_none() -> None:
    schemas = {"seen": (json.dumps(columns("key", "userKey")), json.dumps(columns("n")))}

    assert columns_of_schemas(schemas, ("seen",), "a file") == {"key": ("key", "userKey")}


def test_the_sides_of_a_join_of_format_4_are_known_by_their_rows() -> None:
    kept = {
        "left-keyWithTsToValues": columns("a", "b", "matched"),
        "left-tsWithKey": columns("__dummy__"),
        "right-keyWithTsToValues": columns("c", "matched"),
        "right-tsWithKey": columns("__dummy__"),
    }
    schemas = {name: (json.dumps(columns("field0")), json.dumps(v)) for name, v in kept.items()}

    found = columns_of_schemas(schemas, (), "a file")

    assert found == {"left side": ("a", "b"), "right side": ("c",)}


def test_names_that_no_plan_tells_are_not_taken_for_the_same(tmp_path: Path) -> None:
    store = DirectoryStore(transforming(tmp_path))
    names = StateNames(store, [families("transformWithStateInPySparkExec")])

    with pytest.raises(NamesUnknownError, match="the code does not tell the key of operator 0"):
        names.changes(Code({}))


def aggregated(root: Path, name: str) -> StateNames:
    """An operator whose schema is a file beside its store."""
    stores = {"default": StoreOf((("k", "string"),), (("count", "long"),), [{("a",): (1,)}])}
    store = DirectoryStore(HandMade(root, stores, name=name).write())
    kept = [{"name": "default", "partitions": 2, "base_versions": [1], "files": 1, "bytes": 1}]
    return StateNames(store, [families(name, metadata_version=1, stores=kept)])


def test_names_that_spark_does_not_write_down_anew_are_not_taken_for_the_same(
    tmp_path: Path,
) -> None:
    with pytest.raises(NamesUnknownError, match="does not tell the key of operator 0") as told:
        aggregated(tmp_path, "stateStoreSave").changes(Code({}))
    assert not told.value.retry_helps


def test_a_spark_that_does_not_answer_may_tell_names_the_next_time(tmp_path: Path) -> None:
    class Lost(Code):
        def write_schemas(self) -> None:
            raise LostError("Spark does not answer.")

    with pytest.raises(NamesUnknownError, match="does not answer") as told:
        aggregated(tmp_path, "stateStoreSave").changes(Lost({}))
    assert told.value.retry_helps


def test_a_limit_has_no_names_that_could_be_others(tmp_path: Path) -> None:
    assert aggregated(tmp_path, "globalLimit").changes(Code({})) == ()


def test_a_limit_of_a_spark_that_records_no_names_of_operators_has_none_either(
    tmp_path: Path,
) -> None:
    schema = tmp_path / "state/0/0/_metadata/schema"
    schema.parent.mkdir(parents=True)
    schema.write_bytes(schema_of([("key", "void")], [("value", "long")]))
    kept = [{"name": "default", "partitions": 1, "base_versions": [1], "files": 1, "bytes": 1}]
    limit = families(None, metadata_version=None, stores=kept)

    assert StateNames(DirectoryStore(tmp_path), [limit]).changes(Code({})) == ()


def test_a_query_without_state_has_no_names_that_could_be_unknown(tmp_path: Path) -> None:
    class Lost(Code):
        def write_schemas(self) -> None:
            raise LostError("Spark does not answer.")

    assert StateNames(DirectoryStore(tmp_path), []).changes(Lost({})) == ()


def test_names_that_cannot_be_read_are_told_and_not_taken_for_the_same(tmp_path: Path) -> None:
    schema = transforming(tmp_path) / "state/0/_stateSchema/default/0_ab"
    schema.write_bytes(schema.read_bytes()[:-20])
    names = StateNames(DirectoryStore(tmp_path), [families("transformWithStateInPySparkExec")])

    for _ in range(2):
        with pytest.raises(NamesUnknownError, match="truncated"):
            names.changes(Code({"key": ("user", "day")}))
