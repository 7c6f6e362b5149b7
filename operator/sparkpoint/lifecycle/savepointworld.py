"""Savepoints: what is wished, written down and seen of them, and what can be done to them."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from sparkpoint.lifecycle.world import WorkerFact

__all__ = [
    "AgentSavepoint",
    "AskAgent",
    "JobState",
    "Refusal",
    "SavepointAction",
    "SavepointRecord",
    "SavepointState",
    "SavepointTask",
    "SavepointWish",
    "SavepointWorld",
    "StartTask",
    "Taker",
    "task_name",
]


class SavepointState(Enum):
    """How far a savepoint is."""

    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    COMPLETED = "Completed"
    FAILED = "Failed"


class SavepointTask(Enum):
    """What a worker pod does for a savepoint."""

    CAPTURE = "capture"
    INSPECT = "inspect"
    VERIFY = "verify"
    DISPOSE = "dispose"


class Taker(Enum):
    """Who captures."""

    AGENT = "agent"
    WORKER = "worker"


class JobState(Enum):
    """The job, as far as its savepoints care."""

    MISSING = "missing"
    UNUSABLE = "unusable"
    """There is no spec to make a worker pod from, or no repository."""
    UNBORN = "unborn"
    """Nothing of it has run yet."""
    PAUSED = "paused"
    """A person works on it: nothing is started for it."""
    BUSY = "busy"
    """An operation is under way."""
    RUNNING = "running"
    STANDING = "standing"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointRecord:
    """All that is known about a savepoint beyond what can be seen: the write-ahead log."""

    state: SavepointState = SavepointState.PENDING
    taker: Taker | None = None
    epoch: int | None = None
    """Of the job when it was asked for: another epoch has another directory."""
    tries: int = 0
    """Tries of the present task that failed: the next worker has another name."""
    started: datetime | None = None
    due: datetime | None = None
    """Nothing is tried before it."""
    described: bool = False
    """What is in it is known."""
    checked: bool = False
    """The check that was wanted is done."""
    expired: bool = False
    """Retention removes it: its data goes with it."""
    message: str = ""

    def is_settled(self, *, verify: bool) -> bool:
        """Whether nothing is left to be done, as long as it is not to be deleted."""
        if self.state is SavepointState.FAILED:
            return True
        known = self.described and (self.checked or not verify)
        return self.state is SavepointState.COMPLETED and known


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointWish:
    """What the resource asks for."""

    existing: bool = False
    """It is in a repository already."""
    operation: str | None = None
    """The operation of the job that takes it."""
    verify: bool = False
    backoff_limit: int = 3
    dispose: bool = False
    """Its data goes with the resource."""
    deleting: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSavepoint:
    """What the agent says of it."""

    state: str
    """Unknown (it was not asked for), Running, Done or Failed."""
    message: str = ""
    retry_helps: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A worker pod that the API server did not let us make."""

    message: str
    retry_helps: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointWorld:
    """Everything a decision is made from."""

    name: str
    wish: SavepointWish
    record: SavepointRecord
    now: datetime
    job: JobState = JobState.MISSING
    epoch: int | None = None
    """The job's present one."""
    operation: str | None = None
    """The job's present one."""
    used: bool = False
    """A job may go back to it, or begins from it, or wants to."""
    agent: AgentSavepoint | None = None
    """None: the agent does not answer."""
    workers: tuple[WorkerFact, ...] = ()
    retry_helps: bool = True
    """Of the worker's failure."""
    refused: Refusal | None = None
    """What came of the try to make the worker of the present try."""

    def worker(self, task: SavepointTask) -> WorkerFact | None:
        """The worker of the present try."""
        name = task_name(self.name, task, self.record.tries)
        return next((worker for worker in self.workers if worker.name == name), None)


def task_name(savepoint: str, task: SavepointTask, tries: int) -> str:
    """The worker pod of a task and try."""
    return f"{savepoint}-{task.value}-{tries}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskAgent:
    """Let the driver's agent capture; the same name is the same savepoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTask:
    """Create the worker pod of this name, if it is not there."""

    name: str
    task: SavepointTask


SavepointAction = AskAgent | StartTask
