"""One order of age for everybody, one rule for what a savepoint goes by, one request per file."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint, catalogue
from sparkpoint.savepoint.capture import capture
from sparkpoint.savepoint.catalogue import AmbiguousReferenceError
from sparkpoint.savepoint.errors import AmbiguousError, NoSuchSavepointError
from sparkpoint.savepoint.leases import Lease, hold, read_leases
from sparkpoint.savepoint.retention import RetentionPolicy, plan_retention
from sparkpoint.storage import DirectoryStore
from tests.unit.savepoint.synthetic import SyntheticQuery


@pytest.fixture
def checkpoint(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(SyntheticQuery(tmp_path / "ck").run(3).root)


def _capture(
    repository: Repository,
    checkpoint: DirectoryStore,
    name: str,
    *,
    ahead: timedelta = timedelta(0),
    tags: tuple[str, ...] = (),
) -> Savepoint:
    """A savepoint by a host whose clock is fast, or slow."""
    moment = (datetime.now(UTC) + ahead).timestamp()
    request = CaptureRequest(job="visits", name=name, parent="none", tags=tags)
    return capture(repository.store, checkpoint, request, clock=lambda: moment).savepoint


def _newest(repository: Repository) -> str:
    found = repository.newest(namespace="default", job="visits")
    assert found is not None
    listed = repository.list().savepoints
    plan = plan_retention(listed, RetentionPolicy(last=1), now=datetime.now(UTC))
    agreed = {found.key, listed[-1].key, plan.keep[0].savepoint.key}
    assert len(agreed) == 1
    assert plan.keep[0].reasons[0] == "newest"
    return found.manifest.name


def test_a_copy_of_an_old_savepoint_is_not_the_newest(
    repository: Repository,
    checkpoint: DirectoryStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = Repository.init(DirectoryStore(tmp_path / "elsewhere"))
    old = []
    for hours in (1, 2):
        then = timedelta(hours=-hours)
        with monkeypatch.context() as patch:
            moment = (datetime.now(UTC) + then).timestamp()
            patch.setattr(Lease, "now", lambda _, moment=moment: moment)
            old.append(_capture(elsewhere, checkpoint, f"old-{hours}", ahead=then))
    _capture(repository, checkpoint, "here")

    for savepoint in old:
        elsewhere.copy(savepoint, repository)

    assert _newest(repository) == "here"
    since = [each.manifest.name for each in catalogue.published_since(repository.store, 0)]
    assert since == ["here", "old-1", "old-2"]


def test_a_fast_clock_does_not_make_a_savepoint_the_newest_for_long(
    repository: Repository, checkpoint: DirectoryStore
) -> None:
    _capture(repository, checkpoint, "fast", ahead=timedelta(hours=5))
    _capture(repository, checkpoint, "later")

    assert _newest(repository) == "later"


@pytest.mark.parametrize("hours", [5, -5, -400_000])
def test_a_savepoint_by_a_host_whose_clock_is_wrong_has_the_time_of_the_store(
    repository: Repository, checkpoint: DirectoryStore, hours: int
) -> None:
    _capture(repository, checkpoint, "before")
    made = _capture(repository, checkpoint, "wrong", ahead=timedelta(hours=hours))

    assert _newest(repository) == "wrong"
    assert abs(datetime.now(UTC) - made.manifest.created) < timedelta(minutes=5)


def test_the_newest_is_found_without_reading_the_history(
    repository: Repository, checkpoint: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        _capture(repository, checkpoint, f"s{number}")
    read = _counted(monkeypatch, "open_stamped")

    found = repository.newest(namespace="default", job="visits")

    assert found is not None
    assert found.manifest.name == "s4"
    assert read.total() <= 2


def test_a_manifest_or_a_lease_costs_one_request(
    repository: Repository, checkpoint: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    savepoint = _capture(repository, checkpoint, "one")
    with hold(repository.store, "work") as lease:
        asked = _counted(monkeypatch, "open_stamped", "read", "read_stamped", "stat")
        again = catalogue.read_savepoint(repository.store, savepoint.path)
        (seen,) = read_leases(repository.store)
        counts = dict(asked)

    assert counts == {savepoint.path: 1, lease.path: 1}
    assert (again.id, seen.path) == (savepoint.id, lease.path)
    assert again.published == repository.store.stat(savepoint.path).modified


def test_of_savepoints_that_are_known_only_what_is_new_is_read(
    repository: Repository, checkpoint: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, anew, _ = [_capture(repository, checkpoint, name) for name in ("gone", "anew", "same")]
    known = repository.list().savepoints
    repository.delete(gone)
    repository.delete(anew)
    again = _capture(repository, checkpoint, "anew", tags=("t",))
    read = _counted(monkeypatch, "open_stamped")

    found = catalogue.read_all(repository.store, known=known)

    assert dict(read) == {again.path: 1}
    assert found == repository.list()


def test_a_collection_reads_every_manifest_once(
    repository: Repository, checkpoint: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [_capture(repository, checkpoint, name) for name in ("a", "b", "c")]
    read = _counted(monkeypatch, "open_stamped")

    repository.collect(grace=0)

    assert {path: n for path, n in read.items() if path.startswith("savepoints/")} == {
        savepoint.path: 1 for savepoint in made
    }


def _counted(monkeypatch: pytest.MonkeyPatch, *methods: str) -> Counter[str]:
    """Which files are asked for by these."""
    counts: Counter[str] = Counter()

    def wrap(method: str) -> None:
        real = getattr(DirectoryStore, method)

        def counting(store: DirectoryStore, path: str, **more: int) -> object:
            counts[path] += 1
            return real(store, path, **more)

        monkeypatch.setattr(DirectoryStore, method, counting)

    for method in methods:
        wrap(method)
    return counts


def test_a_savepoint_goes_by_tag_and_by_four_digits_also_as_a_parent(
    repository: Repository, checkpoint: DirectoryStore
) -> None:
    one = _capture(repository, checkpoint, "one", tags=("gold",))

    for number, reference in enumerate(("gold", one.id[:4], "default/visits/one")):
        request = CaptureRequest(job="other", name=f"child-{number}", parent=reference)
        child = repository.capture(checkpoint, request).savepoint
        assert child.manifest.parent is not None
        assert child.manifest.parent.id == one.id
        assert repository.find(reference).tags == ("gold",)
    with pytest.raises(NoSuchSavepointError):
        repository.find(one.id[:3])


def test_a_tag_that_is_another_ones_name_is_not_guessed_at(
    repository: Repository, checkpoint: DirectoryStore
) -> None:
    _capture(repository, checkpoint, "one")
    _capture(repository, checkpoint, "two", tags=("one",))

    with pytest.raises(AmbiguousError) as caught:
        repository.find("one")

    assert isinstance(caught.value, AmbiguousReferenceError)
    assert caught.value.candidates == ("default/visits/one", "default/visits/two")


def test_a_typing_error_in_a_full_name_is_answered_with_the_nearest(
    repository: Repository, checkpoint: DirectoryStore
) -> None:
    _capture(repository, checkpoint, "before-upgrade")

    with pytest.raises(NoSuchSavepointError, match="Did you mean 'before-upgrade'"):
        repository.find("default/visits/before-upgrad")


def test_a_job_without_its_namespace_is_that_of_any_namespace_and_no_other(
    repository: Repository, checkpoint: DirectoryStore
) -> None:
    _capture(repository, checkpoint, "nightly")
    request = CaptureRequest(namespace="shop", job="orders", name="nightly", parent="none")
    of_orders = repository.capture(checkpoint, request).savepoint

    assert repository.find("nightly", job="orders").id == of_orders.id
    assert [each.key for each in repository.list(job="orders").savepoints] == [of_orders.key]
    with pytest.raises(NoSuchSavepointError):
        repository.find("nightly", job="order")
