"""Capture, delete and collect at the same time, operation by operation, in every order tried.

The argument is in docs/repository-format.md; this looks for a hole in it with the real code.
"""

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkpoint.savepoint import CaptureRequest, Repository, publish
from sparkpoint.savepoint.errors import LeaseLostError, SavepointError
from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.errors import StorageError
from tests.unit.savepoint.synthetic import SyntheticQuery
from tests.unit.savepoint.turns import SingleThreadStore, Turns, TurnStore

ACTORS = st.sampled_from(["writer", "deleter", "collector"])
# Few long runs of one actor find more than many short ones: a hole needs its steps in a row.
PLANS = st.lists(st.tuples(ACTORS, st.integers(1, 40)), max_size=10)
Plan = list[tuple[str, int]]
GRACE = 60.0
HOUR = 3600.0


def quickly(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "_PAUSE", 0.0)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint, and a repository with an old savepoint and orphans of a killed capture."""
    root = tmp_path_factory.mktemp("template")
    query = SyntheticQuery(root / "ck", snapshot_bytes=300_000, snapshot_every=3).run(4)
    repository = Repository.init(DirectoryStore(root / "repository"))
    repository.capture(DirectoryStore(query.root), CaptureRequest(job="visits", name="parent"))
    query.run(1)
    orphan = repository.capture(
        DirectoryStore(query.root), CaptureRequest(job="orphan", name="gone", parent="none")
    )
    repository.store.delete(orphan.savepoint.path)
    age(root / "repository", HOUR)
    return root


def age(root: Path, seconds: float) -> None:
    then = time.time() - seconds
    for path in root.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def explore(template: Path, plan: Plan, *, parent: str, slow: bool = False) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(template / "repository", f"{folder}/repository")  # copies times too
        turns = Turns(plan)

        def repository(actor: str) -> Repository:
            return Repository(TurnStore(f"{folder}/repository", turns, actor), "0" * 32)

        def capture() -> object:
            request = CaptureRequest(job="visits", name="child", parent=parent)
            return repository("writer").capture(SingleThreadStore(template / "ck"), request)

        def delete() -> None:
            deleter = repository("deleter")
            deleter.delete(deleter.find("parent"))
            if slow:
                age(Path(folder, "repository/deleted"), HOUR)

        results = turns.run(
            {
                "writer": capture,
                "deleter": delete,
                "collector": lambda: repository("collector").collect(grace=GRACE),
            }
        )
        for result in results.values():
            if isinstance(result, BaseException):
                assert isinstance(result, SavepointError | StorageError), repr(result)
        whole = Repository.open(DirectoryStore(f"{folder}/repository"))
        catalogue = whole.list()
        assert not catalogue.unreadable
        assert [v.problems for v in whole.verify(catalogue.savepoints) if not v.good] == []
        if not isinstance(results["writer"], LeaseLostError):
            assert "child" in {each.manifest.name for each in catalogue.savepoints}


@given(plan=PLANS)
@quickly(30)
def test_a_child_of_a_savepoint_that_is_deleted_meanwhile_stays_whole(
    template: Path, plan: Plan
) -> None:
    explore(template, plan, parent="latest")


@given(plan=PLANS)
@quickly(30)
def test_a_child_stays_whole_whatever_time_the_deletion_of_its_parent_takes(
    template: Path, plan: Plan
) -> None:
    explore(template, plan, parent="latest", slow=True)


@given(plan=PLANS)
@quickly(30)
def test_content_that_is_about_to_be_collected_is_never_relied_upon(
    template: Path, plan: Plan
) -> None:
    explore(template, plan, parent="none")


@pytest.mark.parametrize("looked", [5, 7, 8, 10])
@pytest.mark.parametrize("relied", [10, 12, 14])
def test_a_parent_deleted_between_the_collectors_two_looks_still_counts(
    template: Path, looked: int, relied: int
) -> None:
    """The collector has seen no lease yet, the writer relies on its parent, and that is deleted."""
    plan = [("collector", looked), ("writer", relied), ("deleter", 99), ("collector", 999)]
    explore(template, plan, parent="latest")


@pytest.mark.parametrize("looked", range(4, 13))
@pytest.mark.parametrize("relied", [10, 12, 14, 20, 25])
def test_a_parent_whose_deleter_stood_still_after_its_record_still_counts(
    template: Path, looked: int, relied: int
) -> None:
    """The record is older than the grace period as soon as the manifest goes, and tells nothing."""
    plan = [("collector", looked), ("writer", relied), ("deleter", 99), ("collector", 999)]
    explore(template, plan, parent="latest", slow=True)


@pytest.mark.parametrize("relied", [10, 12, 14, 20])
def test_a_writer_slower_than_the_grace_period_is_shielded_by_its_lease(
    template: Path, relied: int
) -> None:
    plan = [("writer", relied), ("deleter", 99), ("collector", 999)]
    explore(template, plan, parent="latest", slow=True)


@pytest.mark.parametrize("looked", range(14, 22))
def test_content_refreshed_after_the_collectors_last_look_is_missed_before_publishing(
    template: Path, looked: int
) -> None:
    """The collector looks at an orphan, the writer refreshes it, and the collector deletes it."""
    plan = [("collector", looked), ("writer", 30), ("collector", 999)]
    explore(template, plan, parent="none")
