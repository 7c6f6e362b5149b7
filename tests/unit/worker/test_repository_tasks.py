"""Inspecting, verifying and disposing of savepoints."""

import os
from pathlib import Path

import pytest

from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.names import object_path
from sparkpoint.worker.exits import Exit, exit_of
from sparkpoint.worker.model import Answer
from tests.unit.worker.asking import ask, capture, repository_of
from tests.unit.worker.conftest import Place


def about(task: str, place: Place, *more: str) -> Answer:
    """A question about the job's savepoints."""
    return ask(
        *(task, "--repository", place.repository, "--job", "shop/visits"), *place.options, *more
    )


def make(place: Place, name: str = "first") -> Savepoint:
    """A savepoint of six batches."""
    place.query()
    place.publish()
    assert capture(place, "--revision", "r7", name=name).answer == "Captured"
    return repository_of(place).find(f"shop/visits/{name}")


def names(place: Place) -> list[str]:
    return [each.manifest.name for each in repository_of(place).list().savepoints]


# --- inspect -------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["name", "id", "both"])
def test_a_savepoint_is_inspected_by_name_and_by_id(place: Place, by: str) -> None:
    found = make(place)
    options = {"name": ["--name", "first"], "id": ["--id", found.id]}
    options["both"] = [*options["name"], *options["id"]]

    answer = about("inspect", place, *options[by])

    assert (answer.answer, exit_of(answer)) == ("Inspected", Exit.OK)
    assert answer.savepoint is not None
    assert answer.details is not None
    assert (answer.savepoint.id, answer.batches) == (found.id, {"q": 5})
    assert (answer.savepoint.files, answer.savepoint.bytes) == (
        found.manifest.files.count,
        found.manifest.files.bytes,
    )
    assert answer.savepoint.created == found.manifest.created
    assert (answer.details.namespace, answer.details.job) == ("shop", "visits")
    assert (answer.details.revision, answer.details.epoch) == ("r7", "3")
    (query,) = answer.details.queries
    assert (query.name, query.batch, query.partitions) == ("q", 5, 2)
    assert query.watermark is not None
    assert query.watermark.timestamp() == 5


def test_another_savepoint_of_that_name_is_not_the_one(disk: Place) -> None:
    found = make(disk)

    answer = about("inspect", disk, "--name", "first", "--id", "0" * 64)

    assert (answer.answer, answer.kind) == ("Failed", "NoSuchSavepoint")
    assert found.id in answer.message


@pytest.mark.parametrize("which", [("--name", "secon"), ("--id", "0" * 64)])
@pytest.mark.parametrize("task", ["inspect", "verify"])
def test_a_savepoint_that_is_not_there_is_a_failure(
    disk: Place, task: str, which: tuple[str, str]
) -> None:
    make(disk)

    answer = about(task, disk, *which)

    assert (answer.answer, answer.kind) == ("Failed", "NoSuchSavepoint")
    assert exit_of(answer) == Exit.WILL_NOT_PASS


@pytest.mark.parametrize("task", ["inspect", "verify", "dispose"])
def test_a_place_without_repository_is_a_failure(disk: Place, task: str) -> None:
    answer = about(task, disk, "--name", "first")

    assert (answer.answer, answer.kind) == ("Failed", "NotARepository")


def test_a_savepoint_of_another_repository_is_copied_here(disk: Place) -> None:
    found = make(disk)
    copy = ("--name", "first", "--copy-from", disk.repository)
    there = f"{disk.root}/vault"

    answer = ask("inspect", "--repository", there, "--job", "shop/visits", *copy)
    again = ask("inspect", "--repository", there, "--job", "shop/visits", *copy)

    assert (answer.answer, answer.savepoint) == ("Inspected", again.savepoint)
    assert answer.savepoint is not None
    assert answer.savepoint.location.startswith(f"{there}/")
    vault = Repository.open(disk.store(there))
    assert [each.id for each in vault.list().savepoints] == [found.id]
    assert all(each.good for each in vault.verify(vault.list().savepoints))


# --- verify --------------------------------------------------------------------------------------


def test_a_whole_savepoint_is_verified(place: Place) -> None:
    found = make(place)

    answer = about("verify", place, "--name", "first")

    assert (answer.answer, exit_of(answer)) == ("Verified", Exit.OK)
    assert answer.savepoint is not None
    assert answer.savepoint.id == found.id
    assert f"{found.manifest.files.count} files" in answer.message


def test_what_is_wrong_with_a_savepoint_is_told(disk: Place) -> None:
    found = make(disk)
    table = repository_of(disk).files(found)
    for digest in table.objects:
        Path(disk.repository, object_path(digest)).unlink()

    answer = about("verify", disk, "--name", "first")

    assert (answer.answer, exit_of(answer)) == ("Corrupt", Exit.OK)
    assert len(answer.problems) == len(table.files)
    assert all("is missing" in problem for problem in answer.problems)
    assert answer.message.startswith("shop/visits/first cannot be restored: ")
    assert answer.savepoint is not None


@pytest.mark.parametrize("task", ["inspect", "verify"])
def test_a_damaged_manifest_is_corrupt(disk: Place, task: str) -> None:
    found = make(disk)
    Path(disk.repository, found.path).write_text("{")

    answer = about(task, disk, "--name", "first")

    assert (answer.answer, exit_of(answer)) == ("Corrupt", Exit.OK)
    assert "is not JSON" in answer.problems[0]


# --- dispose -------------------------------------------------------------------------------------


def test_a_savepoint_is_disposed_of_and_its_child_stays_whole(place: Place) -> None:
    first = make(place)
    capture(place, name="second")

    answer = about("dispose", place, "--name", "first", "--id", first.id)

    assert (answer.answer, exit_of(answer)) == ("Disposed", Exit.OK)
    assert names(place) == ["second"]
    assert about("verify", place, "--name", "second").answer == "Verified"


def test_disposing_again_is_fine(place: Place) -> None:
    make(place)
    about("dispose", place, "--name", "first")

    again = about("dispose", place, "--name", "first")

    assert again.answer == "Disposed"
    assert "gone already" in again.message


def test_a_later_savepoint_of_the_same_name_stays(disk: Place) -> None:
    make(disk)

    answer = about("dispose", disk, "--name", "first", "--id", "0" * 64)

    assert answer.answer == "Disposed"
    assert "stays" in answer.message
    assert names(disk) == ["first"]


def test_a_damaged_manifest_is_disposed_of_and_no_longer_in_the_way(disk: Place) -> None:
    found = make(disk)
    Path(disk.repository, found.path).write_text("{")

    answer = about("dispose", disk, "--name", "first", "--id", found.id, "--collect")

    assert answer.answer == "Disposed"
    assert "was damaged" in answer.message
    assert not Path(disk.repository, found.path).exists()


def test_a_savepoint_of_a_newer_version_is_not_ours_to_delete(disk: Place) -> None:
    found = make(disk)
    Path(disk.repository, found.path).write_text('{"format":3}')

    answer = about("dispose", disk, "--name", "first")

    assert (answer.answer, answer.kind) == ("Failed", "NewerFormat")
    assert Path(disk.repository, found.path).exists()


def objects(place: Place) -> list[str]:
    return [entry.path for entry in place.store(place.repository).list("objects")]


def test_its_space_is_freed_after_the_grace_period(disk: Place) -> None:
    make(disk)

    young = about("dispose", disk, "--name", "first", "--collect")
    kept = objects(disk)
    size = sum(entry.size for entry in disk.store(disk.repository).list("objects"))
    freed = about("dispose", disk, "--name", "first", "--collect", "--grace", "0")

    assert kept
    assert "0 bytes were freed" in young.message
    assert young.freed_bytes == 0
    assert freed.answer == "Disposed"
    assert freed.freed_bytes == size
    assert objects(disk) == []


def test_a_collection_that_cannot_be_is_no_reason_to_fail(disk: Place) -> None:
    make(disk)
    capture(disk, name="second")
    broken = repository_of(disk).find("second")
    Path(disk.repository, broken.path).write_text("{")

    answer = about("dispose", disk, "--name", "first", "--collect")

    assert answer.answer == "Disposed"
    assert "Its space is not freed yet: Nothing was collected" in answer.message
    assert answer.freed_bytes is None


def test_a_repository_that_may_not_be_written_is_a_failure(
    disk: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a volume that is mounted read-only."""
    make(disk)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "link", refuse)

    answer = about("dispose", disk, "--name", "first")

    assert (answer.answer, answer.kind) == ("Failed", "AccessDenied")
    assert names(disk) == ["first"]
