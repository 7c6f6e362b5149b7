"""What a sync brings to the disk: little by itself, much with the whole file system."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkpoint.storage import DirectoryStore, _linux
from sparkpoint.storage.errors import StorageError

ALL = "all"


class Disk:
    """Hears what is flushed, by path, and does it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.flushed: list[str] = []
        self.refuses = False
        self._fsync, self._sync_all = os.fsync, _linux.sync_file_system
        monkeypatch.setattr(os, "fsync", self._one)
        monkeypatch.setattr("sparkpoint.storage._unsynced.sync_file_system", self._everything)

    def _one(self, descriptor: int) -> None:
        if self.refuses:
            raise OSError(5, "Input/output error")
        self.flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        self._fsync(descriptor)

    def _everything(self, descriptor: int) -> None:
        self.flushed.append(ALL)
        self._sync_all(descriptor)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(monkeypatch)
    yield disk
    monkeypatch.undo()


def test_a_few_files_are_flushed_with_the_folders_that_name_them(
    tmp_path: Path, disk: Disk
) -> None:
    store = DirectoryStore(tmp_path / "new")
    store.put("a/b/one", [b"1"])
    store.child("a").put("two", [b"2"], draft=True)

    store.sync()

    root = tmp_path.resolve()
    wanted = ["new/a/b/one", "new/a/two", "new/a/b", "new/a", "new", "."]
    assert {*disk.flushed} == {str((root / each).resolve()) for each in wanted}
    # Names last: they may not be there before what they name.
    assert {*disk.flushed[:2]} == {str(root / "new/a/b/one"), str(root / "new/a/two")}
    disk.flushed.clear()
    store.sync()
    assert disk.flushed == []


def test_what_is_relied_on_and_what_was_removed_is_flushed_too(tmp_path: Path, disk: Disk) -> None:
    store = DirectoryStore(tmp_path)
    store.put("kept/one", [b"1"])
    store.put("gone/two", [b"2"])
    store.sync()
    disk.flushed.clear()

    other = DirectoryStore(tmp_path)
    other.touch("kept/one")
    other.delete("gone/two")
    other.sync()

    root = tmp_path.resolve()
    assert {str(root / "kept/one"), str(root / "kept"), str(root)} <= {*disk.flushed}
    assert ALL not in disk.flushed


def test_many_files_are_flushed_at_once(tmp_path: Path, disk: Disk) -> None:
    store = DirectoryStore(tmp_path)
    for number in range(100):
        store.put(f"{number}", [b"."])

    store.sync()

    assert disk.flushed == [ALL]


def test_after_a_failure_everything_is_flushed(tmp_path: Path, disk: Disk) -> None:
    store = DirectoryStore(tmp_path)
    store.put("one", [b"1"])
    disk.refuses = True
    with pytest.raises(StorageError):
        store.sync()
    disk.refuses = False

    store.sync()

    assert disk.flushed == [ALL]
