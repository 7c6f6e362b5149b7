"""`log`, `retain`, `collect`, `checkpoint show`, `completion`, `--version`."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from sparkpoint.savepoint import Repository
from sparkpoint.savepoint.retention import RetentionPlan
from tests.unit.cli.running import SAVEPOINT_KEYS, make_checkpoint, names, run, run_well


def test_log_shows_parents_children_and_only_the_line_of_a_job(
    repository: Path, checkpoint: Path
) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint)
    run_well(*create, "--name", "second")
    run_well(*create, "--job", "shop/other", "--name", "fork", "--parent", "before-upgrade")
    run_well(*create, "--job", "shop/alone", "--name", "alone", "--parent", "none")

    entries = run_well("log", "--json").document["savepoints"]

    assert set(entries[0]) == SAVEPOINT_KEYS | {"children", "usedBy", "restoredTo"}
    by_name = {each["name"]: each for each in entries}
    ids = {by_name["second"]["id"], by_name["fork"]["id"]}
    assert set(by_name["before-upgrade"]["children"]) == ids
    assert names("log", "--job", "shop/other") == ["fork", "before-upgrade"]
    assert run_well("log").out.count("savepoint ") == 4
    assert run_well("log", "--job", "no/such").out == "No savepoints.\n"


def test_a_lease_that_cannot_be_read_does_not_keep_the_log_from_being_shown(
    repository: Path,
) -> None:
    (repository / "leases").mkdir(exist_ok=True)
    (repository / "leases/0123.json").write_text('{"format":2}')
    (repository / "leases/4567.json").write_text("half a le")

    assert names("log") == ["before-upgrade"]


def test_log_tells_when_a_query_last_committed_where_a_savepoint_was_restored_to(
    repository: Path, checkpoint: Path
) -> None:
    run_well("savepoint", "restore", "before-upgrade", "--to", "restored")
    before = run_well("log", "--json").document["savepoints"][0]["restoredTo"]
    commits = checkpoint.parent.parent / "restored/commits"
    (commits / "6").write_text('v1\n{"nextBatchWatermarkMs":0}')
    (commits / "²").write_text("no commit of Spark's")

    after = run_well("log", "--json").document["savepoints"][0]["restoredTo"]

    assert [each["lastCommit"] for each in before] == [None]
    assert after[0]["lastCommit"].endswith("Z")
    assert "last commit just now" in run_well("log").out
    assert "last commit just now" in run_well("log", "--graph").out
    run_well("savepoint", "restore", "before-upgrade", "--to", "second")
    shutil.rmtree("restored")
    gone = run_well("log", "--json").document["savepoints"][0]["restoredTo"]
    assert [each["lastCommit"] for each in gone] == [None, None]


def test_retain_prints_why_and_removes_the_rest(repository: Path, checkpoint: Path) -> None:
    for name in ("two", "three"):
        run_well("savepoint", "create", "--checkpoint", checkpoint, "--name", name)
    run_well("savepoint", "tag", "before-upgrade", "keep")
    retain = ("retain", "--keep-last", "1", "--keep-tagged")

    dry = run_well(*retain, "--dry-run", "--json").document
    text = run_well(*retain).out

    assert set(dry) == {"repository", "dryRun", "keep", "remove"}
    kept = {each["savepoint"]["name"]: each["reasons"] for each in dry["keep"]}
    assert kept == {"three": ["newest", "last"], "before-upgrade": ["tag keep"]}
    assert [each["name"] for each in dry["remove"]] == ["two"]
    assert "newest, last" in text
    assert names("savepoint", "list") == ["before-upgrade", "three"]


def test_retain_tells_what_it_spared_because_it_was_tagged_meanwhile(
    repository: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_well("savepoint", "create", "--checkpoint", checkpoint, "--name", "two")
    plan = Repository.retain

    def tagged_after(self: Repository, *arguments: Any, **options: Any) -> RetentionPlan:
        found = plan(self, *arguments, **options)
        run_well("savepoint", "tag", "before-upgrade", "release")
        return found

    monkeypatch.setattr(Repository, "retain", tagged_after)

    done = run_well("retain", "--keep-last", "1", "--keep-tagged", "--json").document

    kept = {each["savepoint"]["name"]: each["reasons"] for each in done["keep"]}
    assert kept == {"two": ["newest", "last"], "before-upgrade": ["tag release"]}
    assert done["remove"] == []
    assert names("savepoint", "list") == ["before-upgrade", "two"]


def test_retain_tells_what_it_could_not_read_and_a_job_of_which_there_is_nothing(
    repository: Path,
) -> None:
    (repository / "savepoints/default/visits/broken.json").write_text("{")

    seen = run_well("retain", "--keep-last", "1")
    typo = run_well("retain", "--keep-last", "1", "--job", "shop/typo")

    assert "Left out" in seen.err
    assert "broken.json" in seen.err
    assert "No savepoint of shop/typo is there" in typo.err


def test_retain_without_a_rule_is_a_mistake(repository: Path) -> None:
    outcome = run("retain")

    assert outcome.code == 2
    assert "--keep-last" in outcome.err
    assert run("retain", "--max-age", "soon").code == 2
    assert run("retain", "--keep-last", "-1").code == 2


@pytest.mark.parametrize(
    "rule", ["--keep-hourly", "--keep-daily", "--keep-weekly", "--keep-monthly"]
)
def test_every_rule_of_time_keeps_the_newest(repository: Path, checkpoint: Path, rule: str) -> None:
    run_well("savepoint", "create", "--checkpoint", checkpoint, "--name", "two")

    plan = run_well("retain", rule, "9", "--max-age", "1d12h", "--dry-run", "--json").document

    assert plan["keep"][0]["reasons"] == ["newest", rule.removeprefix("--keep-")]


def test_collect_frees_what_no_savepoint_needs(repository: Path) -> None:
    run_well("savepoint", "delete", "before-upgrade")

    spared = run_well("collect", "--json").document
    dry = run_well("collect", "--grace", "0s", "--dry-run", "--json").document
    done = run_well("collect", "--grace", "0s", "--json").document

    assert set(done) == {
        *("repository", "dryRun", "freedBytes", "removedObjects", "plan"),
        *("keptObjects", "keptBytes", "youngBytes", "wastedBytes"),
    }
    assert spared["freedBytes"] == 0
    assert dry["plan"]["bytes"] > 0
    assert done["freedBytes"] == dry["plan"]["bytes"]
    assert run_well("collect", "--grace", "0").code == 0
    assert run("collect", "--grace", "90").code == 2


def test_checkpoint_show_tells_pending_batches_and_hazards(here: Path) -> None:
    query = make_checkpoint(here / "ck")
    clean = run_well("checkpoint", "show", "ck", "--json").document["queries"][0]
    query.begin(6)

    pending = run_well("checkpoint", "show", "ck", "--json").document["queries"][0]

    assert set(clean) == {
        *("name", "id", "batch", "batches", "pending", "clean", "watermarkMs", "offsetsVersion"),
        *("commitsVersion", "sources", "conf", "operators", "files", "bytes", "hazards"),
    }
    assert (clean["clean"], clean["pending"], clean["hazards"]) == (True, None, [])
    assert (pending["clean"], pending["pending"]) == (False, 6)
    assert "batch 6 was begun" in pending["hazards"][0]
    assert pending["operators"][0]["partitions"] == 2
    assert "batch 6 is pending" in run_well("checkpoint", "show", "ck").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str) -> None:
    script = run_well("completion", shell).out

    assert f"_SPARKPOINT_COMPLETE={shell}_complete" in script
    assert set(run_well("completion", shell, "--json").document) == {"shell", "script"}


def test_version_is_the_packages_own() -> None:
    from sparkpoint import __version__

    assert run_well("--version").out == f"sparkpoint {__version__}\n"
