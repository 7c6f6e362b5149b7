"""Copying onto a savepoint that is there already brings back what it lacks."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint, transfer
from sparkpoint.savepoint.errors import DamagedError, NoSuchSavepointError
from sparkpoint.savepoint.names import object_path
from sparkpoint.savepoint.objects import lacking
from sparkpoint.savepoint.progress import Amount, Silent
from sparkpoint.savepoint.table import FileRecord
from sparkpoint.storage import DirectoryStore, Store
from tests.unit.savepoint.synthetic import SyntheticQuery
from tests.unit.savepoint.test_damaged_parent import Notes


class Counted(Silent):
    """Progress in files, of the last phase."""

    total = 0
    done = 0

    def start(self, what: str, total: Amount) -> None:
        """Begin anew."""
        self.total, self.done = total.files, 0

    def advance(self, done: Amount) -> None:
        """Add."""
        self.done += done.files


@pytest.fixture
def copied(
    tmp_path: Path, make_store: Callable[[str], Store]
) -> tuple[Repository, Repository, Savepoint]:
    """A repository, another one with a copy of its savepoint, and that."""
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=400_000, snapshot_every=3).run(5)
    here, there = (Repository.init(make_store(name)) for name in ("here", "there"))
    request = CaptureRequest(job="visits", name="one")
    savepoint = here.capture(DirectoryStore(query.root), request).savepoint
    here.copy(savepoint, there)
    return here, there, savepoint


def _objects(repository: Repository, savepoint: Savepoint) -> dict[str, str]:
    files = repository.files(savepoint).files
    return {
        "large": object_path(files["state/0/0/3.snapshot"].object),
        "pack": object_path(files["metadata"].object),
        "table": object_path(savepoint.manifest.files.table),
    }


@pytest.mark.parametrize("which", ["large", "pack", "table"])
@pytest.mark.parametrize("damage", ["missing", "short", "rotten"])
def test_what_is_damaged_is_copied_again_with_a_note(
    copied: tuple[Repository, Repository, Savepoint], which: str, damage: str
) -> None:
    here, there, savepoint = copied
    path = _objects(here, savepoint)[which]
    good = there.store.read(path)
    there.store.delete(path)
    if damage != "missing":
        there.store.put(path, [good[:50] if damage == "short" else bytes(len(good))])
    assert not there.verify([savepoint])[0].good
    notes = Notes()

    again = here.copy(savepoint, there, verify=damage == "rotten", progress=notes)

    assert again.savepoint.id == savepoint.id
    assert there.verify([savepoint])[0].good
    assert [path in note and "copied again" in note for note in notes.notes] == [True]


def test_what_is_whole_is_neither_copied_nor_noted(
    copied: tuple[Repository, Repository, Savepoint],
) -> None:
    here, there, savepoint = copied
    before = {entry.path: entry.stamp for entry in there.store.list("objects")}
    notes = Notes()

    here.copy(savepoint, there, verify=True, progress=notes)

    assert {entry.path: entry.stamp for entry in there.store.list("objects")} == before
    assert notes.notes == []


def test_a_copy_of_what_is_whole_writes_nowhere_and_does_not_ask_the_origin(
    copied: tuple[Repository, Repository, Savepoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there, savepoint = copied
    for entry in list(here.store.list("objects")):
        here.store.delete(entry.path)
    # Leases are created.
    monkeypatch.setattr(type(there.store), "create", None)

    assert here.copy(savepoint, there).savepoint.id == savepoint.id


@pytest.mark.parametrize("gone", ["here", "there"])
def test_what_was_deleted_meanwhile_is_not_told_as_damage(
    copied: tuple[Repository, Repository, Savepoint], gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there, savepoint = copied
    there.store.delete(_objects(here, savepoint)["large"])

    def delete_then_look(store: Store, records: Iterable[FileRecord]) -> frozenset[str]:
        (here if gone == "here" else there).delete(savepoint)
        return lacking(store, records)

    monkeypatch.setattr(transfer, "lacking", delete_then_look)

    with pytest.raises(NoSuchSavepointError):
        here.copy(savepoint, there)


def test_every_object_that_is_read_is_progress(
    copied: tuple[Repository, Repository, Savepoint],
) -> None:
    here, there, savepoint = copied
    counted = Counted()

    here.copy(savepoint, there, verify=True, progress=counted)

    assert counted.total > 0
    assert counted.done == counted.total


def test_a_copy_does_not_rely_on_what_another_savepoint_there_lacks(
    copied: tuple[Repository, Repository, Savepoint], tmp_path: Path
) -> None:
    here, there, savepoint = copied
    request = CaptureRequest(job="visits", name="two")
    child = here.capture(DirectoryStore(tmp_path / "ck"), request).savepoint
    there.store.delete(_objects(here, savepoint)["large"])

    here.copy(child, there)

    assert there.verify([child])[0].good


def test_a_savepoint_that_is_damaged_at_its_origin_is_told_as_such(
    copied: tuple[Repository, Repository, Savepoint],
) -> None:
    here, there, savepoint = copied
    path = _objects(here, savepoint)["large"]
    here.store.delete(path)
    there.store.delete(path)

    with pytest.raises(DamagedError, match="is missing"):
        here.copy(savepoint, there)


@pytest.mark.parametrize("which", ["large", "pack"])
@pytest.mark.parametrize("damage", ["missing", "rotten"])
def test_what_is_damaged_at_both_places_is_left_as_it_is(
    copied: tuple[Repository, Repository, Savepoint], which: str, damage: str
) -> None:
    here, there, savepoint = copied
    path = _objects(here, savepoint)[which]
    size = here.store.stat(path).size
    here.store.delete(path)
    if damage == "rotten":
        here.store.put(path, [bytes(size)])
    there.store.put(path, [b"1" * size])

    with pytest.raises(DamagedError, match=f"{path} is (missing|damaged)"):
        here.copy(savepoint, there, verify=True)

    assert there.store.read(path) == b"1" * size
