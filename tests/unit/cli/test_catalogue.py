"""`savepoint list`, `show`, `tag`, `delete`, `verify` and `copy`, and what savepoints go by."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkpoint.savepoint import taking
from tests.unit.cli.running import SAVEPOINT_KEYS, make_checkpoint, names, run, run_well

VERIFIED = """{"answer": "Verified", "details": {"namespace": "default", "job": "visits",
"queries": [{"name": "visits", "id": "1", "batch": 3, "rows": 47}]}}"""


def test_list_can_be_narrowed_to_a_job_or_a_tag(repository: Path, checkpoint: Path) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint)
    run_well(*create, "--job", "shop/visits", "--name", "two", "--tag", "keep")
    run_well(*create, "--job", "shop/visits", "--name", "three")

    assert names("savepoint", "list") == ["before-upgrade", "two", "three"]
    assert names("savepoint", "list", "--job", "shop/visits") == ["two", "three"]
    assert names("savepoint", "list", "--tag", "keep") == ["two"]
    assert names("savepoint", "list", "--job", "none/such") == []
    header = run_well("savepoint", "list").out.splitlines()[0].split()
    assert header == ["NAME", "JOB", "BATCH", "AGE", "SIZE", "NEW", "TAGS", "PARENT"]


def test_list_tells_of_manifests_that_cannot_be_read(repository: Path) -> None:
    (repository / "savepoints/default/visits/broken.json").write_text("{")

    outcome = run_well("savepoint", "list", "--json")

    assert [each["path"] for each in outcome.document["unreadable"]] == [
        "savepoints/default/visits/broken.json"
    ]
    assert outcome.err.startswith("Note: Left out: ")
    assert run_well("savepoint", "list", "--quiet").err == ""


@pytest.mark.parametrize("created", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_manifest_of_no_time_that_can_be_blocks_no_command(
    repository: Path, created: str
) -> None:
    folder = repository / "savepoints/default/visits"
    content = json.loads((folder / "before-upgrade.json").read_text())
    content |= {"name": "odd", "created": created}
    (folder / "odd.json").write_text(json.dumps(content))

    for command, code in (
        (["savepoint", "list"], 0),
        (["savepoint", "list", "--json"], 0),
        (["log", "--graph"], 0),
        (["log", "--json"], 0),
        (["log", "--html", "log.html"], 0),
        (["retain", "--keep-last", "1", "--dry-run"], 0),
        (["savepoint", "verify", "--all"], 5),
    ):
        outcome = run(*command)
        assert outcome.code == code, outcome.err
        assert "odd.json is damaged at created" in outcome.out + outcome.err


def test_show_has_the_whole_manifest(repository: Path) -> None:
    document = run_well("savepoint", "show", "before-upgrade", "--json").document

    assert set(document) == {"repository", "savepoint", "manifest"}
    assert set(document["savepoint"]) == SAVEPOINT_KEYS
    assert document["manifest"]["queries"][0]["operators"][0]["provider"] == "rocksdb"


@pytest.mark.parametrize("form", ["name", "job/name", "namespace/job/name", "id", "prefix", "tag"])
def test_a_savepoint_goes_by_name_id_start_of_id_or_tag(repository: Path, form: str) -> None:
    run_well("savepoint", "tag", "before-upgrade", "stable")
    made = run_well("savepoint", "show", "before-upgrade", "--json").document["savepoint"]
    reference = {
        "name": "before-upgrade",
        "job/name": "visits/before-upgrade",
        "namespace/job/name": "default/visits/before-upgrade",
        "id": made["id"],
        "prefix": made["id"][:4],
        "tag": "stable",
    }[form]

    found = run_well("savepoint", "show", reference, "--json").document["savepoint"]

    assert found == made
    assert found["tags"] == ["stable"]


def test_several_that_go_by_one_name_are_all_listed(repository: Path, checkpoint: Path) -> None:
    for number in range(7):
        job = f"shop/visits-{number}"
        run_well("savepoint", "create", "--checkpoint", checkpoint, "--job", job, "--name", "same")

    outcome = run("savepoint", "show", "same", "--json")

    assert outcome.code == 3
    keys = [f"shop/visits-{number}/same" for number in range(7)]
    assert outcome.document["error"]["candidates"] == keys
    assert all(key in outcome.err for key in keys)


def test_a_typing_error_is_answered_with_a_guess(repository: Path) -> None:
    outcome = run("savepoint", "show", "before-upgrad")

    assert outcome.code == 4
    assert "Did you mean 'before-upgrade'?" in outcome.err


def test_a_guess_is_never_what_several_go_by(repository: Path, checkpoint: Path) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--name", "dup")
    for job in ("j1", "j2"):
        run_well(*create, "--job", job)

    assert "Did you mean 'default/j1/dup'?" in run("savepoint", "show", "default/j1/dupe").err
    assert "'dup'" not in run("savepoint", "show", "default/j9/dup").err
    assert "Did you mean" not in run("savepoint", "show", "dupe").err


def test_tags_are_added_and_taken_away(repository: Path) -> None:
    run_well("savepoint", "tag", "before-upgrade", "a", "b")

    outcome = run_well("savepoint", "tag", "before-upgrade", "c", "--remove", "a", "--json")

    assert set(outcome.document) == {"repository", "savepoint"}
    assert outcome.document["savepoint"]["tags"] == ["b", "c"]
    assert run("savepoint", "tag", "before-upgrade").code == 2
    assert run("savepoint", "tag", "before-upgrade", "Not a tag").code == 2


def test_delete_looks_all_up_before_the_first_is_gone(repository: Path, checkpoint: Path) -> None:
    run_well("savepoint", "create", "--checkpoint", checkpoint, "--name", "two")

    assert run("savepoint", "delete", "two", "nothing").code == 4
    assert names("savepoint", "list") == ["before-upgrade", "two"]
    dry = run_well("savepoint", "delete", "two", "--dry-run", "--json").document
    assert names("savepoint", "list") == ["before-upgrade", "two"]
    done = run_well("savepoint", "delete", "two", "two", "--json").document
    assert names("savepoint", "list") == ["before-upgrade"]
    assert set(done) == {"repository", "dryRun", "deleted", "deletedDamaged"}
    assert [each["name"] for each in dry["deleted"]] == ["two"]
    assert [each["name"] for each in done["deleted"]] == ["two"]


def test_a_damaged_manifest_can_be_deleted_so_that_collecting_works_again(repository: Path) -> None:
    broken = repository / "savepoints/default/visits/broken.json"
    broken.write_text("{")
    assert run("savepoint", "show", "broken").code == 5
    assert run("collect").code == 5

    outcome = run_well("savepoint", "delete", "default/visits/broken")

    assert outcome.out == "Deleted savepoints/default/visits/broken.json\n"
    assert not broken.exists()
    run_well("collect")


def test_a_manifest_of_a_newer_format_is_not_ours_to_delete(repository: Path) -> None:
    newer = repository / "savepoints/default/visits/newer.json"
    newer.write_text('{"format": 3}')

    outcome = run("savepoint", "delete", "newer")

    assert outcome.code == 3
    assert "Update Sparkpoint" in outcome.err
    assert newer.exists()


@pytest.mark.parametrize(
    ("answer", "code", "good"),
    [
        (VERIFIED, 0, True),
        ("""{"answer":"Corrupt","problems":["visits: Spark loads 5 rows"]}""", 5, False),
        ("""{"answer":"Unknown","message":"visits: STDS_NO_SUCH_KIND"}""", 1, True),
        ("not what a worker says", 1, True),
    ],
)
def test_a_deep_verification_lets_a_worker_load_the_state(
    repository: Path,
    worker_says: Callable[[str], list[list[str]]],
    answer: str,
    code: int,
    good: bool,
) -> None:
    asked = worker_says(answer)

    outcome = run("savepoint", "verify", "before-upgrade", "--deep", "--json")

    assert (outcome.code, outcome.document["good"]) == (code, good)
    (command,) = asked
    assert command[1:4] == ["-m", "sparkpoint.worker", "verify"]
    assert "--deep" in command
    if code == 0:
        assert outcome.document["savepoints"][0]["rows"] == {"visits": 47}


def test_verify_reads_everything_and_tells_damage_by_exit_code(repository: Path) -> None:
    good = run_well("savepoint", "verify", "--all", "--json").document
    largest = max((repository / "objects").rglob("*"), key=lambda path: path.stat().st_size)
    largest.write_bytes(b"rotten" + largest.read_bytes()[6:])
    (repository / "savepoints/default/visits/broken.json").write_text("{")

    bad = run("savepoint", "verify", "--all", "--json")

    assert set(good) == {"repository", "good", "savepoints", "unreadable"}
    assert set(good["savepoints"][0]) == {"savepoint", "good", "files", "bytes", "problems"}
    assert (bad.code, bad.document["good"]) == (5, False)
    assert bad.document["savepoints"][0]["problems"]
    assert bad.document["unreadable"][0]["path"].endswith("broken.json")
    assert "2 of 2 savepoints" in bad.err
    assert run("savepoint", "verify", "before-upgrade").code == 5
    assert run("savepoint", "verify").code == 2
    assert run("savepoint", "verify", "before-upgrade", "--all").code == 2


def test_no_copy_is_recommended_for_what_was_captured_damaged(
    repository: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = make_checkpoint(here / "cut")
    os.truncate(query.root / "state/0/1/5.changelog", 10)
    monkeypatch.setattr(taking, "has_end", lambda path, conf: False)  # as older versions did
    run_well("savepoint", "create", "--checkpoint", "cut", "--job", "cut", "--name", "old")

    cut = run("savepoint", "verify", "--all")
    max((repository / "objects").rglob("*"), key=lambda path: path.stat().st_size).unlink()
    both = run("savepoint", "verify", "--all")

    assert (cut.code, both.code) == (5, 5)
    assert "so is every copy: default/cut/old." in cut.err
    assert "savepoint copy" not in cut.err
    assert "savepoint copy" in both.err


def test_a_manifest_of_a_newer_version_is_not_called_damaged_anywhere(repository: Path) -> None:
    (repository / "savepoints/default/visits/newer.json").write_text('{"format": 9}')

    verified = run("savepoint", "verify", "--all")
    collected = run("collect")

    assert verified.code == collected.code == 3
    for outcome in (verified, collected):
        assert "Update Sparkpoint" in outcome.err
        assert "DAMAGED" not in outcome.out
        assert "else delete" not in outcome.err
    assert "NEWER    savepoints/default/visits/newer.json" in verified.out
    assert run_well("savepoint", "verify", "before-upgrade").code == 0
    for command in ("show", "delete"):
        assert run("savepoint", command, "newer").code == 3


def test_copy_keeps_id_name_and_tags_and_copies_once(repository: Path) -> None:
    run_well("savepoint", "tag", "before-upgrade", "stable")
    copy = (
        "savepoint",
        "copy",
        "before-upgrade",
        "--from",
        "savepoints",
        "--to",
        "vault",
        "--json",
    )

    first = run_well(*copy).document
    again = run_well(*copy).document

    made = run_well("savepoint", "show", "before-upgrade", "--json").document["savepoint"]
    there = run_well("savepoint", "show", "stable", "--repository", "vault", "--json").document
    assert set(first) == {"savepoint", "from", "to", "copiedBytes", "verifiedBytes"}
    assert there["savepoint"]["id"] == made["id"]
    assert there["savepoint"]["tags"] == ["stable"]
    assert first["copiedBytes"] > 0
    assert again["copiedBytes"] == 0
    run_well("savepoint", "verify", "--all", "--repository", "vault")


def test_what_a_copy_verifies_is_not_what_it_copies(repository: Path) -> None:
    copy = ("savepoint", "copy", "before-upgrade", "--from", "savepoints", "--to", "vault")
    first = run_well(*copy, "--json").document

    again = run_well(*copy, "--verify", "--json").document
    text = run_well(*copy, "--verify").out

    assert (again["copiedBytes"], first["verifiedBytes"]) == (0, 0)
    assert 0 < again["verifiedBytes"] <= first["copiedBytes"]
    assert text.startswith("default/visits/before-upgrade is in ")
    assert [line.split()[0] for line in text.splitlines()[1:]] == [
        *("id", "bytes", "copied", "verified")
    ]

    lost = next(path for path in Path("vault/objects").rglob("*") if path.is_file())
    size = lost.stat().st_size
    lost.unlink()
    mended = run_well(*copy, "--verify", "--json").document
    assert mended["copiedBytes"] == size


def test_what_lies_in_the_target_already_is_not_copied(repository: Path) -> None:
    copy = ("savepoint", "copy", "before-upgrade", "--from", "savepoints", "--to", "vault")
    run_well(*copy)
    run_well("savepoint", "delete", "before-upgrade", "--repository", "vault")

    again = run_well(*copy, "--json").document

    assert again["copiedBytes"] == 0
    assert again["verifiedBytes"] > 0

    run_well("savepoint", "delete", "before-upgrade", "--repository", "vault")
    assert run_well(*copy).out.startswith("Copied default/visits/before-upgrade to ")
