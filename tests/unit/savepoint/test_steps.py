"""How far a capture, a restore or a copy is, is told also in the midst of a large file."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from boto3.s3.transfer import TransferConfig

from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.savepoint.progress import Amount, Silent
from sparkpoint.storage import DirectoryStore, Store, _s3transfer
from tests.unit.savepoint.synthetic import SyntheticQuery

LARGE = 3_000_000


class Told(Silent):
    """Everything that was told since the last phase began."""

    def __init__(self) -> None:
        self.steps: list[Amount] = []
        self.total = Amount()
        self._lock = threading.Lock()

    def start(self, what: str, total: Amount) -> None:
        self.steps, self.total = [], total

    def advance(self, done: Amount) -> None:
        with self._lock:
            self.steps.append(done)

    @property
    def done(self) -> Amount:
        return Amount(sum(each.files for each in self.steps), sum(e.bytes for e in self.steps))

    @property
    def largest(self) -> int:
        return max(each.bytes for each in self.steps)


@pytest.fixture
def checkpoint(tmp_path: Path) -> DirectoryStore:
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=LARGE, snapshot_every=3).run(4)
    return DirectoryStore(query.root)


def test_a_capture_and_a_restore_tell_of_parts_and_in_the_end_of_all(
    make_store: Callable[[str], Store], checkpoint: DirectoryStore, tmp_path: Path
) -> None:
    repository = Repository.init(make_store("here"))
    captured, restored = Told(), Told()
    request = CaptureRequest(job="visits", name="one")

    savepoint = repository.capture(checkpoint, request, progress=captured).savepoint
    repository.materialize(savepoint, DirectoryStore(tmp_path / "to"), progress=restored)

    assert captured.done == captured.total
    assert restored.done == restored.total
    assert restored.largest < LARGE / 2
    # To S3 a file of this size is one request.
    assert isinstance(repository.store, DirectoryStore) == (captured.largest < LARGE / 2)


def test_a_copy_tells_of_parts_and_in_the_end_of_all(
    make_store: Callable[[str], Store], checkpoint: DirectoryStore, tmp_path: Path
) -> None:
    origin, target = Repository.init(make_store("here")), DirectoryStore(tmp_path / "there")
    there = Repository.init(target)
    savepoint = origin.capture(checkpoint, CaptureRequest(job="visits", name="one")).savepoint
    copied, verified = Told(), Told()

    result = origin.copy(savepoint, there, progress=copied)
    again = origin.copy(savepoint, there, verify=True, progress=verified)

    assert copied.largest < LARGE / 2
    assert copied.done == Amount(copied.total.files, result.copied_bytes)
    assert verified.largest < LARGE / 2
    assert verified.done == Amount(verified.total.files, again.verified_bytes)


@pytest.mark.s3
def test_an_upload_in_parts_is_told_as_it_goes(
    s3_bucket: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = 5 * 1024 * 1024
    parts = TransferConfig(multipart_threshold=part, multipart_chunksize=part)
    monkeypatch.setattr(_s3transfer, "_SINGLE", part)
    monkeypatch.setattr(_s3transfer, "_IN_PARTS", parts)
    size = part + 1_000_000
    (tmp_path / "file").write_bytes(bytes(size))
    told: list[int] = []

    s3_bucket.take(
        DirectoryStore(tmp_path), "file", name=lambda digest: f"steps/{digest}", moved=told.append
    )

    assert sum(told) == size
    assert max(told) < size / 2
