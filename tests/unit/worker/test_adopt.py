"""Adopting checkpoints that another job left behind."""

from pathlib import Path

import pytest

from sparkpoint.runtime.identity import folder_of_name
from sparkpoint.storage import DirectoryStore
from sparkpoint.worker.exits import Exit, exit_of
from tests.unit.worker.asking import adopt, capture, repository_of
from tests.unit.worker.conftest import Place


def test_an_epoch_directory_is_adopted_with_all_its_queries(place: Place) -> None:
    place.query("clicks", 4)
    place.query("visits", 6)
    place.query("idle", 0)
    place.publish()

    answer = adopt(place, place.epoch_dir)

    assert (answer.answer, answer.batches) == ("Captured", {"clicks": 3, "visits": 5})
    assert answer.savepoint is not None
    assert answer.savepoint.left_out == ("idle",)
    assert answer.savepoint.parent is None
    found = repository_of(place).find("shop/heir/origin")
    assert (found.id, found.manifest.source.uri) == (answer.savepoint.id, place.epoch_dir)
    assert (found.manifest.source.epoch, found.manifest.spark_version) == (None, None)


def test_the_checkpoint_of_a_single_query_gets_the_folder_of_its_new_name(
    place: Place, tmp_path: Path
) -> None:
    place.query()
    place.publish()

    answer = adopt(
        place, f"{place.epoch_dir}/q", "--query", "URL visits", "--spark-version", "4.2.1"
    )

    folder = folder_of_name("URL visits")
    assert (answer.answer, answer.batches) == ("Captured", {folder: 5})
    assert answer.details is not None
    assert answer.details.spark_version == "4.2.1"
    repository = repository_of(place)
    savepoint = repository.find("origin")
    repository.materialize(savepoint, DirectoryStore(tmp_path / "epoch-1"))
    restored = tmp_path / "epoch-1" / folder / "offsets/5"
    assert restored.read_bytes() == (place.local / "q/offsets/5").read_bytes()
    assert all(each.good for each in repository.verify([savepoint]))


def test_the_name_of_the_only_query_chooses_none_of_several(place: Place) -> None:
    place.query("clicks", 4)
    place.query("visits", 6)
    place.publish()

    several = adopt(place, place.epoch_dir, "--as", "visits")
    single = adopt(place, f"{place.epoch_dir}/visits", "--as", "URL visits")

    assert (several.answer, several.retry_helps) == ("Failed", False)
    assert "clicks, visits" in several.message
    assert "spec.checkpoint.adoptAs" in several.message
    assert single.batches == {folder_of_name("URL visits"): 5}


def test_the_checkpoint_is_only_read(place: Place) -> None:
    place.query()
    place.publish()
    source = place.store(place.epoch_dir)
    before = [(entry.path, entry.size, entry.modified) for entry in source.list()]

    assert adopt(place, place.epoch_dir).answer == "Captured"

    assert [(entry.path, entry.size, entry.modified) for entry in source.list()] == before


def test_some_of_the_queries_may_be_chosen(disk: Place) -> None:
    for name in ("a", "b", "c"):
        disk.query(name, 2)
    disk.publish()

    answer = adopt(disk, disk.epoch_dir, "--query", "a", "--query", "c")

    assert answer.batches == {"a": 1, "c": 1}


def test_a_chosen_query_without_a_commit_is_nothing_committed(disk: Place) -> None:
    disk.query("a", 2)
    disk.query("idle", 0)
    disk.publish()

    answer = adopt(disk, disk.epoch_dir, "--query", "idle")

    assert answer.answer == "NothingCommitted"


def test_the_same_adoption_again_is_the_same_savepoint(disk: Place) -> None:
    query = disk.query()
    disk.publish()
    first = adopt(disk, disk.epoch_dir)
    query.batch()
    disk.publish()

    again = adopt(disk, disk.epoch_dir, "--tag", "origin")

    assert again.savepoint == first.savepoint
    (only,) = repository_of(disk).list().savepoints
    assert only.tags == ("origin",)


@pytest.mark.parametrize("more", [("--revision", "r2"), ("--trigger", "Manual")])
def test_another_savepoint_of_that_name_is_a_clear_failure(
    disk: Place, more: tuple[str, str]
) -> None:
    disk.query()
    disk.publish()
    adopt(disk, disk.epoch_dir)

    answer = adopt(disk, disk.epoch_dir, *more)
    elsewhere = adopt(disk, f"{disk.epoch_dir}/q", "--query", "q")

    for each in (answer, elsewhere):
        assert (each.answer, each.kind) == ("Failed", "NameTaken")
        assert exit_of(each) == Exit.WILL_NOT_PASS
    assert more[1] in answer.message
    assert f"this one is of {disk.epoch_dir}/q" in elsewhere.message


def test_another_name_for_the_query_is_another_savepoint(disk: Place) -> None:
    disk.query()
    disk.publish()
    single = f"{disk.epoch_dir}/q"
    adopt(disk, single, "--query", "a")

    again, other = adopt(disk, single, "--query", "a"), adopt(disk, single, "--query", "b")

    assert (again.answer, again.batches) == ("Captured", {"a": 5})
    assert (other.answer, other.kind) == ("Failed", "NameTaken")
    assert "of query a; this one is of b" in other.message


@pytest.mark.parametrize(
    ("queries", "sentence"),
    [
        ((), "Say how the new job calls it"),
        (("--query", "a", "--query", "b"), "Say how the new job calls it"),
    ],
)
def test_a_single_query_needs_one_name(
    disk: Place, queries: tuple[str, ...], sentence: str
) -> None:
    disk.query()
    disk.publish()

    answer = adopt(disk, f"{disk.epoch_dir}/q", *queries)

    assert (answer.answer, answer.kind) == ("Failed", "NoQuery")
    assert sentence in answer.message


def test_a_query_that_is_not_there_is_answered_with_those_that_are(disk: Place) -> None:
    disk.query("a")
    disk.publish()

    answer = adopt(disk, disk.epoch_dir, "--query", "b")

    assert answer.kind == "NoQuery"
    assert "has no query 'b'; it has a." in answer.message


def test_a_place_without_any_checkpoint_is_a_failure(disk: Place) -> None:
    disk.store(disk.epoch_dir).put("notes.txt", [b"no query"])

    answer = adopt(disk, disk.epoch_dir)

    assert (answer.answer, answer.kind) == ("Failed", "NoQuery")
    assert exit_of(answer) == Exit.WILL_NOT_PASS


def test_a_directory_that_is_not_there_is_unreachable(disk: Place) -> None:
    assert adopt(disk, disk.epoch_dir).kind == "Unreachable"


@pytest.mark.parametrize("single", [True, False])
def test_nothing_committed_is_an_answer(disk: Place, single: bool) -> None:
    disk.query(batches=0).begin(0)
    disk.publish()
    checkpoint = f"{disk.epoch_dir}/q" if single else disk.epoch_dir

    answer = adopt(disk, checkpoint, *(("--query", "q") if single else ()))

    assert (answer.answer, exit_of(answer)) == ("NothingCommitted", Exit.OK)


def test_a_repository_json_that_was_lost_is_told(
    disk: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    disk.query("visits", 3)
    disk.publish()
    capture(disk)
    disk.store(disk.repository).delete("repository.json")

    adopt(disk, disk.epoch_dir)

    assert "had lost its repository.json" in capfd.readouterr().err
