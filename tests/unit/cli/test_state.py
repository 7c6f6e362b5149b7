"""`sparkpoint state`: what it prints, what it refuses, and that it leaves nothing behind."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
import pytest

from sparkpoint.cli.main import root
from tests.unit.cli.running import SAVEPOINT_KEYS, names, run, run_well
from tests.unit.cli.test_help import examples_of, leaves
from tests.unit.state.test_savepoints import made
from tests.unit.state.writing import HandMade, StoreOf


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
def test_rocksdb_of_unknown_placement_is_refused_by_name() -> None:
    outcome = run("state", "repartition", "before-upgrade", "--partitions", "8")

    assert outcome.code == 3
    assert "cannot be repartitioned" in outcome.err


def test_rows_are_printed_as_a_table_until_there_are_too_many(nightly: Path) -> None:
    outcome = run_well("state", "query", "nightly", "--limit", "3")

    header, *lines = outcome.out.splitlines()
    assert header.split() == ["key.k", "key.n", "value.count", "partition_id"]
    assert len(lines) == 3
    assert "more than 3 rows" in outcome.err


@pytest.mark.usefixtures("nightly")
def test_rows_are_printed_for_scripts() -> None:
    condition = ("--where", "key.n = 30")

    document = run_well("state", "query", "nightly", *condition, "--json").document
    line = run_well("state", "query", "nightly", *condition, "--format", "json").out
    table = run_well("state", "query", "nightly", *condition, "--format", "csv").out

    row = document["rows"][0]
    assert row["key"] == {"k": "key30", "n": 30}
    assert row["value"] == {"count": 30}
    assert (document["count"], document["more"], document["store"]) == (1, False, "default")
    assert json.loads(line) == row
    header, cells = table.splitlines()
    assert (header, cells) == (
        "key.k,key.n,value.count,partition_id",
        f"key30,30,30,{row['partition_id']}",
    )


@pytest.mark.parametrize(
    ("name", "begins"), [("rows.csv", b"key.k,"), ("rows.parquet", b"PAR1"), ("rows", b"{")]
)
@pytest.mark.usefixtures("nightly")
def test_a_file_is_written_as_its_name_says(name: str, begins: bytes) -> None:
    run_well("state", "query", "nightly", "--output", name)

    assert Path(name).read_bytes().startswith(begins)


@pytest.mark.usefixtures("nightly")
@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_all_rows_go_to_a_file(form: str) -> None:
    document = run_well(
        *("state", "query", "nightly", "--format", form, "--output", f"rows.{form}", "--json")
    ).document

    assert document["count"] == 47
    if form == "parquet":
        file = pyarrow.parquet.ParquetFile("rows.parquet").metadata
        assert (file.num_rows, file.num_row_groups) == (47, 1)
    else:
        assert len(Path(f"rows.{form}").read_text().splitlines()) == 47 + (form == "csv")


@pytest.mark.usefixtures("nightly")
@pytest.mark.parametrize(
    "asked",
    [
        ("--where", "key.n = -1"),
        ("--where", "key.k = 'nobody' AND key.n = 1"),
        ("--sql", "SELECT key, value, partition_id FROM state WHERE false"),
    ],
)
def test_no_rows_have_their_columns_all_the_same(asked: tuple[str, str]) -> None:
    printed = run_well("state", "query", "nightly", *asked, "--format", "csv").out
    run_well("state", "query", "nightly", *asked, "--output", "rows.csv")
    run_well("state", "query", "nightly", *asked, "--output", "rows.parquet")

    assert printed == "key.k,key.n,value.count,partition_id\n"
    assert Path("rows.csv").read_text() == printed
    table = pyarrow.parquet.read_table("rows.parquet")
    assert (table.num_rows, table.column_names) == (0, ["key", "value", "partition_id"])
    assert run_well("state", "query", "nightly", *asked).out == "No rows.\n"


@pytest.mark.usefixtures("nightly")
def test_columns_of_an_answer_that_have_one_name_are_numbered_everywhere() -> None:
    asked = ("state", "query", "nightly", "--sql", "SELECT 1 AS n, 2 AS n")

    printed = run_well(*asked, "--format", "csv").out
    run_well(*asked, "--output", "rows.csv")

    assert printed == Path("rows.csv").read_text() == "n,n_1\n1,2\n"


@pytest.mark.usefixtures("nightly")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM glob('*')",
    ],
)
def test_sql_sees_the_state_and_no_other_file(here: Path, sql: str) -> None:
    file = here / "private.csv"
    file.write_text("word\nhidden\n")

    outcome = run("state", "query", "nightly", "--sql", sql.format(file=file))

    assert outcome.code == 2
    assert "hidden" not in outcome.out


@pytest.mark.usefixtures("nightly")
def test_links_and_pipes_are_not_replaced_by_rows(here: Path) -> None:
    os.mkfifo(here / "pipe")
    (here / "link").symlink_to(here / "pipe")

    for name in ("pipe", "link", "/dev/null"):
        for command in (("query", "nightly"), ("diff", "nightly", "nightly")):
            refused = run("state", *command, "--output", name)
            assert refused.code == 2
            assert "no ordinary file" in refused.err
    assert (here / "pipe").is_fifo()
    assert (here / "link").is_symlink()


@pytest.mark.usefixtures("nightly")
@pytest.mark.parametrize(
    ("command", "target"),
    [
        (("query", "nightly"), "/proc/rows.json"),
        (("query", "nightly"), "/proc/rows.parquet"),
        (("diff", "nightly", "nightly"), "/proc/rows.parquet"),
        (("diff", "nightly", "nightly"), "x" * 255),
    ],
)
def test_a_file_that_cannot_be_written_is_told_by_its_name(
    command: tuple[str, ...], target: str
) -> None:
    outcome = run("state", *command, "--output", target)

    assert outcome.code == 1
    assert outcome.err.startswith(f"Error: Cannot write {target}: ")
    assert "growing" not in outcome.err


def test_a_diff_tells_counts_and_samples(nightly: Path) -> None:
    run_well("state", "repartition", "nightly", "--partitions", "8")
    store = StoreOf((("k", "string"), ("n", "long")), (("count", "long"),), [{("new", 1): (7,)}])
    HandMade(nightly.parent / "checkpoints/other", {"default": store}).write()
    create = ("savepoint", "create", "--checkpoint", "checkpoints/other", "--name", "other")
    run_well(*create, "--job", "visits")

    same = run_well("state", "diff", "nightly", "nightly-p8")
    other = run_well("state", "diff", "nightly", "other", "--samples", "1")
    document = run_well("state", "diff", "nightly", "other", "--json").document

    assert same.out.endswith("The state is the same.\n")
    assert same.out.splitlines()[2].split()[3:] == ["default", "0", "0", "0", "47"]
    assert "+ 0/default k=new, n=1: count=7" in other.out
    assert len([line for line in other.out.splitlines() if line.startswith("- 0/")]) == 1
    found = document["stores"][0]
    assert [found[kind] for kind in ("added", "removed", "changed", "same")] == [1, 47, 0, 0]
    assert len(found["samples"]) == 6
    assert document["same"] is False


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (("query", "nightly", "--where", "key.nobody = 1"), 2, "BadQuery"),
        (("query", "nightly", "--where", "key.k = '\udcff' AND key.n = 1"), 2, "BadQuery"),
        (("query", "nightly", "--sql", "DROP TABLE state"), 2, "BadQuery"),
        (("query", "nightly", "--format", "parquet"), 2, "BadQuery"),
        (("query", "nightly", "--output", "nowhere/rows.json"), 2, "BadQuery"),
        (("query", "nightly", "--limit", "0"), 2, "Usage"),
        (("query", "nightly", "--operator", "7"), 4, "NoSuchState"),
        (("query", "nightly", "--store", "nobody"), 4, "NoSuchState"),
        (("query", "nightly", "--variable", "nobody"), 4, "NoSuchState"),
        (("query", "nightly", "--query", "nobody"), 4, "NoSuchState"),
        (("query", "nobody"), 4, "NoSuchSavepoint"),
        (("diff", "nightly", "nobody"), 4, "NoSuchSavepoint"),
        (("diff", "nightly", "nightly", "--operator", "7"), 4, "NoSuchState"),
        (("diff", "nightly", "nightly", "--store", "nobody"), 4, "NoSuchState"),
        (("diff", "nightly", "nightly", "--output", "nowhere/x.parquet"), 2, "BadQuery"),
        (("diff", "nightly", "nightly", "--output", "changes.csv"), 2, "Usage"),
        (("migrate", "nightly", "--name", "nightly"), 3, "NameTaken"),
        (("migrate", "nobody"), 4, "NoSuchSavepoint"),
        (("check", "--savepoint", "nobody"), 4, "NoSuchSavepoint"),
        (("check", "--savepoint", "nightly", "--conf", "x=1"), 2, "BadQuery"),
        (("check", "--savepoint", "nightly", "--spark-version", "newest"), 2, "BadQuery"),
        (("check", "--savepoint", "nightly", "--master", "yarn"), 2, "BadQuery"),
        (("check", "--savepoint", "nightly", "--", "nobody.py"), 4, "NotFound"),
    ],
)
@pytest.mark.usefixtures("nightly")
def test_what_makes_no_sense_is_said_and_leaves_nothing(
    arguments: tuple[str, ...], code: int, kind: str
) -> None:
    here = sorted(Path().iterdir())

    outcome = run("state", arguments[0], "--json", *arguments[1:])

    assert outcome.code == code
    assert outcome.document["error"]["kind"] == kind
    assert sorted(Path().iterdir()) == here
    assert names("savepoint", "list") == ["nightly"]


@pytest.mark.usefixtures("nightly")
def test_files_alone_can_say_no_but_never_yes() -> None:
    unknown = run("state", "check", "--savepoint", "nightly", "--json")
    noted = run(
        *("state", "check", "--savepoint", "nightly", "--json"),
        *("--conf", "spark.sql.shuffle.partitions=9"),
    )

    assert (unknown.code, unknown.document["verdict"]) == (1, "unknown")
    assert unknown.document["rehearsed"] is False
    assert "Give a script behind `--`" in unknown.document["message"]
    assert "pinned to 4; 9 will have no effect" in noted.document["notes"][0]


@pytest.mark.parametrize(
    ("answer", "code", "verdict", "problems"),
    [
        ('{"answer":"Compatible","message":"Well."}', 0, "compatible", []),
        ('{"answer":"Incompatible","problems":["key: set it back."]}', 3, "incompatible", 1),
        ('{"answer":"Unknown","message":"Time was over."}', 1, "unknown", ["Time was over."]),
        ('{"answer":"Failed","message":"No such thing."}', 1, "unknown", ["No such thing."]),
        ("not what a worker says", 1, "unknown", 1),
    ],
)
@pytest.mark.usefixtures("nightly")
def test_the_verdict_of_a_trial_is_the_exit_code(
    worker_says: Callable[[str], list[list[str]]],
    answer: str,
    code: int,
    verdict: str,
    problems: list[str] | int,
) -> None:
    asked = worker_says(answer)
    Path("visits.py").write_text("")

    outcome = run("state", "check", "--savepoint", "nightly", "--json", "--", "visits.py", "--x=1")

    assert (outcome.code, outcome.document["verdict"]) == (code, verdict)
    assert outcome.document["rehearsed"] is True
    found = outcome.document["problems"]
    assert (len(found) if isinstance(problems, int) else found) == problems
    (command,) = asked
    assert command[1:4] == ["-m", "sparkpoint.worker", "rehearse"]
    assert {"--replay", "--single"} <= {*command}
    assert command[-3:] == ["--", "visits.py", "--x=1"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ('{"answer":"Compatible","message":"Well."}', 1),
        ('{"answer":"Incompatible","problems":["log: of another version."]}', 2),
    ],
)
@pytest.mark.usefixtures("nightly")
def test_a_trial_with_another_spark_is_no_verdict_on_the_one_that_was_asked_for(
    worker_says: Callable[[str], list[list[str]]],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    told: int,
) -> None:
    worker_says(answer)
    monkeypatch.setattr("importlib.metadata.version", lambda _: "4.3.0")
    Path("visits.py").write_text("")
    check = ("state", "check", "--savepoint", "nightly", "--json", "--spark-version")

    other = run(*check, "4.2.1", "--", "visits.py")
    same = run(*check, "4.3.7", "--", "visits.py")

    assert (other.code, other.document["verdict"]) == (1, "unknown")
    assert len(other.document["problems"]) == told
    assert "tried with Spark 4.3.0" in other.document["problems"][-1]
    assert same.document["verdict"] != "unknown"


@pytest.mark.usefixtures("nightly")
def test_a_spark_that_cannot_read_the_logs_is_incompatible() -> None:
    made(Path("checkpoints/newer"))
    for path in Path("checkpoints/newer/offsets").iterdir():
        text = path.read_text().replace("v1", "v2", 1)
        path.write_text(text.replace('\n{"topic"', '\nvisits:{"topic"'))
    create = ("savepoint", "create", "--checkpoint", "checkpoints/newer", "--name", "newer")
    run_well(*create)

    outcome = run("state", "check", "--savepoint", "newer", "--spark-version", "4.1.0")

    assert outcome.code == 3
    assert "Spark 4.1.0 cannot read its offset log" in outcome.err
    assert "Use Spark 4.2 or later." in outcome.err


@pytest.mark.usefixtures("nightly")
def test_the_examples_of_repartition_query_and_diff_work() -> None:
    commands = dict(leaves(root))
    names = ("state repartition", "state query", "state diff")
    lines = [line for name in names for line in examples_of(commands[name])]

    assert [(line, run(*shlex.split(line)[1:]).code) for line in lines] == [
        (line, 0) for line in lines
    ]
