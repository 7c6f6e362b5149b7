"""The whole machine, explored: any order of edits, faults and crashes of the operator.

What must hold at any time, and where everything must end once the faults cease, is in
simulation.py. A failure is shown as the steps that lead to it.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sparkpoint.lifecycle.record import Adoption, Result, SinkPolicy
from sparkpoint.lifecycle.world import Wish
from tests.unit.lifecycle.simulated_pods import Behaviour, Moves, Pod
from tests.unit.lifecycle.simulation import POLICY, Cut, Simulation, revision

_CODES = {
    "a": Behaviour.GOOD,
    "b": Behaviour.GOOD,
    "c": Behaviour.GOOD,
    "crash": Behaviour.CRASHES_AT_START,
    "soon": Behaviour.CRASHES_SOON,
    "never": Behaviour.NEVER_COMMITS,
    "missing": Behaviour.IMAGE_MISSING,
    "other": Behaviour.INCOMPATIBLE,
    "ends": Behaviour.ENDS,
}
_GOOD = st.sampled_from(["a", "b", "c"])
_ANY = st.sampled_from(sorted(_CODES))
_PICK = st.integers(0, 5)
_SINKS: st.SearchStrategy[SinkPolicy] = st.sampled_from(["Resume", "Rewind"])


def event(**arguments: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Any]:
    """A rule after which some time may pass: most trouble needs the operator in the midst of it."""

    # The types of rule's overloads do not take keywords that are passed on.
    as_rule: Any = rule

    def decorate(function: Callable[..., None]) -> Any:
        @wraps(function)
        def happens(self: "Machine", then: int, **drawn: Any) -> None:
            function(self, **drawn)
            self.time(then)

        return as_rule(then=st.integers(0, 15), **arguments)(happens)

    return decorate


class Machine(RuleBasedStateMachine):
    """One job's life."""

    simulation: Simulation

    @initialize(
        code=st.one_of(_GOOD, _GOOD, _ANY),
        ticks=st.integers(0, 12),
        adopts=st.sampled_from([False, False, True]),
        rewinds=st.sampled_from([True, True, False]),
    )
    def create(self, code: str, ticks: int, adopts: bool, rewinds: bool) -> None:
        adopt = Adoption(location="s3://old/visits") if adopts else None
        wish = Wish(generation=1, revision=revision(code), adopt=adopt, policy=POLICY)
        self.simulation = Simulation(dict(_CODES), wish)
        self.simulation.cluster.rewinds = rewinds
        self.time(ticks)

    # --- time and the operator -------------------------------------------------------------------

    @rule(ticks=st.integers(1, 12))
    def time(self, ticks: int) -> None:
        for _ in range(ticks):
            self.simulation.tick()

    @rule(ticks=st.integers(20, 60))
    def long_time(self, ticks: int) -> None:
        self.time(ticks)

    @event(lags=st.booleans(), deaf=st.booleans())
    def operator_looks(self, lags: bool, deaf: bool) -> None:
        self.simulation.work(lags=lags, deaf=deaf)

    @event(writes=st.booleans(), actions=st.integers(0, 3))
    def operator_dies(self, writes: bool, actions: int) -> None:
        self.simulation.work(cut=Cut(writes=writes, actions=actions))

    @precondition(lambda self: self.simulation.late)
    @event(pick=_PICK)
    def a_late_action_of_a_former_operator(self, pick: int) -> None:
        self.simulation.act_late(pick)

    # --- the user --------------------------------------------------------------------------------

    @event(code=_ANY, size=st.integers(1, 2), nonce=st.integers(0, 1))
    def change_revision(self, code: str, size: int, nonce: int) -> None:
        self.simulation.edit(revision=revision(code, size, nonce))

    @event(code=_GOOD)
    def change_code(self, code: str) -> None:
        self.simulation.edit(revision=revision(code))

    @event(suspend=st.booleans())
    def suspend(self, suspend: bool) -> None:
        self.simulation.edit(suspend=suspend)

    @precondition(lambda self: self.simulation.cluster.savepoints)
    @event(pick=_PICK, sink=_SINKS, ready=st.sampled_from([True, True, False]))
    def restore(self, pick: int, sink: SinkPolicy, ready: bool) -> None:
        names = sorted(self.simulation.cluster.savepoints)
        self.simulation.restore(names[pick % len(names)], sink, ready=ready)

    @event()
    def savepoint_is_complete(self) -> None:
        self.simulation.complete()

    @event()
    def withdraw_restore(self) -> None:
        self.simulation.edit(restore=None)

    @event(code=st.one_of(_GOOD, _GOOD, _ANY), partitions=st.sampled_from([4, 8, 16]))
    def change_partitions(self, code: str, partitions: int) -> None:
        self.simulation.edit(revision=revision(code, partitions=partitions))

    @event(how=st.sampled_from([Moves.WELL, *Moves]))
    def state_can_be_moved(self, how: Moves) -> None:
        self.simulation.cluster.moves = how

    @event(
        mode=st.sampled_from(["Savepoint", "Savepoint", "LastCommit", "Stateless"]),
        compatibility=st.sampled_from(["Enforce", "Skip"]),
        rollback=st.sampled_from([True, True, False]),
        rollback_to=st.sampled_from(["Savepoint", "Latest"]),
        repository=st.sampled_from([True, True, False]),
        restart=st.sampled_from(["OnFailure", "OnFailure", "Always", "Never"]),
        max_failures=st.sampled_from([None, None, 2]),
    )
    def change_policy(self, **changes: Any) -> None:
        self.simulation.edit(policy=replace(self.simulation.wish.policy, **changes))
        if not changes["repository"]:
            self.simulation.cluster.lay_to_rest()

    @event(sure=st.integers(0, 6), final=st.booleans(), retain=st.booleans())
    def delete(self, sure: int, final: bool, retain: bool) -> None:
        if sure == 6:
            policy = self.simulation.wish.policy
            self.simulation.edit(
                policy=replace(policy, final_savepoint=final, retain_checkpoint=retain)
            )
            self.simulation.delete()

    # --- faults ----------------------------------------------------------------------------------

    def _pod(self, pick: int) -> Pod | None:
        pods = [pod for pod in self.simulation.cluster.listed() if not pod.over]
        return pods[pick % len(pods)] if pods else None

    @event(pick=_PICK)
    def out_of_memory(self, pick: int) -> None:
        pod = self._pod(pick)
        if pod is not None and pod.alive:
            self.simulation.cluster.end(pod, "OOMKilled", code=137)

    @event(pick=_PICK)
    def evict(self, pick: int) -> None:
        pod = self._pod(pick)
        if pod is not None:
            self.simulation.cluster.delete(pod.uid)

    @event(pick=_PICK, lives=st.integers(0, 8))
    def delete_by_force(self, pick: int, lives: int) -> None:
        pods = self.simulation.cluster.listed()
        if not pods:
            return
        pod = pods[pick % len(pods)]
        # Without a repository it says that the process has ended, or does as soon as it is told.
        if self.simulation.wish.policy.repository or not (pod.cut and pod.alive):
            self.simulation.cluster.vanish(pod, lives=lives)

    @event(pick=_PICK)
    def delete_worker(self, pick: int) -> None:
        workers = self.simulation.cluster.workers
        if workers:
            del workers[sorted(workers)[pick % len(workers)]]

    @event(pick=_PICK, survives=st.booleans(), heard=st.booleans())
    def lose_node(self, pick: int, survives: bool, heard: bool) -> None:
        pod = self._pod(pick)
        if pod is not None and not pod.cut:
            self.simulation.cluster.lose(pod, survives=survives, heard=heard and survives)

    @event(pick=_PICK)
    def node_returns(self, pick: int) -> None:
        lost = [pod for pod in self.simulation.cluster.pods if pod.cut]
        if lost:
            self.simulation.cluster.bring_back(lost[pick % len(lost)])

    @event(pick=_PICK, ticks=st.integers(1, 30))
    def agent_is_silent(self, pick: int, ticks: int) -> None:
        pod = self._pod(pick)
        if pod is not None:
            pod.deaf = ticks

    @event(broken=st.booleans(), fail=st.booleans())
    def storage_fails(self, broken: bool, fail: bool) -> None:
        cluster = self.simulation.cluster
        cluster.repository_broken, cluster.workers_fail = broken, fail

    @event(there=st.booleans())
    def input_is_there(self, there: bool) -> None:
        self.simulation.cluster.input = there

    @event(pick=_PICK)
    def retention(self, pick: int) -> None:
        self.simulation.retain(pick)
        self.simulation.check()

    def teardown(self) -> None:
        if hasattr(self, "simulation"):
            self.simulation.settle()


def _explore(examples: int, steps: int, *, same: bool) -> None:
    """`same`: the same lives every time, so that a suite that passes passes again."""
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=same,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_worker_that_never_starts_is_ended_before_a_deleted_job_is_let_go() -> None:
    """Seldom in the exploration: a trial that waits for its image when the job is deleted."""
    wish = Wish(generation=1, revision=revision("a"), policy=POLICY)
    simulation = Simulation(dict(_CODES), wish)
    for suspend in (False, True, False):
        simulation.edit(suspend=suspend)
        for _ in range(30):
            simulation.tick()
    simulation.edit(revision=revision("missing"))
    for _ in range(3):
        simulation.tick()
    assert [worker.stuck for worker in simulation.cluster.workers.values()] == ["ImagePullBackOff"]

    simulation.delete()
    simulation.settle()

    assert simulation.released


@pytest.mark.parametrize("cut", [False, True], ids=["node answers", "node is lost"])
@pytest.mark.parametrize("repository", [True, False])
@pytest.mark.parametrize("lives", [0, 3, 8])
def test_a_driver_that_is_deleted_by_force_may_live_on(
    lives: int, repository: bool, cut: bool
) -> None:
    """Seldom in the exploration: its process commits while its object is gone."""
    policy = replace(POLICY, repository=repository)
    wish = Wish(generation=1, revision=revision("a"), policy=policy)
    simulation = Simulation(dict(_CODES), wish)
    for _ in range(20):
        simulation.tick()
    [driver] = simulation.cluster.writers()
    if cut:
        simulation.cluster.lose(driver, survives=repository)

    simulation.cluster.vanish(driver, lives=lives)
    for _ in range(80):
        simulation.tick()

    assert simulation.record.run is not None
    assert simulation.record.run.epoch == (2 if repository else 1)
    assert simulation.record.operation is None
    simulation.settle()


def test_a_driver_whose_end_was_seen_leaves_its_directory_to_the_next() -> None:
    wish = Wish(generation=1, revision=revision("a"), policy=POLICY)
    simulation = Simulation(dict(_CODES), wish)
    for _ in range(20):
        simulation.tick()
    [driver] = simulation.cluster.writers()

    simulation.cluster.delete(driver.uid)
    for _ in range(20):
        simulation.tick()

    run = simulation.record.run
    assert run is not None
    assert (run.epoch, run.attempt) == (1, 2)
    simulation.settle()


def test_a_rollback_ends_with_a_job_that_runs_also_if_sinks_cannot_be_rewound() -> None:
    """Seldom in the exploration: all of it in peace."""
    wish = Wish(generation=1, revision=revision("a"), policy=POLICY)
    simulation = Simulation(dict(_CODES), wish)
    simulation.cluster.rewinds = False
    for _ in range(60):
        simulation.tick()

    simulation.edit(revision=revision("soon"))
    simulation.settle()

    run = simulation.record.run
    assert run is not None
    assert (run.revision, run.opened) == (revision("a"), True)
    assert simulation.record.last is not None
    assert simulation.record.last.result is Result.SUCCEEDED


@pytest.mark.parametrize(
    ("code", "moves", "number"),
    [
        pytest.param("a", Moves.WELL, 16, id="the same code"),
        pytest.param("b", Moves.WELL, 16, id="other code"),
        pytest.param("soon", Moves.WELL, 8, id="code that crashes"),
        pytest.param("a", Moves.REFUSED, 8, id="refused"),
        pytest.param("a", Moves.FAILS, 8, id="not made"),
    ],
)
def test_state_is_in_the_partitions_of_what_runs(code: str, moves: Moves, number: int) -> None:
    """Seldom in the exploration: all of it in peace, and the operator dies at every pass."""
    wish = Wish(generation=1, revision=revision("a"), policy=POLICY)
    simulation = Simulation(dict(_CODES), wish)
    for _ in range(40):
        simulation.tick()

    simulation.cluster.moves = moves
    simulation.edit(revision=revision(code, partitions=16))
    for passed in range(150):
        simulation.work(cut=Cut(writes=passed % 3 > 0, actions=passed % 2))
        simulation.tick()

    run = simulation.record.run
    assert run is not None
    directory = simulation.cluster.directories[run.epoch]
    assert (run.revision.partitions, directory.partitions) == (number, number)
    assert directory.ledger == list(range(len(directory.ledger)))
    simulation.settle()


def test_promises_hold_in_any_order_of_edits_faults_and_crashes() -> None:
    _explore(72, 40, same=True)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_promises_hold_in_many_more_orders() -> None:
    _explore(5000, 60, same=False)
