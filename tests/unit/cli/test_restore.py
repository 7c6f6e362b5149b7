"""`savepoint restore`: modes, and sinks that remember batches."""

from pathlib import Path
from typing import Any

import pytest

from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.errors import AccessDeniedError, UnavailableError
from tests.unit.cli.running import file_sink, make_checkpoint, run, run_well


def test_restore_makes_a_checkpoint_that_can_be_captured_again(repository: Path) -> None:
    outcome = run_well("savepoint", "restore", "before-upgrade", "--to", "back", "--json")

    document = outcome.document
    assert set(document) == {
        *("savepoint", "to", "mode", "files", "bytes", "copiedFiles", "copiedBytes"),
        *("removedFiles", "queryIds", "sinkActions", "seconds", "notes"),
    }
    assert document["copiedFiles"] == document["files"] > 0
    again = run_well("savepoint", "restore", "before-upgrade", "--to", "back", "--json").document
    assert again["copiedFiles"] == 0
    shown = run_well("checkpoint", "show", "back", "--json").document
    assert shown["queries"][0]["batch"] == 5


def test_a_fork_has_a_new_id_and_a_rewind_the_old_one(repository: Path) -> None:
    made = run_well("savepoint", "show", "before-upgrade", "--json").document["savepoint"]
    restore = ("savepoint", "restore", "before-upgrade", "--json")

    fork = run_well(*restore, "--to", "fork", "--mode", "fork").document
    rewind = run_well(*restore, "--to", "rewind", "--mode", "rewind")

    assert fork["queryIds"][""] != made["queries"][0]["id"]
    assert rewind.document["queryIds"][""] == made["queries"][0]["id"]
    assert "was not looked at" in rewind.document["notes"][0]
    assert "Note: The sink of query" in rewind.err


def test_a_rewind_below_a_file_sink_is_refused_unless_the_policy_says_what_to_do(
    repository: Path, here: Path
) -> None:
    sink = file_sink(here / "out", newest=8)
    rewind = ("savepoint", "restore", "before-upgrade", "--to", "back", "--mode", "rewind")

    refused = run(*rewind, "--sink", sink)
    done = run_well(*rewind, "--sink", sink, "--sink-policy", "truncate", "--json").document

    assert refused.code == 3
    assert str(sink) in refused.err
    assert "--sink-policy truncate" in refused.err
    assert {f"_spark_metadata/{n}" for n in (6, 7, 8)} <= set(done["sinkActions"][0]["delete"])
    assert sorted(path.name for path in (sink / "_spark_metadata").iterdir()) == list("012345")
    assert done["notes"] == []


def test_a_recorded_file_sink_is_looked_at_without_being_named(
    repository: Path, checkpoint: Path, here: Path
) -> None:
    sink = file_sink(here / "out", newest=8)
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--name", "knows")
    run_well(*create, "--sink", f"file:{sink}")
    restore = ("savepoint", "restore", "knows", "--to", "back")

    assert run(*restore, "--mode", "rewind").code == 3
    assert run(*restore, "--mode", "resume").code == 3
    run_well(*restore, "--mode", "fork")
    run_well(
        "savepoint", "restore", "knows", "--to", "b2", "--mode", "rewind", "--sink-policy", "ignore"
    )


@pytest.mark.parametrize("mode", ["resume", "rewind"])
def test_a_file_sink_that_is_not_there_is_refused_whether_it_is_recorded_or_named(
    repository: Path, checkpoint: Path, here: Path, mode: str
) -> None:
    sink = file_sink(here / "out", newest=5)
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--name", "knows")
    run_well(*create, "--sink", f"file:{sink}")
    restore = ("savepoint", "restore", "knows", "--to", "back", "--mode", mode)

    typo = run(*restore, "--sink", "typo")
    sink.rename(here / "moved")
    gone = run(*restore)

    assert (typo.code, gone.code) == (3, 3)
    assert f"{here}/typo has no _spark_metadata" in typo.err
    assert f"{sink} has no _spark_metadata" in gone.err
    assert not Path("back").exists()
    run_well(*restore, "--sink", "moved")


def test_a_rewind_of_a_table_that_dedupes_is_refused(repository: Path, checkpoint: Path) -> None:
    run_well("savepoint", "create", "--checkpoint", checkpoint, "--name", "d", "--sink", "delta")

    outcome = run("savepoint", "restore", "d", "--to", "back", "--mode", "rewind")

    assert outcome.code == 3
    assert "delta" in outcome.err
    assert not Path("back").exists()


def test_a_new_sink_of_a_fork_is_seeded_if_asked(repository: Path, here: Path) -> None:
    fork = ("savepoint", "restore", "before-upgrade", "--to", "back", "--mode", "fork")

    assert run(*fork, "--sink", "new").code == 3
    run_well(*fork, "--sink", "new", "--sink-policy", "seed")

    assert any((here / "new/_spark_metadata").iterdir())


def test_seeding_needs_a_sink_to_seed(repository: Path) -> None:
    outcome = run(
        *("savepoint", "restore", "before-upgrade", "--to", "back", "--mode", "fork"),
        *("--sink-policy", "seed"),
    )

    assert outcome.code == 2
    assert "--sink PATH_OR_URI" in outcome.err
    assert not Path("back").exists()


@pytest.mark.parametrize("policy", ["refuse", "truncate", "seed"])
def test_a_fork_does_not_write_where_the_query_does_that_it_leaves(
    repository: Path, checkpoint: Path, here: Path, policy: str
) -> None:
    sink = file_sink(here / "out", newest=8)
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--name", "knows")
    run_well(*create, "--sink", f"file:{sink}")

    outcome = run(
        *("savepoint", "restore", "knows", "--to", "back", "--mode", "fork", "--sink", "out"),
        *("--sink-policy", policy),
    )

    assert outcome.code == 3
    assert "two queries cannot write to one file sink" in outcome.err
    assert len(list((sink / "_spark_metadata").iterdir())) == 9


def test_a_sink_is_written_with_or_without_its_kind_and_query(repository: Path, here: Path) -> None:
    file_sink(here / "out/day=1", newest=5)
    make_checkpoint(here / "ck/visits")
    run_well("savepoint", "create", "--checkpoint", "ck", "--name", "named")
    texts = ["out/day=1", "file:out/day=1", f"file:{here}/out/day=1", f"file://{here}/out/day%3D1"]

    for number, text in enumerate(texts):
        target = f"back{number}"
        run_well("savepoint", "restore", "before-upgrade", "--to", target, "--sink", text)
        run_well("savepoint", "restore", "named", "--to", f"q{target}", "--sink", f"visits={text}")


@pytest.mark.parametrize(
    ("sinks", "code", "words"),
    [
        (["visits=out"], 4, ["no query 'visits'", "write --sink file:out"]),
        (["a/out", "b/out"], 2, ["'a/out' and --sink 'b/out'", "one sink"]),
        (["file"], 2, ["does not say where", "file:PATH_OR_URI"]),
        (["file:"], 2, ["does not say where", "file:PATH_OR_URI"]),
        (["delta"], 2, ["no other", "file:delta"]),
        (["kafka:topic"], 2, ["no other"]),
    ],
)
def test_a_sink_that_makes_no_sense_is_refused(
    repository: Path, sinks: list[str], code: int, words: list[str]
) -> None:
    given = [word for sink in sinks for word in ("--sink", sink)]

    outcome = run("savepoint", "restore", "before-upgrade", "--to", "back", *given)

    assert outcome.code == code, outcome.err
    assert [word for word in words if word not in outcome.err] == []
    assert not Path("back").exists()


def test_resuming_from_a_batch_that_the_query_has_left_behind_is_noted(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKPOINT_REPOSITORY", "savepoints")
    query = make_checkpoint(here / "visits")
    run_well("savepoint", "create", "--checkpoint", query.root, "--name", "earlier")
    query.run(3)
    run_well("savepoint", "create", "--checkpoint", query.root, "--name", "later")

    old = run_well("savepoint", "restore", "earlier", "--to", "old", "--json").document
    new = run_well("savepoint", "restore", "later", "--to", "new", "--json").document

    assert "visits/later is at batch 8, this at batch 5" in old["notes"][0]
    assert new["notes"] == []


def test_a_repository_that_cannot_be_written_to_is_restored_and_copied_from_with_a_note(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DirectoryStore.create

    def refusing(store: DirectoryStore, path: str, data: bytes) -> None:
        if store.uri == str(repository):
            raise AccessDeniedError(f"{store.uri} is on a read-only file system.")
        real(store, path, data)

    def refusing_too(store: DirectoryStore, path: str, *rest: Any, **more: Any) -> int:
        if store.uri == str(repository):
            raise AccessDeniedError(f"{store.uri} is on a read-only file system.")
        return put(store, path, *rest, **more)

    put = DirectoryStore.put
    monkeypatch.setattr(DirectoryStore, "create", refusing)
    monkeypatch.setattr(DirectoryStore, "put", refusing_too)

    restored = run_well("savepoint", "restore", "before-upgrade", "--to", "back", "--json")
    copied = run_well("savepoint", "copy", "before-upgrade", "--to", "other")
    verified = run_well("savepoint", "verify", "--all")

    assert ["no lease" in note for note in restored.document["notes"]] == [True]
    assert "no lease" in verified.err
    assert "Note: " in copied.err
    run_well("savepoint", "verify", "--all", "--repository", "other")


def test_the_log_tells_where_a_savepoint_was_restored_to_until_it_is_gone(
    repository: Path, here: Path
) -> None:
    for target in ("one", "two", "one"):
        run_well("savepoint", "restore", "before-upgrade", "--to", target)

    (entry,) = run_well("log", "--json").document["savepoints"]
    run_well("savepoint", "delete", "before-upgrade")
    run_well("collect", "--grace", "0s")

    targets = [each["target"] for each in entry["restoredTo"]]
    assert sorted(targets) == [str(here / "one"), str(here / "two")]
    assert list((repository / "uses").rglob("*.json")) == []


def test_a_restore_that_cannot_be_noted_has_succeeded_all_the_same(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = DirectoryStore.put

    def failing(store: DirectoryStore, path: str, *rest: Any, **more: Any) -> int:
        if path.startswith("uses/"):
            raise UnavailableError("The network is down.")
        return put(store, path, *rest, **more)

    monkeypatch.setattr(DirectoryStore, "put", failing)

    restored = run_well("savepoint", "restore", "before-upgrade", "--to", "back", "--json")

    assert "The network is down" in restored.document["notes"][0]


def test_a_note_that_cannot_be_read_does_not_spoil_the_log(repository: Path) -> None:
    run_well("savepoint", "restore", "before-upgrade", "--to", "back")
    (note,) = (repository / "uses").rglob("*.json")
    note.write_text('{"format":3}')

    (entry,) = run_well("log", "--json").document["savepoints"]

    assert entry["restoredTo"] == []


def test_a_batch_in_flight_that_its_sink_may_have_is_told_of_or_cut_from_a_sink_that_is_named(
    repository: Path, here: Path
) -> None:
    make_checkpoint(here / "ck").begin(6)
    sink = file_sink(here / "out", newest=6)
    run_well("savepoint", "create", "--checkpoint", "ck", "--job", "live", "--name", "live")
    restore = ("savepoint", "restore", "live", "--json")

    unseen = run_well(*restore, "--to", "unseen").document
    named = run_well(*restore, "--to", "named", "--sink", sink).document

    assert "Batch 6 of query" in unseen["notes"][0]
    assert named["notes"] == []
    assert "_spark_metadata/6" in named["sinkActions"][0]["delete"]
    assert sorted(path.name for path in (sink / "_spark_metadata").iterdir()) == list("012345")
