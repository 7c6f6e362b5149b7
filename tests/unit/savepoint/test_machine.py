"""Whatever a person does with two repositories, in any order: nothing that exists is ever hurt."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint
from sparkpoint.storage import DirectoryStore
from tests.unit.savepoint.synthetic import SyntheticQuery

_PICK = st.integers(0, 1000)


class Repositories(RuleBasedStateMachine):
    """A query that goes on, its repository, a second one for copies, and what must be in both."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="machine-"))
        self.query = SyntheticQuery(
            self.folder / "ck", snapshot_bytes=300_000, snapshot_every=3, retain=4
        ).run(2)
        self.home = Repository.init(DirectoryStore(self.folder / "home"))
        self.vault = Repository.init(DirectoryStore(self.folder / "vault"))
        self.here: dict[str, Savepoint] = {}
        self.there: dict[str, Savepoint] = {}
        self.tags: dict[str, set[str]] = {}
        self.number = 0

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def _any(self, pick: int) -> Savepoint:
        return self.here[sorted(self.here)[pick % len(self.here)]]

    @rule(batches=st.integers(1, 4))
    def go_on(self, batches: int) -> None:
        self.query.run(batches)

    @rule(parent=st.sampled_from(["continued", "latest", "none"]))
    def capture(self, parent: str) -> None:
        self.number += 1
        request = CaptureRequest(job="visits", name=f"n{self.number}", parent=parent)
        made = self.home.capture(DirectoryStore(self.query.root), request).savepoint
        self.here[made.id] = made

    @precondition(lambda self: self.here)
    @rule(pick=_PICK, tag=st.sampled_from(["gold", "keep"]))
    def tag(self, pick: int, tag: str) -> None:
        savepoint = self._any(pick)
        self.home.tag(savepoint, [tag])
        self.tags.setdefault(savepoint.id, set()).add(tag)

    @precondition(lambda self: self.here)
    @rule(pick=_PICK)
    def delete(self, pick: int) -> None:
        savepoint = self._any(pick)
        self.home.delete(savepoint)
        del self.here[savepoint.id]
        self.tags.pop(savepoint.id, None)

    @precondition(lambda self: self.here)
    @rule(pick=_PICK)
    def copy(self, pick: int) -> None:
        savepoint = self._any(pick)
        assert self.home.copy(savepoint, self.vault).savepoint.id == savepoint.id
        self.there[savepoint.id] = savepoint

    @precondition(lambda self: self.there)
    @rule(pick=_PICK)
    def delete_copy(self, pick: int) -> None:
        identity = sorted(self.there)[pick % len(self.there)]
        self.vault.delete(self.there.pop(identity))

    # Nothing else runs meanwhile, so no grace is needed.
    @rule()
    def collect(self) -> None:
        self.home.collect(grace=0)
        self.vault.collect(grace=0)

    @precondition(lambda self: self.here)
    @rule(pick=_PICK)
    def restore(self, pick: int) -> None:
        savepoint = self._any(pick)
        target = self.folder / "target"
        self.home.materialize(savepoint, DirectoryStore(target))
        shutil.rmtree(target)

    @invariant()
    def everything_is_whole(self) -> None:
        for repository, expected in ((self.home, self.here), (self.vault, self.there)):
            found = repository.list()
            assert not found.unreadable
            assert {each.id for each in found.savepoints} == set(expected)
            checked = repository.verify(found.savepoints)
            assert [each.problems for each in checked if not each.good] == []
        tagged = {each.id: set(each.tags) for each in self.home.list().savepoints if each.tags}
        assert tagged == self.tags


def _run(*, examples: int, steps: int, **more: Any) -> None:
    run_state_machine_as_test(
        Repositories,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            **more,
        ),
    )


def test_any_order_of_commands_leaves_both_repositories_whole() -> None:
    _run(examples=5, steps=10, phases=[Phase.generate], derandomize=True, database=None)


@pytest.mark.soak
def test_many_orders_of_commands_leave_both_repositories_whole() -> None:
    _run(examples=300, steps=40)
