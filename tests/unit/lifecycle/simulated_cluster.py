"""A pretended cluster with an exact ledger: pods, agents, epoch directories, savepoints, workers.

It carries out what the core decides, tick by tick, and refuses what no cluster could survive: a
second writer in a directory, or a driver that is to restore a savepoint which is not there. A batch
is the offset that it consumed, so a directory is right if it holds 0, 1, 2, … and nothing else.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum

from sparkpoint.lifecycle.actions import Capture, Rehearse, RemoveData, Task
from sparkpoint.lifecycle.record import Begin, Revision, Run
from sparkpoint.lifecycle.world import (
    AgentFact,
    DriverExit,
    PodFact,
    QueryFact,
    StopFact,
    WorkerFact,
    WorkerState,
)

__all__ = [
    "BEGINNING",
    "TICK",
    "Behaviour",
    "BrokenPromiseError",
    "Cluster",
    "Directory",
    "Pod",
    "Stage",
]

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(seconds=2)
_GRACE = 2
"""Ticks between a pod's deletion and its end."""
_QUERY = "visits"


class BrokenPromiseError(AssertionError):
    """A promise of the operator does not hold."""


class Behaviour(Enum):
    """What the code of a revision does."""

    GOOD = "good"
    CRASHES_AT_START = "crashes at start"
    CRASHES_SOON = "crashes after two commits"
    NEVER_COMMITS = "never commits"
    IMAGE_MISSING = "image missing"
    INCOMPATIBLE = "cannot read what others wrote"
    ENDS = "ends well after five commits"


class Stage(Enum):
    """How far a driver's process is."""

    PENDING = "pending"
    STARTING = "starting"
    GATED = "gated"
    RUNNING = "running"
    STANDING = "stopping"
    ENDED = "ended"


@dataclass(slots=True)
class Stop:
    """A stop that an agent was asked for."""

    operation: str
    savepoint: str | None
    state: str = "Running"
    touched: bool = False
    empty: bool = False
    message: str = ""


@dataclass(slots=True)
class Pod:
    """A driver or executor: its object in Kubernetes, and its process, which may outlive it."""

    name: str
    uid: str
    role: str
    run: Run
    created: datetime
    expect: str = "any"
    stage: Stage = Stage.PENDING
    admitted: bool = False
    position: int = 0
    commits: int = 0
    last_commit: datetime | None = None
    stop: Stop | None = None
    exit: DriverExit | None = None
    over: bool = False
    """Kubernetes knows that the process has ended."""
    listed: bool = True
    deleting: int | None = None
    """Ticks since its deletion was asked for."""
    cut: bool = False
    """Its node does not answer: nothing about it can be changed or known."""
    lost_since: datetime | None = None
    heard: bool = False
    """Its agent answers although its node does not."""
    deaf: int = 0
    """Ticks for which its agent does not answer."""
    began: bool = False
    """It has started its query."""
    left: bool = False
    """It was left behind: what it commits from then on is void."""

    @property
    def alive(self) -> bool:
        """The process runs, whatever Kubernetes knows."""
        return self.stage is not Stage.ENDED

    @property
    def writes(self) -> bool:
        """It may write into its directory."""
        return self.alive and self.admitted and self.role == "driver"


@dataclass(slots=True)
class Directory:
    """An epoch directory."""

    ledger: list[int] = field(default_factory=list)
    begun: bool = False
    """It holds something: restored, or a query was started there."""
    written_by: str = ""
    """Code of the last revision that committed there."""
    certain: int = 0
    """Length of the ledger without what pods on lost nodes wrote."""


@dataclass(slots=True)
class Savepoint:
    """A copy of a ledger."""

    epoch: int
    ledger: tuple[int, ...]
    written_by: str


@dataclass(slots=True)
class Worker:
    """A worker pod."""

    name: str
    task: Task
    created: datetime
    age: int = 0
    state: WorkerState = WorkerState.RUNNING
    answer: str = ""
    message: str = ""
    stuck: str = ""
    batches: dict[str, int] = field(default_factory=dict)


class Cluster:
    """Everything outside the operator."""

    def __init__(self, behaviours: dict[str, Behaviour]) -> None:
        self.now = BEGINNING
        self.behaviours = behaviours
        self.pods: list[Pod] = []
        self.directories: dict[int, Directory] = {}
        self.savepoints: dict[str, Savepoint] = {}
        self.captured: set[str] = set()
        """Every savepoint that there ever was."""
        self.committers: set[Behaviour] = set()
        self.workers: dict[str, Worker] = {}
        self.revisions: set[str] = set()
        self.repository_broken = False
        self.workers_fail = False
        self.input = True
        self.removed = False
        self._uids = 0

    # --- what is seen ----------------------------------------------------------------------------

    def listed(self, *, role: str | None = None) -> list[Pod]:
        """Pods that Kubernetes shows."""
        return [pod for pod in self.pods if pod.listed and role in (None, pod.role)]

    def writers(self) -> list[Pod]:
        """Processes that may write, on whatever node."""
        return [pod for pod in self.pods if pod.writes]

    def driver(self, run: Run) -> Pod | None:
        """The driver pod of an attempt, as Kubernetes shows it."""
        found = (pod for pod in self.listed(role="driver") if _same(pod.run, run))
        return next(found, None)

    def pod_facts(self) -> tuple[PodFact, ...]:
        """Pods as the operator sees them."""
        return tuple(_pod_fact(pod, self._stuck(pod)) for pod in self.listed())

    def worker_facts(self) -> tuple[WorkerFact, ...]:
        """Worker pods as the operator sees them."""
        return tuple(_worker_fact(worker) for worker in self.workers.values())

    def agent_fact(self, pod: PodFact | None) -> AgentFact | None:
        """What the agent of this pod answers."""
        found = next((each for each in self.pods if pod and each.uid == pod.uid), None)
        if found is None or not self._answers(found):
            return None
        queries = (self._query_fact(found),) if found.stage is Stage.RUNNING else ()
        return AgentFact(
            epoch=found.run.epoch,
            attempt=found.run.attempt,
            phase=found.stage.value,  # type: ignore[arg-type]
            queries=queries,
            stop=_stop_fact(found.stop, self._batches(found.run.epoch)),
        )

    def newest(self) -> str | None:
        """The newest complete savepoint."""
        return next(reversed(self.savepoints), None)

    # --- what is done ----------------------------------------------------------------------------

    def start_driver(self, run: Run, expect: str, name: str) -> None:
        """Create the pod if there is none of this name."""
        if any(pod.name == name for pod in self.listed()):
            return
        self._uids += 1
        self.pods.append(Pod(name, f"u{self._uids}", "driver", run, self.now, expect))

    def open_gate(self, run: Run) -> None:
        """Let the queries of this attempt start, if its agent can be reached."""
        pod = self.driver(run)
        if pod is None or not self._answers(pod) or pod.stage is not Stage.GATED:
            return
        for other in self.writers():
            if other.run.epoch == run.epoch and other is not pod:
                raise BrokenPromiseError(
                    f"{pod.name} and {other.name} both write into epoch {run.epoch}"
                )
        pod.admitted = True

    def request_stop(self, run: Run, operation: str, savepoint: str | None) -> None:
        """As the agent does: one stop at a time, the same one again is no other."""
        pod = self.driver(run)
        if pod is None or not self._answers(pod) or pod.stage is Stage.PENDING:
            return
        if pod.stop is not None and pod.stop.state != "Failed":
            return
        touched = pod.stop is not None and pod.stop.touched
        pod.stop = Stop(operation, savepoint, touched=touched)

    def delete(self, uid: str) -> None:
        """Ask for a pod's end."""
        for pod in self.pods:
            if pod.uid == uid and pod.deleting is None:
                pod.deleting = 0

    def start_worker(self, name: str, task: Task) -> None:
        """Create the worker pod if there is none of this name."""
        self.workers.setdefault(name, Worker(name, task, self.now))

    # --- what happens ----------------------------------------------------------------------------

    def tick(self) -> None:
        """Let time pass."""
        self.now += TICK
        for pod in list(self.pods):
            self._advance(pod)
        for worker in self.workers.values():
            self._work(worker)

    def end(self, pod: Pod, reason: str, *, code: int = 1, clean: bool = False) -> None:
        """The process ends."""
        stop = pod.stop
        done = stop is not None and stop.state == "Done"
        pod.exit = DriverExit(
            code=code,
            reason=reason,
            clean=clean,
            operation=stop.operation if stop is not None and done else None,
            savepoint=stop.savepoint if stop is not None and done else None,
            batches=self._batches(pod.run.epoch) if pod.commits else {},
        )
        pod.stage = Stage.ENDED

    def lose(self, pod: Pod, *, survives: bool, heard: bool = False) -> None:
        """Its node does not answer any more; its process goes on, or has died unseen."""
        pod.cut, pod.lost_since, pod.heard = True, self.now, heard
        if not survives:
            self.end(pod, "NodeLost")

    def bring_back(self, pod: Pod) -> None:
        """Its node answers again."""
        pod.cut, pod.lost_since = False, None

    def leave_behind(self, epoch: int) -> None:
        """What cannot be reached in this epoch is not waited for any more."""
        for pod in self.pods:
            pod.left = pod.left or (pod.cut and pod.run.epoch == epoch)

    def vanish(self, pod: Pod) -> None:
        """Deleted at once, by force, on a node that works."""
        if not pod.cut:
            self.end(pod, "Killed")
            pod.over, pod.listed = True, False

    # --- processes -------------------------------------------------------------------------------

    def _advance(self, pod: Pod) -> None:
        pod.deaf = max(0, pod.deaf - 1)
        if pod.deleting is not None:
            pod.deleting += 1
            if pod.deleting >= _GRACE and not pod.cut and pod.alive:
                self.end(pod, "Terminated", code=0, clean=True)
        if pod.alive and pod.role == "driver":
            _STAGES[pod.stage](self, pod)
        if pod.role == "executor" and not pod.cut and not self._has_driver(pod):
            self.end(pod, "Orphaned")
            pod.deleting = pod.deleting or 0
        if not pod.alive and not pod.cut:
            pod.over = True
            pod.listed = pod.listed and pod.deleting is None

    def _has_driver(self, executor: Pod) -> bool:
        return any(
            pod.role == "driver" and pod.alive and _same(pod.run, executor.run) for pod in self.pods
        )

    def _pending(self, pod: Pod) -> None:
        if self._behaviour(pod.run.revision) is not Behaviour.IMAGE_MISSING:
            pod.stage = Stage.STARTING

    def _starting(self, pod: Pod) -> None:
        directory = self.directories.setdefault(pod.run.epoch, Directory())
        origin = pod.run.origin
        if origin.begin is Begin.SAVEPOINT:
            self._materialize(directory, origin.savepoint)
        refused = (pod.expect == "empty" and directory.begun) or (
            pod.expect == "restored" and not directory.begun
        )
        if refused:
            self.end(pod, "Refused", code=83)
        elif self._behaviour(pod.run.revision) is Behaviour.CRASHES_AT_START:
            self.end(pod, "ScriptFailed")
        else:
            pod.stage = Stage.GATED

    def _materialize(self, directory: Directory, name: str | None) -> None:
        savepoint = self.savepoints.get(name or "")
        if directory.begun:
            return
        if savepoint is None:
            raise BrokenPromiseError(f"savepoint {name} is to be restored, and is not there")
        directory.ledger = list(savepoint.ledger)
        directory.certain = len(directory.ledger)
        directory.begun, directory.written_by = True, savepoint.written_by

    def _gated(self, pod: Pod) -> None:
        if pod.stop is not None:
            self._stopping(pod)
        elif pod.admitted:
            self._start_query(pod)

    def _start_query(self, pod: Pod) -> None:
        directory = self.directories[pod.run.epoch]
        code = pod.run.revision.code
        if directory.ledger and not self._reads(code, directory.written_by):
            self.end(pod, "QueryFailed", code=80)
            return
        directory.begun = pod.began = True
        pod.position, pod.stage = len(directory.ledger), Stage.RUNNING
        self._uids += 1
        name = f"{pod.name}-exec-1"
        executor = Pod(name, f"u{self._uids}", "executor", pod.run, self.now, stage=Stage.RUNNING)
        self.pods.append(executor)

    def _running(self, pod: Pod) -> None:
        if pod.stop is not None and pod.stop.state != "Failed":
            self._stopping(pod)
        else:
            self._commit(pod)

    def _commit(self, pod: Pod) -> None:
        behaviour = self._behaviour(pod.run.revision)
        if behaviour is Behaviour.NEVER_COMMITS or not self.input:
            return
        directory = self.directories[pod.run.epoch]
        directory.ledger.append(pod.position)
        directory.written_by = pod.run.revision.code
        self.committers.add(behaviour)
        if not pod.cut and not pod.left:
            directory.certain = len(directory.ledger)
        if directory.ledger != list(range(len(directory.ledger))):
            raise BrokenPromiseError(f"epoch {pod.run.epoch} holds {directory.ledger}")
        pod.position += 1
        pod.commits += 1
        pod.last_commit = self.now
        if behaviour is Behaviour.CRASHES_SOON and pod.commits == 2:
            self.end(pod, "QueryFailed", code=80)
        if behaviour is Behaviour.ENDS and pod.commits == 5:
            self.end(pod, "ScriptEnded", code=0, clean=True)

    def _stopping(self, pod: Pod) -> None:
        """One step of a stop per tick: look beforehand, reach the boundary, capture, end."""
        stop = pod.stop
        if stop is None or stop.state == "Failed":
            return
        if stop.state == "Done":
            self.end(pod, "Stopped", code=0, clean=True)
        elif pod.stage is not Stage.STANDING:
            self._reach_boundary(pod, stop)
        else:
            self._capture_at_boundary(pod, stop)

    def _reach_boundary(self, pod: Pod, stop: Stop) -> None:
        if stop.savepoint is not None and self.repository_broken:
            stop.state, stop.message = "Failed", "the repository cannot be written to"
            return
        if pod.stage is Stage.RUNNING:
            self._commit(pod)
        if pod.alive:
            pod.stage, stop.touched = Stage.STANDING, True

    def _capture_at_boundary(self, pod: Pod, stop: Stop) -> None:
        if stop.savepoint is None:
            stop.state = "Done"
            return
        directory = self.directories[pod.run.epoch]
        nothing = not (pod.began and directory.ledger)
        if self.repository_broken or nothing:
            stop.state, stop.empty = "Failed", nothing
            stop.message = "it could not be captured"
            return
        saved = self._save(stop.savepoint, pod.run.epoch)
        stop.state = "Done" if saved else "Failed"

    def _save(self, name: str, epoch: int) -> bool:
        """The same name and epoch is the same savepoint; another epoch's name is taken."""
        directory = self.directories[epoch]
        known = self.savepoints.get(name)
        if known is not None:
            return known.epoch == epoch
        self.savepoints[name] = Savepoint(epoch, tuple(directory.ledger), directory.written_by)
        self.captured.add(name)
        return True

    # --- workers ---------------------------------------------------------------------------------

    def _work(self, worker: Worker) -> None:
        if worker.state is not WorkerState.RUNNING:
            return
        if self._behaviour(worker.task.revision) is Behaviour.IMAGE_MISSING:
            worker.stuck = "ImagePullBackOff"
            return
        worker.age += 1
        if worker.age < 2:
            return
        if self.workers_fail:
            worker.state, worker.message = WorkerState.FAILED, "it was killed"
            return
        match worker.task:
            case Capture(run=run, savepoint=name):
                self._capture(worker, run.epoch, name)
            case Rehearse(run=run, savepoint=name):
                self._rehearse(worker, run, name)
            case RemoveData():
                self.removed = True
                worker.state, worker.answer = WorkerState.SUCCEEDED, "Removed"

    def _capture(self, worker: Worker, epoch: int, name: str) -> None:
        directory = self.directories.get(epoch, Directory())
        if self.repository_broken:
            worker.state, worker.message = WorkerState.FAILED, "the repository is broken"
            return
        if not directory.ledger:
            worker.state, worker.answer = WorkerState.SUCCEEDED, "NothingCommitted"
            return
        if not self._save(name, epoch):
            worker.state, worker.message = WorkerState.FAILED, "NameTaken"
            return
        worker.state, worker.answer = WorkerState.SUCCEEDED, "Captured"
        worker.batches = self._batches(epoch)

    def _rehearse(self, worker: Worker, run: Run, name: str) -> None:
        savepoint = self.savepoints.get(name)
        if savepoint is None:
            worker.state, worker.message = WorkerState.FAILED, "the savepoint is gone"
            return
        worker.state = WorkerState.SUCCEEDED
        fits = self._reads(run.revision.code, savepoint.written_by)
        worker.answer = "Compatible" if fits else "Incompatible"
        if self._behaviour(run.revision) is Behaviour.CRASHES_AT_START:
            worker.answer = "Unknown"

    # --- within ----------------------------------------------------------------------------------

    def _behaviour(self, revision: Revision) -> Behaviour:
        return self.behaviours[revision.code]

    def _reads(self, code: str, written_by: str) -> bool:
        """Code reads what it wrote itself; compatible code also what other such code wrote."""
        either = {self.behaviours[code], self.behaviours[written_by]}
        return code == written_by or Behaviour.INCOMPATIBLE not in either

    def _stuck(self, pod: Pod) -> str:
        missing = self._behaviour(pod.run.revision) is Behaviour.IMAGE_MISSING
        return "ImagePullBackOff" if missing and pod.stage is Stage.PENDING else ""

    def _answers(self, pod: Pod) -> bool:
        started = pod.stage not in (Stage.PENDING, Stage.ENDED)
        return started and (pod.heard or not pod.cut) and pod.deaf == 0

    def _batches(self, epoch: int) -> dict[str, int]:
        directory = self.directories.get(epoch)
        return {_QUERY: len(directory.ledger) - 1} if directory and directory.ledger else {}

    def _query_fact(self, pod: Pod) -> QueryFact:
        never = self._behaviour(pod.run.revision) is Behaviour.NEVER_COMMITS
        return QueryFact(
            name=_QUERY,
            batch=pod.position - 1 if pod.commits else None,
            active=True,
            busy=self.input or never,
            last_commit=pod.last_commit,
        )


_STAGES = {
    Stage.PENDING: Cluster._pending,
    Stage.STARTING: Cluster._starting,
    Stage.GATED: Cluster._gated,
    Stage.RUNNING: Cluster._running,
    Stage.STANDING: Cluster._stopping,
}


def _same(one: Run, other: Run) -> bool:
    return (one.epoch, one.attempt) == (other.epoch, other.attempt)


def _pod_fact(pod: Pod, stuck: str) -> PodFact:
    return PodFact(
        name=pod.name,
        uid=pod.uid,
        role=pod.role,  # type: ignore[arg-type]
        epoch=pod.run.epoch,
        attempt=pod.run.attempt,
        over=pod.over,
        deleting=pod.deleting is not None,
        lost_since=pod.lost_since,
        stuck=stuck,
        created=pod.created,
        exit=pod.exit if pod.over else None,
    )


def _worker_fact(worker: Worker) -> WorkerFact:
    return WorkerFact(
        name=worker.name,
        state=worker.state,
        answer=worker.answer,
        message=worker.message,
        batches=dict(worker.batches),
        created=worker.created,
        stuck=worker.stuck,
    )


def _stop_fact(stop: Stop | None, batches: dict[str, int]) -> StopFact | None:
    if stop is None:
        return None
    return StopFact(
        operation=stop.operation,
        state=stop.state,  # type: ignore[arg-type]
        touched=stop.touched,
        savepoint=stop.savepoint if stop.state == "Done" else None,
        batches=batches if stop.touched else {},
        message=stop.message,
    )
