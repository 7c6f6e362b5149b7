"""Repartitioning savepoints: a new one or none, and the old one as it was."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint
from sparkpoint.savepoint.errors import BadNameError, NameTakenError
from sparkpoint.state import RepartitionRequest, repartition, survey
from sparkpoint.state.errors import (
    MisplacedStateError,
    NothingToDoError,
    PendingBatchError,
    StateError,
    UnfaithfulError,
    UnsupportedStateError,
    WorkFolderError,
)
from sparkpoint.state.snapshots import SnapshotWriter
from sparkpoint.storage import DirectoryStore
from tests.unit.savepoint.synthetic import SyntheticQuery
from tests.unit.state.test_repartition import placed, together
from tests.unit.state.writing import HandMade, Row, StoreOf

_KEY = (("k", "string"), ("n", "long"))
_VALUE = (("count", "long"),)


def made(root: Path, *, partitions: int = 4, rows: int = 60, **changes: object) -> HandMade:
    first: dict[Row, Row | None] = {(f"key{n}", n): (n,) for n in range(rows)}
    second: dict[Row, Row | None] = {(f"key{n}", n): None if n % 3 else (-n,) for n in range(20)}
    stores = {"default": StoreOf(_KEY, _VALUE, [first, second])}
    query = HandMade(root, stores, partitions, **changes)  # type: ignore[arg-type]
    query.write()
    return query


class Setting(NamedTuple):
    """A repository, a place for checkpoints, and a folder to work in."""

    repository: Repository
    folder: Path
    work: Path

    def captured(self, folder: str = "ck") -> Savepoint:
        source = DirectoryStore(self.folder / folder)
        request = CaptureRequest(
            job="visits", name="nightly", revision="1.4", spark_version="4.3.0"
        )
        return self.repository.capture(source, request).savepoint

    def asked(self, partitions: int, name: str | None = None) -> RepartitionRequest:
        return RepartitionRequest(partitions=partitions, name=name, work_folder=self.work)

    def restored(self, savepoint: Savepoint, name: str) -> Path:
        self.repository.materialize(savepoint, DirectoryStore(self.folder / name))
        return self.folder / name

    def files(self) -> Mapping[str, bytes]:
        store = self.repository.store
        return {entry.path: store.read(entry.path) for entry in store.list()}


@pytest.fixture
def here(tmp_path: Path) -> Setting:
    (tmp_path / "work").mkdir()
    return Setting(Repository.init(DirectoryStore(tmp_path / "repo")), tmp_path, tmp_path / "work")


def test_a_repartitioned_savepoint_is_a_child_and_the_old_one_stays(here: Setting) -> None:
    made(here.folder / "ck")
    parent = here.captured()
    was = placed(here.restored(parent, "was"))

    result = repartition(here.repository, parent, here.asked(7))

    child = here.repository.find("nightly-p7").manifest
    assert child.parent is not None
    assert child.parent.id == parent.id
    assert (child.revision, child.spark_version, child.trigger) == ("1.4", "4.3.0", "repartition")
    assert child.queries[0].operators[0].partitions == 7
    assert child.queries[0].id == parent.manifest.queries[0].id
    now = placed(here.restored(result.savepoint, "now"))
    assert together(now) == together(was)
    assert result.rows == 47
    assert placed(here.restored(parent, "undone")) == was
    assert all(found.good for found in here.repository.verify([parent, result.savepoint]))
    assert list(here.work.iterdir()) == []


def test_every_query_of_a_savepoint_is_repartitioned(here: Setting) -> None:
    made(here.folder / "ck/one", partitions=2)
    made(here.folder / "ck/two", partitions=3)

    result = repartition(here.repository, here.captured(), here.asked(5))

    assert result.moved.keys() == {"one", "two"}
    counts = [query.operators[0].partitions for query in result.savepoint.manifest.queries]
    assert counts == [5, 5]


def test_a_query_that_has_so_many_already_is_left_as_it_is(here: Setting) -> None:
    made(here.folder / "ck/one", partitions=2)
    made(here.folder / "ck/two", partitions=3)

    result = repartition(here.repository, here.captured(), here.asked(3))

    assert result.moved.keys() == {"one"}


def test_what_could_not_be_moved_and_need_not_be_is_no_obstacle(here: Setting) -> None:
    made(here.folder / "ck/one", partitions=2)
    made(here.folder / "ck/two", partitions=3, name="someFutureExec")

    result = repartition(here.repository, here.captured(), here.asked(3))

    assert result.moved.keys() == {"one"}


def test_there_and_back_gives_the_same_state(here: Setting) -> None:
    made(here.folder / "ck")
    parent = here.captured()

    there = repartition(here.repository, parent, here.asked(9)).savepoint
    back = repartition(here.repository, there, here.asked(4, "back")).savepoint

    assert placed(here.restored(back, "back")) == placed(here.restored(parent, "was"))


def test_state_that_was_repartitioned_has_the_same_digest(here: Setting) -> None:
    made(here.folder / "ck")
    parent = here.captured()
    child = repartition(here.repository, parent, here.asked(2)).savepoint

    before, after = survey(here.repository, parent)[0], survey(here.repository, child)[0]

    assert before.tally is not None
    assert after.tally is not None
    assert before.tally.digest == after.tally.digest
    assert (before.tally.rows, len(before.stored)) == (47, 4)
    assert (after.tally.rows, len(after.stored)) == (47, 2)
    assert before.skew >= 1


def _pending(root: Path) -> None:
    made(root)
    shutil.copy(root / "offsets/1", root / "offsets/2")


def _misplaced(root: Path) -> None:
    made(root, place=lambda key, fields, partitions: len(str(key)) % partitions)


_REFUSED: list[tuple[Callable[[Path], object], int, type[StateError], str]] = [
    (made, 4, NothingToDoError, "4 partitions already"),
    (made, 0, UnsupportedStateError, "a number from 1"),
    (made, 10_001, UnsupportedStateError, "a number from 1 to 10000"),
    (_pending, 2, PendingBatchError, "while batch 2 was running"),
    (_misplaced, 2, MisplacedStateError, "a rule that is not known"),
    (
        lambda root: SyntheticQuery(root, provider="rocksdb").run(2),
        4,
        UnsupportedStateError,
        r"operator 0 \(stateStoreSave\): its keys may be placed by some of their columns only",
    ),
    (
        lambda root: made(root, conf={"spark.sql.streaming.stateStore.compression.codec": "zstd"}),
        2,
        UnsupportedStateError,
        "compressed with zstd",
    ),
    (lambda root: made(root, name="someFutureExec"), 2, UnsupportedStateError, "someFutureExec"),
]


@pytest.mark.parametrize(("make", "partitions", "kind", "text"), _REFUSED)
def test_a_refused_request_changes_nothing(
    here: Setting,
    make: Callable[[Path], object],
    partitions: int,
    kind: type[StateError],
    text: str,
) -> None:
    make(here.folder / "ck")
    savepoint, before = here.captured(), here.files()

    with pytest.raises(kind, match=text):
        repartition(here.repository, savepoint, here.asked(partitions))

    assert here.files() == before
    assert list(here.work.iterdir()) == []


def test_a_name_that_is_taken_is_refused_before_the_work(here: Setting) -> None:
    made(here.folder / "ck")
    savepoint = here.captured()
    repartition(here.repository, savepoint, here.asked(2))
    before = here.files()

    with pytest.raises(NameTakenError, match="nightly-p2 exists already"):
        repartition(here.repository, savepoint, here.asked(2))
    with pytest.raises(BadNameError):
        repartition(here.repository, savepoint, here.asked(2, "No Name"))

    assert here.files() == before


def test_nothing_is_published_if_a_row_was_lost(
    here: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(here.folder / "ck")
    savepoint = here.captured()
    add = SnapshotWriter.add

    def forgetful(self: SnapshotWriter, partition: int, key: bytes, value: bytes) -> None:
        if b"key9" not in key:
            add(self, partition, key, value)

    monkeypatch.setattr(SnapshotWriter, "add", forgetful)

    with pytest.raises(UnfaithfulError, match="had 47 rows and has 46 now"):
        repartition(here.repository, savepoint, here.asked(2))

    assert [each.manifest.name for each in here.repository.list().savepoints] == ["nightly"]
    assert list(here.work.iterdir()) == []


@pytest.mark.parametrize("fault", ["a changed value", "another partition"])
def test_nothing_is_published_if_a_row_was_changed_or_misplaced(
    here: Setting, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    made(here.folder / "ck")
    savepoint = here.captured()
    add = SnapshotWriter.add

    def wrong(self: SnapshotWriter, partition: int, key: bytes, value: bytes) -> None:
        moved = partition ^ (fault == "another partition" and b"key9" in key)
        changed = bytes(len(value)) if fault == "a changed value" and b"key9" in key else value
        add(self, moved, key, changed)

    monkeypatch.setattr(SnapshotWriter, "add", wrong)

    with pytest.raises(UnfaithfulError):
        repartition(here.repository, savepoint, here.asked(2))

    assert [each.manifest.name for each in here.repository.list().savepoints] == ["nightly"]


def test_a_folder_without_room_is_refused(here: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    made(here.folder / "ck")
    usage = shutil.disk_usage(here.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=1000))

    with pytest.raises(WorkFolderError, match="--work-dir"):
        repartition(here.repository, here.captured(), here.asked(2))


def test_a_folder_that_does_not_exist_is_refused(here: Setting) -> None:
    made(here.folder / "ck")
    nowhere = RepartitionRequest(partitions=2, work_folder=here.folder / "nowhere")

    with pytest.raises(WorkFolderError, match="nowhere cannot hold the copy"):
        repartition(here.repository, here.captured(), nowhere)


def test_state_that_only_spark_reads_is_told_by_its_files(here: Setting) -> None:
    SyntheticQuery(here.folder / "ck", provider="rocksdb").run(5)

    found = survey(here.repository, here.captured())[0]

    assert found.tally is None
    assert "rocksdb" in (found.unread or "")
    assert len(found.stored) == 2
    assert all(found.stored)
    assert found.skew >= 1
