"""On a full disk one can read, delete and collect, and that is how it gets room again."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint
from sparkpoint.savepoint.leases import read_leases
from sparkpoint.savepoint.names import RESERVE
from sparkpoint.storage import DirectoryStore, Entry
from sparkpoint.storage.errors import AccessDeniedError, FullError
from tests.unit.savepoint.synthetic import SyntheticQuery
from tests.unit.savepoint.test_damaged_parent import Notes

BLOCK = 4096


class SmallDisk(DirectoryStore):
    """A directory on a disk with room for `free` bytes more, in whole blocks."""

    free = 1 << 40

    def create(self, path: str, data: bytes) -> None:
        """Write, if there is room; as on a disk, a file that is refused took room meanwhile."""
        self._use(len(data))
        try:
            super().create(path, data)
        except BaseException:
            self.free += _blocks(len(data))
            raise

    def put(self, path: str, chunks: Iterable[bytes], *, draft: bool = False) -> int:
        """The same."""
        data = b"".join(chunks)
        self._use(len(data))
        return super().put(path, [data], draft=draft)

    def delete(self, path: str) -> None:
        """Make room."""
        size = self.sizes("", [path])[path]
        super().delete(path)
        self.free += 0 if size is None else _blocks(size)

    def _use(self, size: int) -> None:
        if _blocks(size) > self.free:
            raise FullError(f"{self.uri} cannot be written: no space left.")
        self.free -= _blocks(size)


def _blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


@pytest.fixture
def disk(tmp_path: Path) -> SmallDisk:
    return SmallDisk(tmp_path / "repository")


@pytest.fixture
def savepoint(disk: SmallDisk, tmp_path: Path) -> Savepoint:
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=300_000).run(5)
    request = CaptureRequest(job="visits", name="one")
    return Repository.init(disk).capture(DirectoryStore(query.root), request).savepoint


def test_a_full_repository_can_be_read_with_a_note(
    disk: SmallDisk, savepoint: Savepoint, tmp_path: Path
) -> None:
    repository, notes = Repository.open(disk), Notes()
    elsewhere = Repository.init(DirectoryStore(tmp_path / "elsewhere"))
    disk.free = 0

    repository.materialize(savepoint, DirectoryStore(tmp_path / "out"), progress=notes)
    repository.copy(savepoint, elsewhere, progress=notes)
    assert repository.verify([savepoint], progress=notes)[0].good

    assert ["has no space left" in note for note in notes.notes] == [True] * 3


@pytest.mark.parametrize("free", [0, BLOCK])
def test_deleting_and_collecting_make_room_on_a_full_disk(
    disk: SmallDisk, savepoint: Savepoint, free: int
) -> None:
    repository = Repository.open(disk)
    disk.free = free

    repository.delete(savepoint)
    result = repository.collect(grace=0)

    assert result.freed_bytes > 600_000
    assert disk.sizes("", ["reserve"]) == {"reserve": 64 * 1024}
    assert list(disk.list("leases")) == []


def test_without_a_reserve_it_is_said_what_is_needed(disk: SmallDisk, savepoint: Savepoint) -> None:
    repository = Repository.open(disk)
    disk.delete("reserve")
    disk.free = 0

    for work in (lambda: repository.delete(savepoint), repository.collect):
        with pytest.raises(FullError, match="a few KiB"):
            work()
    assert repository.find("one").id == savepoint.id


def test_a_lease_that_cannot_be_proven_for_want_of_space_leaves_nothing(
    disk: SmallDisk, savepoint: Savepoint
) -> None:
    notes = Notes()
    disk.free = BLOCK

    Repository.open(disk).verify([savepoint], progress=notes)

    assert len(notes.notes) == 1
    assert read_leases(disk) == []


@pytest.mark.parametrize("error", [AccessDeniedError, FullError])
def test_a_collection_is_foreseen_where_nothing_can_be_written(
    disk: SmallDisk,
    savepoint: Savepoint,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
) -> None:
    repository, notes = Repository.open(disk), Notes()
    repository.delete(savepoint)

    def refuse(store: DirectoryStore, path: str, data: bytes) -> None:
        raise error("no")

    monkeypatch.setattr(SmallDisk, "create", refuse)

    result = repository.collect(grace=0, dry_run=True, progress=notes)

    assert result.plan.bytes > 600_000
    assert ["without a lease" in note for note in notes.notes] == [True]


class KnownPrefixes(DirectoryStore):
    """As an S3 policy that allows what a repository of old has, and nothing else."""

    def stat(self, path: str) -> Entry:
        """Refuse to tell of the reserve, also whether it is there."""
        if path == RESERVE:
            raise AccessDeniedError(f"{self.uri}/{path} is forbidden.")
        return super().stat(path)


def test_a_store_that_refuses_the_reserve_is_collected_without(tmp_path: Path) -> None:
    repository = Repository.init(KnownPrefixes(tmp_path / "repository"))

    repository.collect()

    assert not (tmp_path / "repository" / RESERVE).exists()
