"""`sparkpoint state`: what it prints, what it refuses, and that it leaves nothing behind."""

import shlex
from pathlib import Path

import pytest

from sparkpoint.cli.main import root
from tests.unit.cli.running import SAVEPOINT_KEYS, names, run, run_well
from tests.unit.cli.test_help import examples_of, leaves
from tests.unit.state.test_savepoints import made


@pytest.fixture
def nightly(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository `savepoints` with `nightly`: 47 rows in four partitions."""
    monkeypatch.setenv("SPARKPOINT_REPOSITORY", "savepoints")
    made(here / "checkpoints/visits")
    run_well("savepoint", "create", "--checkpoint", "checkpoints/visits", "--name", "nightly")
    return here / "savepoints"


@pytest.mark.usefixtures("nightly")
def test_show_prints_a_line_for_each_store() -> None:
    lines = run_well("state", "show", "nightly").out.splitlines()

    assert lines[0] == "default/visits/nightly"
    assert lines[1].split()[:5] == ["QUERY", "OPERATOR", "STORE", "PROVIDER", "PARTITIONS"]
    assert lines[2].split()[:7] == ["-", "0", "stateStoreSave", "default", "hdfs", "4", "47"]


@pytest.mark.usefixtures("nightly")
def test_show_tells_scripts_every_partition() -> None:
    document = run_well("state", "show", "nightly", "--json").document

    store = document["stores"][0]
    assert document["savepoint"].keys() == SAVEPOINT_KEYS
    assert (store["rows"], store["partitions"], store["unread"]) == (47, 4, None)
    assert sum(store["rowsByPartition"]) == 47
    assert sum(store["bytesByPartition"]) == store["bytes"]
    assert store["skew"] == round(max(store["rowsByPartition"]) * 4 / 47, 4)


@pytest.mark.usefixtures("repository")
def test_rows_that_only_spark_can_count_are_told_in_a_note() -> None:
    outcome = run_well("state", "show", "before-upgrade")

    assert outcome.out.splitlines()[2].split()[5:7] == ["2", "-"]
    assert "Rows of operator 0 are not counted" in outcome.err


@pytest.mark.usefixtures("nightly")
def test_repartition_makes_a_child_with_the_same_digest() -> None:
    before = run_well("state", "show", "nightly", "--json").document["stores"][0]

    document = run_well("state", "repartition", "nightly", "--partitions", "6", "--json").document

    after = run_well("state", "show", "nightly-p6", "--json").document["stores"][0]
    assert document["savepoint"]["name"] == "nightly-p6"
    assert document["savepoint"]["parent"]["id"] == document["parent"]["id"]
    assert (document["rows"], document["partitions"]) == (47, 6)
    moved = document["stores"][0]
    assert (moved["partitionsBefore"], moved["partitions"]) == (4, 6)
    assert before["digest"] == moved["digest"] == after["digest"]
    assert after["rowsByPartition"] == moved["rowsByPartition"]
    assert run_well("savepoint", "verify", "--all").code == 0


@pytest.mark.usefixtures("nightly")
def test_repartition_says_what_it_did() -> None:
    out = run_well("state", "repartition", "nightly", "--partitions", "2", "--name", "narrow").out

    assert out.startswith("Created default/visits/narrow\n")
    assert "operator 0 stateStoreSave, store default: 47 rows, 4 -> 2 partitions" in out


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (("nightly", "--partitions", "0"), 2, "Usage"),
        (("nightly", "--partitions", "many"), 2, "Usage"),
        (("nightly",), 2, "Usage"),
        (("nightly", "--partitions", "4"), 3, "NothingToDo"),
        (("nightly", "--partitions", "99999"), 3, "UnsupportedState"),
        (("nightly", "--partitions", "2", "--name", "nightly"), 3, "NameTaken"),
        (("nightly", "--partitions", "2", "--name", "NO"), 2, "BadName"),
        (("nobody", "--partitions", "2"), 4, "NoSuchSavepoint"),
        (("nightly", "--partitions", "2", "--repository", "nowhere"), 4, "NotARepository"),
        (("nightly", "--partitions", "2", "--work-dir", "nowhere"), 1, "WorkFolder"),
    ],
)
@pytest.mark.usefixtures("nightly")
def test_what_cannot_be_done_is_said_and_changes_nothing(
    arguments: tuple[str, ...], code: int, kind: str
) -> None:
    outcome = run("state", "repartition", *arguments, "--json")

    assert outcome.code == code
    assert outcome.document["error"]["kind"] == kind
    assert names("savepoint", "list") == ["nightly"]


@pytest.mark.usefixtures("repository")
def test_rocksdb_is_refused_by_name() -> None:
    outcome = run("state", "repartition", "before-upgrade", "--partitions", "8")

    assert outcome.code == 3
    assert "rocksdb provider" in outcome.err


@pytest.mark.usefixtures("nightly")
def test_the_examples_of_repartition_work() -> None:
    lines = examples_of(dict(leaves(root))["state repartition"])

    assert [run(*shlex.split(line)[1:]).code for line in lines] == [0, 0]
