"""What somebody else does in the middle of an operation, at the one moment where it matters."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sparkpoint.savepoint import (
    CaptureRequest,
    Repository,
    Savepoint,
    catalogue,
    filling,
    publish,
    transfer,
)
from sparkpoint.savepoint.catalogue import Catalogue
from sparkpoint.savepoint.errors import (
    CollectorBusyError,
    DamagedError,
    LeaseLostError,
    NewerFormatError,
    NoSuchSavepointError,
)
from sparkpoint.savepoint.leases import hold, read_leases
from sparkpoint.savepoint.manifest import parse_manifest
from sparkpoint.savepoint.names import COLLECT_LEASE, deleted_path, lease_path, object_path
from sparkpoint.savepoint.retention import RetentionPlan, RetentionPolicy
from sparkpoint.storage import DirectoryStore, Store
from tests.unit.savepoint.synthetic import SyntheticQuery


def capture(repository: Repository, root: Path, name: str, **more: object) -> Savepoint:
    request = CaptureRequest(job="visits", name=name, **more)  # type: ignore[arg-type]
    return repository.capture(DirectoryStore(root), request).savepoint


def problems(repository: Repository) -> list[tuple[str, ...]]:
    found = repository.list()
    assert not found.unreadable
    return [each.problems for each in repository.verify(found.savepoints) if not each.good]


def test_a_query_that_is_named_twice_is_captured_once(
    repository: Repository, tmp_path: Path
) -> None:
    SyntheticQuery(tmp_path / "ck/a").run(3)
    SyntheticQuery(tmp_path / "ck/b").run(3)

    savepoint = capture(repository, tmp_path / "ck", "one", queries=("a", "a"))

    assert [query.prefix for query in savepoint.manifest.queries] == ["a"]
    assert problems(repository) == []


def test_a_copy_publishes_the_savepoint_that_was_asked_for_though_its_name_changed_hands(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SyntheticQuery(tmp_path / "a").run(3)
    SyntheticQuery(tmp_path / "b", seed="other").run(5)
    savepoint = capture(repository, tmp_path / "a", "nightly", parent="none")
    other = Repository.init(DirectoryStore(tmp_path / "other"))
    real = filling.run_all

    def and_then_replaced(*args: object, **options: object) -> None:
        real(*args, **options)  # type: ignore[arg-type]
        repository.delete(savepoint)
        capture(repository, tmp_path / "b", "nightly", parent="none")

    monkeypatch.setattr(transfer, "run_all", and_then_replaced)

    assert repository.copy(savepoint, other).savepoint.id == savepoint.id
    assert problems(other) == []


def test_deleting_spares_another_savepoint_that_has_the_name_now(
    repository: Repository, tmp_path: Path
) -> None:
    SyntheticQuery(tmp_path / "a").run(3)
    SyntheticQuery(tmp_path / "b", seed="other").run(5)
    old = capture(repository, tmp_path / "a", "nightly", parent="none")
    repository.delete(old)
    new = capture(repository, tmp_path / "b", "nightly", parent="none")

    with pytest.raises(NoSuchSavepointError, match="made anew"):
        repository.delete(old)
    assert [each.id for each in repository.list().savepoints] == [new.id]


def test_a_retention_plan_that_is_carried_out_twice_is_fine(
    repository: Repository, tmp_path: Path
) -> None:
    savepoint = capture(repository, SyntheticQuery(tmp_path / "ck").run(3).root, "one")
    plan = RetentionPlan((), (savepoint,))

    repository.apply(plan)
    repository.apply(plan)

    assert repository.list().savepoints == ()


def test_a_collection_ends_and_frees_though_a_savepoint_is_deleted_at_each_of_its_looks(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orphan = orphans(repository, SyntheticQuery(tmp_path / "a", snapshot_bytes=400_000).run(5).root)
    query = SyntheticQuery(tmp_path / "b", seed="other")
    for number in range(12):
        capture(repository, query.run(1).root, f"n{number}")
    read_all = catalogue.read_all

    def one_fewer(store: Store, **options: object) -> Catalogue:
        repository.delete(read_all(store).savepoints[0])
        return read_all(store, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr("sparkpoint.savepoint.collect.catalogue.read_all", one_fewer)
        patch.setattr(Repository, "list", lambda self: read_all(self.store))
        repository.collect(grace=0)

    assert orphan not in [entry.path for entry in repository.store.list("objects")]
    assert problems(repository) == []


def test_a_record_that_is_swept_while_it_is_renewed_is_written_anew(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = capture(repository, SyntheticQuery(tmp_path / "ck").run(2).root, "one")
    record = deleted_path(one.id)
    repository.store.create(record, b"of a deletion that died")

    def swept(path: str) -> bool:
        repository.store.delete(path)
        return False

    monkeypatch.setattr(repository.store, "touch", swept)
    repository.delete(one)

    assert parse_manifest(repository.store.read(record), record) == one.manifest
    assert repository.list().savepoints == ()


@pytest.mark.parametrize(
    ("policy", "stays"),
    [
        (RetentionPolicy(last=1, tagged=True), ["a", "c"]),
        (RetentionPolicy(last=1, tags=frozenset({"release"})), ["a", "c"]),
        (RetentionPolicy(last=1, tags=frozenset({"other"})), ["c"]),
        (RetentionPolicy(last=1), ["c"]),
    ],
    ids=str,
)
def test_what_was_tagged_since_the_plan_stays_if_the_policy_keeps_it(
    policy: RetentionPolicy, stays: list[str], repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck")
    a, *_ = [capture(repository, query.run(1).root, name) for name in ("a", "b", "c")]
    plan = repository.retain(policy, now=datetime.now(UTC))
    repository.tag(a, ["release"])

    done = repository.apply(plan)

    assert [each.manifest.name for each in repository.list().savepoints] == stays
    assert sorted(kept.savepoint.manifest.name for kept in done.keep) == stays
    assert {each.manifest.name for each in done.remove} == {"a", "b"} - set(stays)
    assert [kept.reasons for kept in done.keep[1:]] == [("tag release",)] * (len(stays) - 1)


def orphans(repository: Repository, root: Path) -> str:
    """Leave a large object behind that no savepoint names; its path."""
    gone = capture(repository, root, "gone", parent="none")
    large = next(r for r in repository.files(gone).files.values() if r.size >= 400_000)
    repository.delete(gone)
    return object_path(large.digest)


def test_nobody_can_build_on_a_savepoint_that_a_collection_has_hurt(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = SyntheticQuery(tmp_path / "ck", snapshot_bytes=400_000).run(5).root
    orphan = orphans(repository, root)
    asked: list[float] = []

    def collecting(store: Store, now: float) -> bool:
        asked.append(now)
        if len(asked) == 1:
            store.delete(orphan)  # the collector looked at it before it was refreshed
            capture(repository, root, "child", parent="latest")
        return False

    monkeypatch.setattr(publish, "_collecting", collecting)

    # The other capture wrote the object anew, so this one finds it and goes on.
    capture(repository, root, "one", parent="none")
    assert {each.manifest.name for each in repository.list().savepoints} == {"child", "one"}
    assert problems(repository) == []


def test_a_capture_whose_content_was_collected_publishes_nothing(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = SyntheticQuery(tmp_path / "ck", snapshot_bytes=400_000).run(5).root
    orphan = orphans(repository, root)

    def collecting(store: Store, now: float) -> bool:
        store.delete(orphan)
        return False

    monkeypatch.setattr(publish, "_collecting", collecting)

    with pytest.raises(LeaseLostError, match="Nothing was published"):
        capture(repository, root, "one", parent="none")
    assert repository.list().savepoints == ()


def test_a_capture_does_not_wait_for_ever_for_a_collection(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = SyntheticQuery(tmp_path / "ck", snapshot_bytes=400_000).run(5).root
    orphans(repository, root)
    monkeypatch.setattr(publish, "_PATIENCE", 0.0)

    with (
        hold(repository.store, "collect", path=COLLECT_LEASE),
        pytest.raises(CollectorBusyError, match="Nothing was published"),
    ):
        capture(repository, root, "one", parent="none")
    assert repository.list().savepoints == ()


@pytest.mark.parametrize("content", [b"", b'{"format": 1}', b'{"format": 99}'])
def test_a_lease_of_somebody_else_that_cannot_be_read_stops_no_capture(
    repository: Repository, tmp_path: Path, content: bytes
) -> None:
    root = SyntheticQuery(tmp_path / "ck", snapshot_bytes=400_000).run(5).root
    orphans(repository, root)
    repository.store.create(lease_path("theirs"), content)

    capture(repository, root, "one", parent="none")

    assert problems(repository) == []


def test_a_capture_that_cannot_tell_whether_a_collection_is_under_way_publishes_nothing(
    repository: Repository, tmp_path: Path
) -> None:
    root = SyntheticQuery(tmp_path / "ck", snapshot_bytes=400_000).run(5).root
    orphans(repository, root)
    repository.store.create(COLLECT_LEASE, b"{")

    with pytest.raises(DamagedError, match=rf"{COLLECT_LEASE} .* not been written for 300 s"):
        capture(repository, root, "one", parent="none")
    assert repository.list().savepoints == ()

    repository.store.delete(COLLECT_LEASE)
    capture(repository, root, "one", parent="none")
    assert problems(repository) == []


@pytest.mark.parametrize("path", [lease_path("theirs"), COLLECT_LEASE])
@pytest.mark.parametrize(
    ("content", "error", "way_out"),
    [(b"{", DamagedError, "delete it"), (b'{"format": 99}', NewerFormatError, "Update Sparkpoint")],
)
def test_a_collection_removes_nothing_while_a_lease_cannot_be_read(
    repository: Repository,
    tmp_path: Path,
    path: str,
    content: bytes,
    error: type[Exception],
    way_out: str,
) -> None:
    root = SyntheticQuery(tmp_path / "ck", snapshot_bytes=400_000).run(5).root
    orphan = orphans(repository, root)
    repository.store.create(path, content)

    with pytest.raises(error, match=rf"^Nothing was collected.*{path}.*{way_out}"):
        repository.collect(grace=0)
    assert orphan in [entry.path for entry in repository.store.list("objects")]

    repository.store.delete(path)
    repository.collect(grace=0)
    assert list(repository.store.list("objects")) == []


def test_a_lease_that_was_taken_over_is_left_to_its_new_holder(
    make_store: Callable[[str], Store],
) -> None:
    store = make_store("store")

    with hold(store, "collect", path=COLLECT_LEASE):
        stamp = store.stat(COLLECT_LEASE).stamp
        successor = hold(store, "collect", path=COLLECT_LEASE, over=stamp)
        lease = successor.__enter__()

    assert [each.path for each in read_leases(store)] == [COLLECT_LEASE]
    lease.release()
    assert read_leases(store) == []
