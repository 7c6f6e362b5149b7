"""The operator around the core, and its user, over a pretended cluster.

A pass is what the shell does: observe, decide, write the record, act. It can be cut off anywhere,
see pods as they were a moment ago, and miss the agent's answer. After every step the promises are
checked that must hold at any time; `settle` then checks where everything ends up in peace.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import assert_never

from sparkpoint.lifecycle import Decision, decide
from sparkpoint.lifecycle.actions import (
    Action,
    DeletePod,
    OpenGate,
    Release,
    RequestStop,
    StartDriver,
    StartWorker,
    StoreRevision,
)
from sparkpoint.lifecycle.naming import driver_name
from sparkpoint.lifecycle.record import Begin, Record, Revision, SinkPolicy
from sparkpoint.lifecycle.world import (
    PodFact,
    Policy,
    RestoreWish,
    Wish,
    WorkerFact,
    World,
)
from tests.unit.lifecycle.promises import Promises
from tests.unit.lifecycle.simulated_cluster import TICK, Cluster
from tests.unit.lifecycle.simulated_pods import Behaviour, BrokenPromiseError, Moves, Stage

__all__ = ["JOB", "LIFE", "POLICY", "Cut", "Simulation", "revision"]

JOB = "visits"
LIFE = "3f9a2c7b"

POLICY = Policy(
    deadline=timedelta(seconds=60),
    backoff_initial=timedelta(seconds=2),
    backoff_max=timedelta(seconds=16),
    reset_after=timedelta(seconds=60),
    stop_timeout=timedelta(seconds=20),
    silence_timeout=timedelta(seconds=30),
    lost_timeout=timedelta(seconds=10),
    delete_timeout=timedelta(seconds=240),
)
"""Short, so that few ticks make an hour."""

_LONGEST = 1500
"""Ticks after which an operation is taken to be stuck: far beyond every timeout above."""


def revision(code: str, size: int = 1, nonce: int = 0, partitions: int = 8) -> Revision:
    """What a spec with this code and size is built from."""
    name = f"{code}-{size}-{nonce}-{partitions}"
    return Revision(
        name=name,
        code=code,
        size=str(size),
        state=str(partitions),
        fixed="rocksdb",
        partitions=partitions,
    )


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the operator dies: before it writes, or after so many actions."""

    writes: bool
    actions: int = 0


@dataclass(slots=True)
class _Seen:
    """What one operator process knows of pods: it may lag behind, and never goes back."""

    pods: tuple[PodFact, ...]
    workers: tuple[WorkerFact, ...]


@dataclass(slots=True)
class Simulation:
    """One job, its user, its operator and the cluster."""

    behaviours: dict[str, Behaviour]
    wish: Wish
    cluster: Cluster = field(init=False)
    record: Record = field(default_factory=Record)
    released: bool = False
    late: list[Action] = field(default_factory=list)
    """What operators that died had yet to do: one that only slept does it later."""
    _wake: datetime | None = None
    _seen: _Seen | None = None
    _insisted: bool = False
    _promises: Promises = field(init=False)

    def __post_init__(self) -> None:
        self.cluster = Cluster(self.behaviours)
        self._promises = Promises(self.cluster)
        if self.wish.adopt is not None:
            # Its sinks hold what it has committed.
            self.cluster.output = len(self.cluster.foreign.ledger)
        self._wake = self.cluster.now

    # --- the user --------------------------------------------------------------------------------

    def edit(self, **changes: object) -> None:
        """Change the spec."""
        if not self.released:
            generation = self.wish.generation + 1
            # mypy cannot check keywords that are passed on.
            self.wish = replace(self.wish, generation=generation, **changes)  # type: ignore[arg-type]
            self._wake = self.cluster.now

    def restore(self, savepoint: str, sink: SinkPolicy, *, ready: bool) -> None:
        """Go to a savepoint."""
        self._promises.restores(savepoint)
        key = f"{savepoint}#{self.wish.generation}"
        wanted = RestoreWish(key=key, savepoint=savepoint, sink=sink, ready=ready)
        # A job starts from one state: the API refuses both.
        self.edit(restore=wanted, adopt=None)

    def complete(self) -> None:
        """The savepoint to go to can be read from now on; the spec does not change."""
        if self.wish.restore is not None:
            self.wish = replace(self.wish, restore=replace(self.wish.restore, ready=True))

    def delete(self) -> None:
        """Delete the job."""
        if self.wish.deleting is None:
            self._promises.deletes()
            self.edit(deleting=self.cluster.now)

    def retain(self, pick: int) -> None:
        """Delete one of the savepoints that nobody refers to."""
        kept = self.record.references()
        if self.wish.restore is not None:
            kept |= {self.wish.restore.savepoint}
        free = sorted(set(self.cluster.savepoints) - kept)
        if free:
            del self.cluster.savepoints[free[pick % len(free)]]

    # --- time ------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Let time pass, and the operator work if it is woken."""
        self.cluster.tick()
        if self._is_woken():
            self.work()
        self.check()

    def _is_woken(self) -> bool:
        now = _Seen(self.cluster.pod_facts(), self.cluster.worker_facts())
        return now != self._seen or (self._wake is not None and self._wake <= self.cluster.now)

    # --- the operator ----------------------------------------------------------------------------

    def work(self, *, lags: bool = False, deaf: bool = False, cut: Cut | None = None) -> None:
        """One pass; it may see pods as at the last one, miss the agent, and be cut off."""
        if self.released:
            return
        world = self._observe(lags=lags, deaf=deaf)
        decision = self._decide(world)
        if cut is not None and not cut.writes:
            self._restart()
            return
        self._write(decision.record)
        most = len(decision.actions) if cut is None else cut.actions
        for action in decision.actions[:most]:
            self._act(action)
        self._wake = None if decision.wake is None else world.now + decision.wake
        if cut is not None:
            self.late += decision.actions[most:]
            self._restart()
        elif self.record.operation is None:
            self.cluster.collect_pods()
        self.check()

    def _restart(self) -> None:
        """The next operator begins with a fresh look."""
        self._seen, self._wake = None, self.cluster.now

    def _observe(self, *, lags: bool, deaf: bool) -> World:
        if self._seen is None or not lags:
            self._seen = _Seen(self.cluster.pod_facts(), self.cluster.worker_facts())
        world = World(
            job=JOB,
            wish=self.wish,
            record=self.record,
            now=self.cluster.now,
            pods=self._seen.pods,
            workers=self._seen.workers,
            revisions=frozenset(self.cluster.revisions),
            newest=self.cluster.newest(),
            life=LIFE,
        )
        run = self.record.run
        if deaf or run is None:
            return world
        return replace(world, agent=self.cluster.agent_fact(world.driver(run)))

    def _decide(self, world: World) -> Decision:
        """Decided twice it is the same, and with what was written it adds nothing."""
        decision = decide(world)
        if decide(world) != decision:
            raise BrokenPromiseError("the same world is decided in two ways")
        again = decide(replace(world, record=decision.record))
        if (again.record, again.actions) != (decision.record, decision.actions):
            raise BrokenPromiseError(f"decided again:\n{decision}\nthen\n{again}")
        return decision

    def _write(self, record: Record) -> None:
        self._promises.writes(self.record, record, self.wish)
        self.record = record
        kept = record.revisions() | {self.wish.revision.name}
        self.cluster.revisions &= kept

    def act_late(self, pick: int) -> None:
        """One thing that a former operator had yet to do."""
        self._act(self.late.pop(pick % len(self.late)), is_late=True)
        self.check()

    def _act(self, action: Action, *, is_late: bool = False) -> None:
        cluster = self.cluster
        match action:
            case StoreRevision(name=name):
                cluster.revisions.add(name)
            case StartDriver(run=run, expect=expect):
                if not is_late and run.revision.name not in cluster.revisions:
                    raise BrokenPromiseError(f"revision {run.revision.name} is not kept")
                cluster.start_driver(run, expect, driver_name(JOB, run))
            case OpenGate(run=run):
                cluster.open_gate(run)
                self._promises.opens(run)
            case RequestStop(run=run, operation=operation, savepoint=savepoint):
                cluster.request_stop(run, operation, savepoint)
            case DeletePod(uid=uid):
                cluster.delete(uid)
            case StartWorker(name=name, task=task):
                cluster.start_worker(name, task)
            case Release():
                self._promises.releases()
                self.released = True
            case _:
                assert_never(action)

    def check(self) -> None:
        """What must hold at any time."""
        self._promises.check(self.record, self.wish, released=self.released)

    # --- peace -----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Faults cease: everything must end where the wish says, and stay there."""
        self._cease()
        began: dict[str, int] = {}
        for passed in range(_LONGEST):
            self.tick()
            self._check_bounded(began, passed)
            if self._is_settled():
                if self._wishes_once_more():
                    continue
                self._check_calm()
                return
        raise BrokenPromiseError(f"no peace after {_LONGEST} ticks: {self.record}")

    def _cease(self) -> None:
        self.cluster.repository_broken = self.cluster.workers_fail = False
        self.cluster.moves = Moves.WELL
        for pod in self.cluster.pods:
            pod.deaf = 0
            if pod.heard or not self.wish.policy.repository:
                # Without a repository, a directory cannot be left to a pod that may live on.
                self.cluster.bring_back(pod)
        self.late.clear()
        self.complete()
        self._restart()

    def _wishes_once_more(self) -> bool:
        """Whether a good wish was given up while there were faults: the user insists, once."""
        held = self.record.held
        if held is None or self._insisted or self._is_bad_wish() or self.wish.suspend:
            return False
        self._insisted = True
        insisted = replace(self.wish.revision, name=f"{self.wish.revision.name}-again")
        self.edit(revision=insisted)
        return True

    def _check_bounded(self, began: dict[str, int], passed: int) -> None:
        operation = self.record.operation
        if operation is None or self._cannot_begin():
            return
        first = began.setdefault(operation.id, passed)
        if (passed - first) * TICK > 8 * POLICY.deadline:
            raise BrokenPromiseError(f"operation does not end: {operation}")

    def _is_settled(self) -> bool:
        if self.wish.deleting is not None:
            return self.released
        if self._cannot_begin():
            return True
        if self.wish.suspend:
            return self.record.run is None or (
                self.record.suspended and self.record.operation is None and not self._reachable()
            )
        if self._is_refused():
            # It goes on as it was, whatever that was.
            return self.record.operation is None or self.record.failures > 3
        if self._is_stranded():
            # It is tried again, unless the policy leaves it alone before.
            return self.record.failures > 3 or self._has_ended()
        return self._runs_well() or self._has_ended() or self._can_do_no_better()

    def _is_stranded(self) -> bool:
        """Sinks cannot be rewound, and what was given up does not go on from the stable state."""
        run = self.record.run
        if run is None or run.opened or self.cluster.rewinds:
            return False
        return run.origin.sink == "Rewind" and run.given_up is None

    def _cannot_begin(self) -> bool:
        """Nothing was started, and with this wish nothing can be."""
        if self.record.run is not None:
            return False
        if self.wish.adopt is not None and not self.wish.policy.repository:
            return True
        return self.wish.restore_key is not None and self._is_bad_wish()

    def _is_refused(self) -> bool:
        """Other partitions cannot be had without a repository, nor before the first commit."""
        run, wish = self.record.run, self.wish
        if run is None or not (run.opened or run.left or run.source.savepoint):
            return False
        refused = run.revision.state != wish.revision.state
        nothing = run.source.begin is Begin.EMPTY and not self._length()
        kept = wish.policy.mode != "Stateless" and (nothing or not wish.policy.repository)
        return refused and kept and self._is_restored()

    def _has_ended(self) -> bool:
        """The script has done its work, or the job was left alone as its policy wants."""
        run, held = self.record.run, self.record.held
        if not self.record.finished or run is None:
            return False
        if held is not None and (held.reason == "GaveUp" or self._is_bad_wish()):
            return True
        return run.revision == self.wish.revision and self._is_restored()

    def _reachable(self) -> bool:
        return any(not pod.cut for pod in self.cluster.writers())

    def _runs_well(self) -> bool:
        """What runs is what is wished, or what a bad wish was rolled back to."""
        run = self.record.run
        if run is None or self.record.operation is not None:
            return False
        pod = self.cluster.driver(run)
        if pod is None or pod.stage is not Stage.RUNNING or pod.deleting is not None:
            return False
        if pod.cut and not pod.heard:
            return False
        wished = run.revision == self.wish.revision and self._is_restored()
        if wished and self.behaviours[run.revision.code] is Behaviour.ENDS:
            # With Always it is run again and again.
            return self.wish.policy.restart == "Always" or not self.cluster.input
        return wished or self.record.held is not None

    def _is_restored(self) -> bool:
        restore = self.wish.restore
        return restore is None or restore.key == self.record.restored

    def _is_bad_wish(self) -> bool:
        if self.behaviours[self.wish.revision.code] not in (Behaviour.GOOD, Behaviour.ENDS):
            return True
        restore = self.wish.restore
        if restore is not None and restore.sink == "Rewind" and not self.cluster.rewinds:
            return True
        # Code of its own kind may have written what the wish wants to go to.
        return Behaviour.INCOMPATIBLE in self.cluster.committers

    def _can_do_no_better(self) -> bool:
        """A wish that cannot be had, and nothing to fall back to: it is tried again for ever."""
        return self._is_bad_wish() and self.record.failures > 3

    def _check_calm(self) -> None:
        """Nothing more is done to a job that is as it should be."""
        ends = self.behaviours[self.wish.revision.code] is Behaviour.ENDS
        if self.released or ends or self._is_refused() or self._cannot_begin():
            return
        if self._is_stranded():
            return
        if self._is_bad_wish():
            self._check_undisturbed()
            return
        if self.record.held is not None and not self.wish.suspend:
            raise BrokenPromiseError(f"a good wish is held: {self.record}")
        sequence, before = self.record.sequence, self._length()
        for _ in range(60):
            self.cluster.tick()
            if self._is_woken():
                world = self._observe(lags=False, deaf=False)
                decision = self._decide(world)
                if decision.actions:
                    raise BrokenPromiseError(
                        f"a healthy job is left alone, but: {decision.actions}"
                    )
                self._write(decision.record)
                self._wake = None if decision.wake is None else world.now + decision.wake
        if self.record.sequence != sequence:
            raise BrokenPromiseError(f"a healthy job gets an operation: {self.record}")
        runs = not self.wish.suspend and self.cluster.input
        if runs and self._length() <= before:
            raise BrokenPromiseError("a healthy job does not go on")

    def _check_undisturbed(self) -> None:
        """A bad wish that is tried again and again does no harm to what runs instead of it."""
        run = self.record.run
        held = self.record.held
        if run is None or self.wish.suspend or held is None or held.reason == "SavepointFailed":
            return
        if self.behaviours[run.revision.code] is not Behaviour.GOOD or not self._runs_well():
            return
        before = self._length()
        for _ in range(150):
            self.tick()
        if self.record.run != run:
            raise BrokenPromiseError(f"a bad wish disturbs {run}: {self.record}")
        if self.cluster.input and self._length() < before + 140:
            raise BrokenPromiseError(f"a bad wish keeps {run} from going on: {self.record}")

    def _length(self) -> int:
        run = self.record.run
        directory = self.cluster.directories.get(run.epoch) if run is not None else None
        return len(directory.ledger) if directory is not None else 0
