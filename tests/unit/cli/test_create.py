"""`savepoint create`: names, queries, parents, sinks."""

import os
import shutil
from pathlib import Path

import pytest

from sparkpoint.storage import DirectoryStore
from tests.unit.cli.running import SAVEPOINT_KEYS, make_checkpoint, names, run, run_well
from tests.unit.savepoint.synthetic import SyntheticQuery


def test_create_prints_what_a_person_wants_to_know(checkpoint: Path) -> None:
    outcome = run_well("savepoint", "create", "--checkpoint", checkpoint, "--repository", "r")

    shown = [line.split()[0] for line in outcome.out.splitlines()]
    assert shown == [
        "Created",
        "id",
        "batch",
        "files",
        "bytes",
        "new",
        "seconds",
        "tries",
        "parent",
    ]
    assert outcome.err == ""


def test_create_prints_one_json_document(checkpoint: Path) -> None:
    document = run_well(
        *("savepoint", "create", "--checkpoint", checkpoint, "--repository", "r", "--json"),
        *("--job", "shop/visits", "--name", "one", "--tag", "b", "--tag", "a"),
        *("--revision", "1.4.2", "--sink", "file:out"),
    ).document

    assert set(document) == {"repository", "savepoint", "readBytes"}
    made = document["savepoint"]
    assert set(made) == SAVEPOINT_KEYS
    assert (made["namespace"], made["job"], made["name"]) == ("shop", "visits", "one")
    assert (made["tags"], made["revision"], made["parent"]) == (["a", "b"], "1.4.2", None)
    assert made["queries"][0]["batch"] == 5
    assert made["created"].endswith("Z")
    assert document["readBytes"] == made["bytes"]
    shown = run_well("savepoint", "show", "one", "--repository", "r", "--json").document
    assert shown["manifest"]["queries"][0]["sink"] == {
        "kind": "file",
        "uri": str(Path("out").resolve()),
    }


def test_the_job_is_called_after_the_checkpoint_unless_told(here: Path) -> None:
    make_checkpoint(here / "Visits per URL!")

    made = run_well(
        "savepoint", "create", "--checkpoint", "Visits per URL!", "--repository", "r", "--json"
    )

    assert made.document["savepoint"]["job"] == "visits-per-url"


def test_a_folder_that_says_nothing_leaves_the_name_to_the_one_above(here: Path) -> None:
    create = ("savepoint", "create", "--repository", "r", "--json", "--checkpoint")
    for folder in ("orders/checkpoint", "visits/_checkpoints/ck", "checkpoint of all"):
        make_checkpoint(here / folder)

    made = [
        run_well(*create, folder).document["savepoint"]
        for folder in ("orders/checkpoint", "visits/_checkpoints/ck", "checkpoint of all")
    ]

    assert [each["job"] for each in made] == ["orders", "visits", "checkpoint-of-all"]
    assert [each["parent"] for each in made] == [None, None, None]


def test_a_job_that_was_called_after_such_a_folder_goes_on(here: Path) -> None:
    make_checkpoint(here / "orders/checkpoint")
    create = ("savepoint", "create", "--checkpoint", "orders/checkpoint", "--repository", "r")
    run_well(*create, "--job", "checkpoint", "--name", "old")

    made = run_well(*create, "--json").document["savepoint"]

    assert made["job"] == "checkpoint"
    assert made["parent"]["name"] == "old"


def test_queries_of_two_places_do_not_become_one_job_by_chance(here: Path) -> None:
    make_checkpoint(here / "v1/visits")
    SyntheticQuery(here / "v2/visits", provider="rocksdb", seed="other").run(3)
    create = ("savepoint", "create", "--repository", "r")
    run_well(*create, "--checkpoint", "v1/visits", "--name", "one")

    refused = run(*create, "--checkpoint", "v2/visits")

    assert refused.code == 3
    assert "default/visits/one has other queries" in refused.err
    assert "--job" in refused.err
    run_well(*create, "--checkpoint", "v2/visits", "--job", "visits")


def test_the_same_query_elsewhere_and_another_query_in_the_same_place_are_the_same_job(
    here: Path,
) -> None:
    make_checkpoint(here / "v1/visits")
    create = ("savepoint", "create", "--repository", "r", "--json")
    run_well(*create, "--checkpoint", "v1/visits", "--name", "one")
    run_well("savepoint", "restore", "one", "--repository", "r", "--to", "v2/visits")
    run_well(*create, "--checkpoint", "v2/visits", "--name", "two")
    shutil.rmtree(here / "v2/visits")
    SyntheticQuery(here / "v2/visits", provider="rocksdb", seed="other").run(3)

    again = run_well(*create, "--checkpoint", "v2/visits", "--name", "three").document

    assert again["savepoint"]["job"] == "visits"


@pytest.mark.parametrize("folder", ["ünï ☃", "visits ☃", "!?"])
def test_a_name_that_would_lose_letters_has_to_be_given(here: Path, folder: str) -> None:
    make_checkpoint(here / folder)
    create = ("savepoint", "create", "--checkpoint", folder, "--repository", "r")

    refused = run(*create)

    assert refused.code == 2
    assert "give --job NS/NAME" in refused.err
    assert not (here / "r").exists()
    run_well(*create, "--job", "visits")


def test_one_query_of_several_can_be_captured(here: Path) -> None:
    make_checkpoint(here / "ck/clicks", batches=2)
    make_checkpoint(here / "ck/visits", batches=3)
    create = ("savepoint", "create", "--checkpoint", "ck", "--repository", "r", "--json")

    one = run_well(*create, "--query", "visits").document["savepoint"]
    both = run_well(*create).document["savepoint"]

    assert [(q["name"], q["batch"]) for q in one["queries"]] == [("visits", 2)]
    assert [(q["name"], q["batch"]) for q in both["queries"]] == [("clicks", 1), ("visits", 2)]


def test_a_sink_must_name_its_query_if_there_are_several(here: Path) -> None:
    make_checkpoint(here / "ck/clicks")
    make_checkpoint(here / "ck/visits")
    create = ("savepoint", "create", "--checkpoint", "ck", "--repository", "r")

    refused = run(*create, "--sink", "file:/out/day=1")

    assert refused.code == 4
    assert "clicks, visits" in refused.err
    run_well(*create, "--sink", "visits=delta")
    assert run(*create, "--sink", "visits=tape").code == 2
    unknown = run(*create, "--sink", "visit=delta")
    assert unknown.code == 4
    assert "no query 'visit'; there are clicks, visits: write --sink QUERY=delta" in unknown.err
    assert "folder" not in unknown.err


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("visit=delta", "write --sink delta."),
        ("visit=file:/out", "write --sink file:/out."),
        ("visit=/out", "write --sink /out (a folder of that name is ./visit=/out)."),
        ("day=1", "write --sink file:1 (a folder of that name is ./day=1)."),
        ("visit=", "write --sink PATH_OR_URI."),
    ],
)
def test_the_advice_for_a_query_that_there_is_not_can_be_followed(
    checkpoint: Path, text: str, advice: str
) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--repository", "r")

    told = run(*create, "--sink", text)

    assert told.code == 4
    assert (
        f"there is no query {text.split('=')[0]!r}, but one alone, which has no name: " in told.err
    )
    assert advice in told.err


@pytest.mark.parametrize("text", ["./out", "file:out", "file:./out", "s3://lake/out"])
def test_a_sink_may_be_given_as_a_place_alone(checkpoint: Path, text: str) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--repository", "r")
    run_well(*create, "--name", "one", "--sink", text)

    shown = run_well("savepoint", "show", "one", "--repository", "r", "--json").document

    place = text if text.startswith("s3") else str(Path("out").resolve())
    assert shown["manifest"]["queries"][0]["sink"] == {"kind": "file", "uri": place}


@pytest.mark.parametrize("text", ["file", "file:", "tape", ""])
def test_a_sink_without_a_place_or_of_no_known_kind_is_refused(checkpoint: Path, text: str) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--repository", "r")

    assert run(*create, "--sink", text).code == 2
    assert run(*create, "--sink", "delta", "--sink", "kafka").code == 2
    assert not Path("r").exists()


def test_parents_are_the_latest_none_or_whatever_is_named(
    repository: Path, checkpoint: Path
) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--json")

    second = run_well(*create, "--name", "second").document["savepoint"]
    alone = run_well(*create, "--name", "alone", "--parent", "none").document["savepoint"]
    latest = run_well(*create, "--name", "last", "--parent", "latest").document["savepoint"]
    named = run_well(*create, "--parent", second["id"][:8]).document["savepoint"]

    assert second["parent"]["name"] == "before-upgrade"
    assert alone["parent"] is None
    assert latest["parent"]["name"] == "alone"
    assert named["parent"]["name"] == "second"


def test_a_savepoint_of_a_restored_directory_descends_from_what_was_restored(
    repository: Path, checkpoint: Path
) -> None:
    run_well("savepoint", "create", "--checkpoint", checkpoint, "--name", "second")
    run_well("savepoint", "restore", "before-upgrade", "--to", "back", "--mode", "rewind")
    create = ("savepoint", "create", "--checkpoint", "back", "--json")

    branch = run_well(*create, "--job", "visits", "--name", "branch").document["savepoint"]
    further = run_well(*create, "--job", "visits", "--name", "further").document["savepoint"]
    fork = run_well(*create, "--job", "fork", "--name", "fork").document["savepoint"]

    assert branch["parent"]["name"] == "before-upgrade"
    assert further["parent"]["name"] == "branch"
    assert fork["parent"]["name"] == "further"
    drawn = run_well("log", "--graph").out
    assert "| * " in drawn
    assert "|/" in drawn


def test_a_savepoint_of_a_restored_directory_reads_few_manifests_of_a_long_history(
    repository: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        run_well("savepoint", "create", "--checkpoint", checkpoint, "--name", f"s{number}")
    for manifest in repository.glob("savepoints/*/*/*.json"):
        os.utime(manifest, (1, 1))
    run_well("savepoint", "restore", "s19", "--to", "restored")
    read: list[str] = []
    real = DirectoryStore.read_stamped

    def counted(store: DirectoryStore, path: str, *, limit: int = 2**26) -> tuple[bytes, str]:
        read.append(path)
        return real(store, path, limit=limit)

    monkeypatch.setattr(DirectoryStore, "read_stamped", counted)
    made = run_well("savepoint", "create", "--checkpoint", "restored", "--name", "next", "--json")

    assert made.document["savepoint"]["parent"]["name"] == "s19"
    assert len([path for path in read if path.startswith("savepoints/")]) < 5


@pytest.mark.parametrize("missing", ["commits", "state/0/1"])
def test_what_is_wrong_with_one_query_of_several_says_which(here: Path, missing: str) -> None:
    make_checkpoint(here / "ck/alpha")
    make_checkpoint(here / "ck/beta")
    shutil.rmtree(here / "ck/beta" / missing)

    outcome = run("savepoint", "create", "--checkpoint", "ck", "--repository", "r")

    assert outcome.code != 0
    assert f"{here}/ck/beta" in outcome.err


def test_state_that_may_be_left_from_a_rewind_is_refused_unless_it_is_accepted(
    checkpoint: Path,
) -> None:
    for leftover in checkpoint.glob("state/0/*/4.zip"):
        os.utime(leftover, (1_000_000, 1_000_000))
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--repository", "r")
    avoided = run_well(*create, "--name", "avoided", "--parent", "none")
    for change in checkpoint.glob("state/0/*/[123].changelog"):
        change.unlink()

    refused = run(*create, "--name", "refused", "--parent", "none")
    accepted = run_well(*create, "--name", "accepted", "--parent", "none", "--accept-doubtful")

    assert "4.zip is older than 4.changelog" in avoided.err
    assert refused.code == 3
    assert "--accept-doubtful" in refused.err
    assert "4.zip is older than 4.changelog" in accepted.err
    names = run_well("savepoint", "list", "--repository", "r", "--json").document["savepoints"]
    assert [each["name"] for each in names] == ["avoided", "accepted"]


def test_a_lost_repository_json_is_told_and_written_anew(
    repository: Path, checkpoint: Path
) -> None:
    (repository / "repository.json").unlink()

    refused = run("savepoint", "verify", "--all")
    made = run_well("savepoint", "create", "--checkpoint", checkpoint, "--name", "second")

    assert refused.code == 4
    assert "savepoint create" in refused.err
    assert "had lost its repository.json" in made.err
    assert "that has to be said again" in made.err
    assert names("savepoint", "list") == ["before-upgrade", "second"]
