"""Targets that somebody else uses, or has used: restores that must not destroy anything."""

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from blake3 import blake3

from sparkpoint.savepoint import (
    CaptureRequest,
    Repository,
    Savepoint,
    claim,
    filling,
    materialize,
)
from sparkpoint.savepoint.claim import SILENCE, Claim
from sparkpoint.savepoint.errors import LeaseLostError, TargetBusyError, TargetChangedError
from sparkpoint.savepoint.marker import MARKER, SIGN_OF_LIFE, files_of
from sparkpoint.storage import DirectoryStore, Entry
from sparkpoint.storage.s3 import S3Store
from tests.support.waiting import await_true
from tests.unit.savepoint.synthetic import SyntheticQuery


def capture(repository: Repository, root: Path, name: str) -> Savepoint:
    request = CaptureRequest(job="visits", name=name, parent="none")
    return repository.capture(DirectoryStore(root), request).savepoint


@pytest.fixture
def one(repository: Repository, tmp_path: Path) -> Savepoint:
    return capture(repository, SyntheticQuery(tmp_path / "a").run(3).root, "one")


@pytest.fixture
def two(repository: Repository, tmp_path: Path) -> Savepoint:
    return capture(repository, SyntheticQuery(tmp_path / "b", seed="other").run(3).root, "two")


@contextlib.contextmanager
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A restore in here is interrupted before its first file."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(materialize, "fill", interrupted)
        with pytest.raises(KeyboardInterrupt):
            yield


def rewrite_note(root: Path, **changes: object) -> None:
    """As if another process, or another host, had written it."""
    path = root / MARKER
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_target_is_filled_by_one_restore_at_a_time(
    repository: Repository,
    one: Savepoint,
    two: Savepoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = DirectoryStore(tmp_path / "target")
    refused: list[TargetBusyError] = []

    def disturbed(*args: object, **named: object) -> None:
        with pytest.raises(TargetBusyError, match="Let it finish") as caught:
            repository.materialize(two, target)
        refused.append(caught.value)
        filling.fill(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(materialize, "fill", disturbed)
    repository.materialize(one, target)

    assert refused[0].retry_helps
    note = json.loads((tmp_path / "target" / MARKER).read_text())
    assert (note["state"], note["savepoint"]) == ("complete", one.id)
    for path, file in note["files"].items():
        content = (tmp_path / "target" / path).read_bytes()
        assert blake3(content).hexdigest() == file["digest"]


def test_a_restore_that_failed_is_finished_at_once_by_the_next_one(
    repository: Repository,
    one: Savepoint,
    two: Savepoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = DirectoryStore(tmp_path / "target")
    with failing(monkeypatch):
        repository.materialize(one, target)

    assert repository.materialize(two, target).files == two.manifest.files.count


@pytest.mark.parametrize("owner", [None, "another-host/pid:[1] 7 12345"])
def test_a_restore_of_which_nothing_is_known_is_taken_over_only_when_it_is_old(
    repository: Repository,
    one: Savepoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: str | None,
) -> None:
    root = tmp_path / "target"
    with failing(monkeypatch):
        repository.materialize(one, DirectoryStore(root))
    rewrite_note(root, owner=owner)

    with pytest.raises(TargetBusyError, match=r"run this again in \d+ s"):
        repository.materialize(one, DirectoryStore(root))
    then = (root / MARKER).stat().st_mtime - SILENCE - 10
    os.utime(root / MARKER, (then, then))
    (root / SIGN_OF_LIFE).touch()
    with pytest.raises(TargetBusyError, match=r"last sign of life is \d s old"):
        repository.materialize(one, DirectoryStore(root))
    os.utime(root / SIGN_OF_LIFE, (then, then))

    assert repository.materialize(one, DirectoryStore(root)).files == one.manifest.files.count


class SkewedStore(DirectoryStore):
    """A store whose clock is not the host's, nor that of any other store."""

    ahead = 0.0

    def stat(self, path: str) -> Entry:
        entry = super().stat(path)
        return replace(entry, modified=entry.modified + self.ahead)


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0])
def test_a_living_restore_is_not_taken_over_whatever_the_clocks_say(
    repository: Repository,
    one: Savepoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ahead: float,
) -> None:
    target = SkewedStore(tmp_path / "target")
    target.ahead = ahead
    with failing(monkeypatch):
        repository.materialize(one, target)
    rewrite_note(tmp_path / "target", owner="another-host/pid:[1] 7 12345")

    with pytest.raises(TargetBusyError, match=r"last sign of life is \d s old"):
        repository.materialize(one, target)
    assert list(files_of(target)) == []
    then = (tmp_path / "target" / MARKER).stat().st_mtime - SILENCE - 10
    os.utime(tmp_path / "target" / MARKER, (then, then))

    assert repository.materialize(one, target).files == one.manifest.files.count


def is_a_sign(thread: threading.Thread) -> bool:
    return thread.name == "claim" and thread.is_alive()


def depose(root: Path, attempt: str) -> None:
    """As a restore on another host does that takes over."""
    store = DirectoryStore(root)
    data = json.dumps(json.loads(store.read(MARKER)) | {"attempt": attempt}).encode()
    store.replace(MARKER, data, stamp=store.stat(MARKER).stamp)
    store.put(SIGN_OF_LIFE, [attempt.encode()])


def test_a_restore_that_was_taken_over_stops_before_its_next_file(
    repository: Repository, one: Savepoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "target"

    def disturbed(*args: object, **named: object) -> None:
        depose(root, "the-other")
        filling.fill(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(claim, "_LOOK", 0.0)
    monkeypatch.setattr(materialize, "fill", disturbed)
    with pytest.raises(TargetBusyError, match="has taken over"):
        repository.materialize(one, DirectoryStore(root))

    assert files_of(DirectoryStore(root)) == {}
    assert json.loads((root / MARKER).read_text())["attempt"] == "the-other"
    assert (root / SIGN_OF_LIFE).read_text() == "the-other"


def test_a_restore_that_was_taken_over_gives_no_more_signs_of_life(
    repository: Repository, one: Savepoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "target"
    monkeypatch.setattr(claim, "_PERIOD", 0.02)

    def disturbed(*_: object, before: claim.Check, **__: object) -> None:
        depose(root, "the-other")
        await_true(lambda: not any(map(is_a_sign, threading.enumerate())), "end of the signs")
        # The last of them may have come after the other's first; the other goes on.
        depose(root, "the-other")
        before()

    monkeypatch.setattr(materialize, "fill", disturbed)
    with pytest.raises(TargetBusyError, match="has taken over"):
        repository.materialize(one, DirectoryStore(root))

    assert (root / SIGN_OF_LIFE).read_text() == "the-other"


def test_a_kept_file_that_was_written_during_the_restore_is_noticed(
    repository: Repository, one: Savepoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "target"
    later = capture(repository, SyntheticQuery(tmp_path / "a").run(4).root, "later")
    repository.materialize(one, DirectoryStore(root))

    def disturbed(*args: object, **named: object) -> None:
        data = (root / "metadata").read_bytes()
        (root / "metadata").write_bytes(data[::-1])
        filling.fill(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(materialize, "fill", disturbed)
    with pytest.raises(TargetChangedError, match="metadata"):
        repository.materialize(later, DirectoryStore(root))


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Restores take so long that they give a sign of life: this file."""
    sign = tmp_path / "target" / SIGN_OF_LIFE

    def fill_after_a_sign(*args: object, **named: object) -> None:
        await_true(sign.exists, "sign of life")
        filling.fill(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(claim, "_PERIOD", 0.01)
    monkeypatch.setattr(materialize, "fill", fill_after_a_sign)
    return sign


def test_a_restore_that_takes_long_gives_signs_of_life(
    repository: Repository, one: Savepoint, tmp_path: Path, slow: Path
) -> None:
    result = repository.materialize(one, DirectoryStore(tmp_path / "target"))

    assert result.files == one.manifest.files.count
    assert not slow.exists()


def test_a_restore_takes_its_own_last_word_for_nobody_elses(
    repository: Repository,
    one: Savepoint,
    tmp_path: Path,
    slow: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[bool] = []
    is_ours, replace_note = Claim._is_ours, DirectoryStore.replace

    def look(self: Claim) -> bool:
        looks.append(is_ours(self))
        return looks[-1]

    def replace_and_be_looked_at(
        self: DirectoryStore, path: str, data: bytes, *, stamp: str
    ) -> None:
        replace_note(self, path, data, stamp=stamp)
        before = len(looks)
        await_true(
            lambda: len(looks) > before or not any(map(is_a_sign, threading.enumerate())),
            "look at the note, nor end of the looks",
        )

    monkeypatch.setattr(Claim, "_is_ours", look)
    monkeypatch.setattr(DirectoryStore, "replace", replace_and_be_looked_at)
    repository.materialize(one, DirectoryStore(tmp_path / "target"))

    assert looks
    assert all(looks)
    assert not slow.exists()


def test_a_restore_that_was_held_up_writes_nothing_more(
    repository: Repository, one: Savepoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = DirectoryStore(tmp_path / "target")
    monkeypatch.setattr(claim, "SILENCE", 0.0)

    with pytest.raises(LeaseLostError, match="another one may have taken over"):
        repository.materialize(one, target)

    assert [entry.path for entry in target.list()] == [MARKER]


def test_a_half_filled_target_in_which_a_query_has_run_is_not_cleared(
    repository: Repository, one: Savepoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "target"
    with failing(monkeypatch):
        repository.materialize(one, DirectoryStore(root))
    SyntheticQuery(root, seed="precious").run(30)

    with pytest.raises(TargetChangedError, match="half restored"):
        repository.materialize(one, DirectoryStore(root))
    assert (root / "commits/29").exists()


def test_what_a_difference_was_about_to_remove_does_not_stop_the_next_restore(
    repository: Repository,
    one: Savepoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = capture(repository, SyntheticQuery(tmp_path / "a").run(9).root, "later")
    target = DirectoryStore(tmp_path / "target")
    repository.materialize(later, target)
    monkeypatch.setattr(materialize, "_clear", lambda *_: None)
    with failing(monkeypatch):
        repository.materialize(one, target)
    monkeypatch.undo()

    assert repository.materialize(one, target).removed_files > 0


@pytest.mark.s3
def test_uploads_of_others_are_never_ended(
    s3_bucket: S3Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3_bucket.child("uploads-of-others")
    keys = ["repository/other", "target/other", "repository/objects/aa/dead", "target/metadata"]
    for key in keys:
        bucket._client.create_multipart_upload(Bucket="tests", Key=f"uploads-of-others/{key}")
    repository = Repository.init(bucket.child("repository"))
    one = capture(repository, SyntheticQuery(tmp_path / "a").run(3).root, "one")
    repository.collect(grace=-60)
    with failing(monkeypatch):
        repository.materialize(one, bucket.child("target"))
    assert {entry.path for entry in bucket.abandoned()} == {*keys} - {keys[2]}

    repository.materialize(one, bucket.child("target"))

    assert {entry.path for entry in bucket.abandoned()} == {*keys[:2]}
    for entry in list(bucket.abandoned()):
        bucket.discard(entry)
