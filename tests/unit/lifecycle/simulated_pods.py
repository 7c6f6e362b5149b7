"""What a pretended cluster is made of: pods and their processes, directories, savepoints, workers.

And how each of them looks to an operator.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from sparkpoint.lifecycle.actions import Task
from sparkpoint.lifecycle.record import Run
from sparkpoint.lifecycle.world import DriverExit, PodFact, StopFact, WorkerFact, WorkerState

__all__ = [
    "Behaviour",
    "BrokenPromiseError",
    "Directory",
    "Moves",
    "Pod",
    "Savepoint",
    "Stage",
    "Stop",
    "Worker",
    "is_same",
    "pod_fact",
    "stop_fact",
    "worker_fact",
]


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


class Moves(Enum):
    """What comes of bringing state to other partitions."""

    WELL = "it is done"
    REFUSED = "refused before the stop"
    FAILS = "fails after it"
    PENDING = "fails after it, and would not at another moment"


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
    dying: int = 0
    """Ticks that its process lives on after its object was deleted by force."""
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
    partitions: int | None = None
    """Of the state, fixed when the first query starts there."""


@dataclass(slots=True)
class Savepoint:
    """A copy of a ledger."""

    epoch: int
    ledger: tuple[int, ...]
    written_by: str
    partitions: int | None = None
    parent: str = ""
    """What it was made of, in other partitions."""


@dataclass(slots=True)
class Worker:
    """A worker pod."""

    name: str
    task: Task
    created: datetime
    uid: str = ""
    age: int = 0
    deleting: int | None = None
    """Ticks since its deletion was asked for."""
    state: WorkerState = WorkerState.RUNNING
    answer: str = ""
    kind: str = ""
    message: str = ""
    stuck: str = ""
    batches: dict[str, int] = field(default_factory=dict)
    final: bool = False
    savepoint: str = ""


def is_same(one: Run, other: Run) -> bool:
    """Whether both are the same attempt."""
    return (one.epoch, one.attempt) == (other.epoch, other.attempt)


def pod_fact(pod: Pod, stuck: str) -> PodFact:
    """A pod as the operator sees it."""
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


def worker_fact(worker: Worker) -> WorkerFact:
    """A worker pod as the operator sees it."""
    return WorkerFact(
        name=worker.name,
        uid=worker.uid,
        deleting=worker.deleting is not None,
        state=worker.state,
        answer=worker.answer,
        kind=worker.kind,
        message=worker.message,
        batches=dict(worker.batches),
        created=worker.created,
        stuck=worker.stuck,
        final=worker.final,
        savepoint=worker.savepoint,
    )


def stop_fact(stop: Stop | None, batches: dict[str, int]) -> StopFact | None:
    """A stop as the agent tells it."""
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
