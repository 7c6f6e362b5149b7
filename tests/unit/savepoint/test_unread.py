"""Savepoints of content that an S3 server has copied and vouches for, and nobody has read."""

import hashlib
import json
import uuid
from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository, Savepoint
from sparkpoint.savepoint.errors import DamagedError, NewerFormatError
from sparkpoint.savepoint.manifest import parse_document
from sparkpoint.savepoint.marker import MARKER, Marker, files_of
from sparkpoint.savepoint.names import REPOSITORY, object_path
from sparkpoint.storage import DirectoryStore, Store
from sparkpoint.storage.digest import is_md5, md5_digest
from sparkpoint.storage.s3 import S3Store
from tests.unit.savepoint.synthetic import SyntheticQuery

pytestmark = pytest.mark.s3

LARGE = 300_000


class Place:
    """A checkpoint and a repository on one S3 server."""

    def __init__(self, bucket: S3Store, folder: Path) -> None:
        self.root = bucket.child(uuid.uuid4().hex)
        self.source = self.root.child("checkpoint")
        self.repository = Repository.init(self.root.child("repository"))
        self._query = SyntheticQuery(
            folder, provider="rocksdb", snapshot_bytes=LARGE, snapshot_every=2
        )
        self._carried: set[Path] = set()
        self.run(2)

    def run(self, batches: int) -> None:
        """Let the query commit, and carry over what is new."""
        self._query.run(batches)
        for path in sorted(self._query.root.rglob("*")):
            if path.is_file() and path not in self._carried:
                self._carried.add(path)
                self.source.put(str(path.relative_to(self._query.root)), [path.read_bytes()])

    def capture(self, name: str, **wishes: object) -> Savepoint:
        """A savepoint of the job `visits`, if nothing else is wished."""
        request = CaptureRequest(**{"job": "visits", "name": name, **wishes})  # type: ignore[arg-type]
        return self.repository.capture(self.source, request).savepoint

    def unread(self, savepoint: Savepoint) -> dict[str, str]:
        """Path -> digest of what was not read."""
        files = self.repository.files(savepoint).files
        return {path: each.digest for path, each in files.items() if is_md5(each.digest)}

    def is_good(self, savepoint: Savepoint) -> bool:
        """Whether everything in it is as it should be."""
        return self.repository.verify([savepoint])[0].good

    def spoil(self, digest: str) -> None:
        """Let the bytes rot: as many, and others."""
        self.repository.store.put(object_path(digest), [bytes(LARGE)])


@pytest.fixture
def place(s3_bucket: S3Store, tmp_path: Path) -> Place:
    return Place(s3_bucket, tmp_path / "ck")


def content(store: Store) -> dict[str, bytes]:
    """Path -> bytes of what a restore has put there."""
    return {path: store.read(path) for path in files_of(store)}


def test_large_files_are_named_by_the_md5_that_the_server_tells(place: Place) -> None:
    savepoint = place.capture("one")

    unread = place.unread(savepoint)
    assert {path.rsplit(".", 1)[1] for path in unread} == {"sst"}
    for path, digest in unread.items():
        md5 = hashlib.md5(place.source.read(path)).hexdigest()
        assert digest == md5_digest(md5, f"default/visits/{path}")
    assert savepoint.manifest.format == 2
    assert place.is_good(savepoint)


@pytest.mark.parametrize("kind", ["s3", "directory"])
@pytest.mark.parametrize("verify", [False, True])
def test_what_is_restored_are_the_bytes_that_were_captured(
    place: Place, tmp_path: Path, kind: str, verify: bool
) -> None:
    savepoint = place.capture("one")
    target: Store = place.root.child("t") if kind == "s3" else DirectoryStore(tmp_path / "t")

    place.repository.materialize(savepoint, target, MaterializeRequest(verify=verify))

    planned = place.repository.files(savepoint).files
    assert content(target) == {path: place.source.read(path) for path in planned}


def test_logs_that_nobody_has_read_are_read_where_a_fork_must_rewrite_them(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkpoint.savepoint.taking.SMALL", 1)
    savepoint, target = place.capture("one"), place.root.child("t")

    done = place.repository.materialize(savepoint, target, MaterializeRequest(mode=Mode.FORK))

    planned = place.repository.files(savepoint).files
    assert place.unread(savepoint).keys() == planned.keys()
    assert json.loads(target.read("metadata"))["id"] == done.query_ids[""]
    assert json.loads(place.source.read("metadata"))["id"] != done.query_ids[""]
    same = planned.keys() - {"metadata"}
    assert {path: target.read(path) for path in same} == {
        path: place.source.read(path) for path in same
    }
    assert place.is_good(savepoint)


def test_the_next_savepoint_uses_them_again_and_a_restore_onto_the_first_too(
    place: Place,
) -> None:
    one, target = place.capture("one"), place.root.child("t")
    place.repository.materialize(one, target)
    place.run(1)
    two = place.capture("two")

    done = place.repository.materialize(two, target)

    assert two.manifest.parent is not None
    assert place.unread(two) == place.unread(one)
    assert two.manifest.files.new_bytes < LARGE
    assert done.copied_bytes < LARGE
    assert place.is_good(two)


def test_a_restored_place_is_captured_without_reading_what_is_known(place: Place) -> None:
    one, target = place.capture("one"), place.root.child("t")
    place.repository.materialize(one, target)
    request = CaptureRequest(job="visits", name="again")

    again = place.repository.capture(target, request)

    assert again.read_bytes < LARGE
    assert place.unread(again.savepoint) == place.unread(one)
    assert place.is_good(again.savepoint)


def test_jobs_do_not_share_what_nobody_has_read(place: Place) -> None:
    one = place.capture("one")
    again = place.capture("again", parent="none")
    other = place.capture("other", job="other", parent="none")

    assert place.unread(again) == place.unread(one)
    assert again.manifest.files.new_bytes < LARGE
    assert not set(place.unread(other).values()) & set(place.unread(one).values())
    # Whoever ruins an object of one job leaves that of the other alone.
    for digest in place.unread(other).values():
        place.spoil(digest)
    assert place.is_good(one)
    assert not place.is_good(other)


def test_damage_is_found_by_verification_and_by_restores_that_read(
    place: Place, tmp_path: Path
) -> None:
    savepoint = place.capture("one")
    place.spoil(next(iter(place.unread(savepoint).values())))

    assert not place.is_good(savepoint)
    with pytest.raises(DamagedError, match="damaged"):
        place.repository.materialize(savepoint, DirectoryStore(tmp_path / "t"))
    with pytest.raises(DamagedError, match="damaged"):
        place.repository.materialize(
            savepoint, place.root.child("t"), MaterializeRequest(verify=True)
        )


def test_the_same_savepoint_again_heals_what_was_damaged(place: Place) -> None:
    savepoint = place.capture("one")
    place.spoil(next(iter(place.unread(savepoint).values())))

    place.capture("again", parent="none")

    assert place.is_good(savepoint)


def test_a_collection_keeps_what_is_needed_and_removes_the_rest(place: Place) -> None:
    one = place.capture("one")
    place.run(2)
    two = place.capture("two", parent="none")
    gone = set(place.unread(one).values()) - set(place.unread(two).values())
    place.repository.delete(one)

    done = place.repository.collect(grace=0)

    left = {entry.path for entry in place.repository.store.list("objects")}
    assert done.removed_objects >= len(gone) > 0
    assert not left & {object_path(digest) for digest in gone}
    assert place.is_good(two)


@pytest.mark.parametrize("kind", ["s3", "directory"])
def test_a_copy_in_another_repository_is_the_same_savepoint(
    place: Place, tmp_path: Path, kind: str
) -> None:
    savepoint = place.capture("one")
    store: Store = place.root.child("r2") if kind == "s3" else DirectoryStore(tmp_path / "r2")
    other = Repository.init(store)

    copied = place.repository.copy(savepoint, other).savepoint

    assert copied.id == savepoint.id
    assert other.verify([copied])[0].good


def test_a_copy_of_what_is_damaged_is_refused(place: Place, tmp_path: Path) -> None:
    savepoint = place.capture("one")
    place.spoil(next(iter(place.unread(savepoint).values())))

    with pytest.raises(DamagedError, match="nothing was copied"):
        place.repository.copy(savepoint, Repository.init(DirectoryStore(tmp_path / "r2")))


def test_a_repository_of_the_first_format_reads_all_and_takes_no_copy_of_the_second(
    place: Place,
) -> None:
    old = place.root.child("old")
    old.create(REPOSITORY, b'{"format":1,"id":"0123456789abcdef0123456789abcdef"}\n')
    before = Repository.open(old)

    captured = before.capture(place.source, CaptureRequest(job="visits", name="one"))

    assert captured.savepoint.manifest.format == 1
    assert captured.read_bytes > LARGE
    assert before.copy(captured.savepoint, place.repository).savepoint.id == captured.savepoint.id
    with pytest.raises(NewerFormatError, match="new repository"):
        place.repository.copy(place.capture("two", parent="none"), before)


def test_everything_is_read_where_that_is_wished(place: Place) -> None:
    wished = place.capture("wished", read_all=True)
    place.repository.store.put(
        REPOSITORY,
        [json.dumps({"digests": "blake3", "format": 2, "id": place.repository.id}).encode()],
    )
    place.repository = Repository.open(place.repository.store)

    always = place.capture("always", parent="none")

    assert wished.manifest.format == always.manifest.format == 1
    assert not place.unread(wished)
    assert not place.unread(always)


def test_a_reader_of_the_first_format_refuses_each_document_by_name(place: Place) -> None:
    target = place.root.child("t")
    savepoint = place.capture("one")
    place.repository.materialize(savepoint, target)
    store = place.repository.store

    for data in (store.read(REPOSITORY), store.read(savepoint.path), target.read(MARKER)):
        with pytest.raises(NewerFormatError, match="Update Sparkpoint"):
            parse_document(Marker, data, "here", newest=1)
