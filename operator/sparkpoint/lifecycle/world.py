"""What is seen: small records of the cluster, made by whoever looks, read by whoever decides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Literal

from sparkpoint.lifecycle.record import Adoption, Operation, Record, Revision, Run, SinkPolicy

__all__ = [
    "AgentFact",
    "DriverExit",
    "Lack",
    "PodFact",
    "Policy",
    "QueryFact",
    "RestoreWish",
    "StopFact",
    "Wish",
    "WorkerFact",
    "WorkerState",
    "World",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How the user wants operations to be done."""

    mode: Literal["Savepoint", "LastCommit", "Stateless"] = "Savepoint"
    compatibility: Literal["Strict", "Enforce", "Warn", "Skip"] = "Enforce"
    rollback: bool = True
    rollback_to: Literal["Savepoint", "Latest"] = "Savepoint"
    deadline: timedelta = timedelta(minutes=10)
    """For a new revision to prove itself, from the launch on."""
    stable_after: int = 3
    """Commits that prove it."""
    interval: timedelta = timedelta()
    """Between two batches of a query, as far as the spec says; a healthy one commits no faster."""
    restart: Literal["Always", "OnFailure", "Never"] = "OnFailure"
    backoff_initial: timedelta = timedelta(seconds=5)
    backoff_max: timedelta = timedelta(minutes=5)
    backoff_factor: float = 2.0
    reset_after: timedelta = timedelta(minutes=10)
    """Health for so long makes failures forgotten."""
    max_failures: int | None = None
    """Failures in a row after which the job is left alone; None: never."""
    stop_timeout: timedelta = timedelta(minutes=2)
    """For a driver to reach its boundary and be captured; then its pod is deleted."""
    silence_timeout: timedelta = timedelta(minutes=5)
    """For an agent that does not answer while its pod runs; then the driver is replaced."""
    lost_timeout: timedelta = timedelta(minutes=1)
    """For a pod on a lost node to come back or vanish; then a new epoch leaves it behind."""
    delete_timeout: timedelta = timedelta(minutes=10)
    """For a deletion; then it is done without what could not be done."""
    repository: bool = True
    """There is one to capture into; without it a job goes on in its directory, or not at all."""
    final_savepoint: bool = False
    retain_checkpoint: bool = True

    @property
    def strict(self) -> bool:
        """What new code makes of the last batch counts, too."""
        return self.compatibility == "Strict"

    def time_to_commit(self, commits: int) -> timedelta:
        """For a new revision to make so many commits: the deadline, or more if batches are rare."""
        return max(self.deadline, (commits + 1) * self.interval)

    @property
    def decisive(self) -> str:
        """All that decides whether a change is refused or rolled back, in a few words.

        What is as by default is left out: a field that is added here must not end what is held in
        a whole cluster when the operator is upgraded.
        """
        usual = Policy()
        said = {name: getattr(self, name) for name in _DECISIVE}
        words = [f"{name}={value}" for name, value in said.items() if value != getattr(usual, name)]
        return " ".join(words)


_DECISIVE = ("mode", "compatibility", "rollback", "deadline", "stable_after")
"""Not where a rollback goes, nor how a driver is restarted: that changes no verdict."""


class Lack(Enum):
    """Why a savepoint will not become ready unless somebody does something."""

    NOT_FOUND = "NotFound"
    """There is none of that name, or it is going."""
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreWish:
    """A savepoint that the user wants to go (back) to."""

    key: str
    """Of the wish: one that was carried out is not carried out again."""
    savepoint: str
    sink: SinkPolicy = "Resume"
    ready: bool = True
    """It is complete and can be read."""
    problem: str = ""
    """Why it is not ready."""
    lack: Lack | None = None
    """Of a problem that does not pass by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The last valid spec of the user, as far as it decides anything."""

    generation: int
    revision: Revision
    suspend: bool = False
    restore: RestoreWish | None = None
    adopt: Adoption | None = None
    """To begin from; a job that has begun does not look at it any more."""
    deleting: datetime | None = None
    policy: Policy = field(default_factory=Policy)

    @property
    def restore_key(self) -> str | None:
        """Of what is to be restored or adopted; None if nothing is."""
        if self.restore is not None:
            return self.restore.key
        return self.adopt.key if self.adopt is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverExit:
    """How a driver ended, from its container's status and its termination message."""

    code: int | None
    reason: str
    """The runtime's own reason, or Kubernetes' (OOMKilled, Error, Evicted)."""
    message: str = ""
    clean: bool = False
    operation: str | None = None
    savepoint: str | None = None
    """Captured by the stop before it ended."""
    batches: Mapping[str, int] = field(default_factory=dict)
    cause: str = ""
    """Name of the error that it ended with, if the runtime knows it."""

    @property
    def sinks_refuse(self) -> bool:
        """Its savepoint does not fit the sinks, and trying again is of no use."""
        return self.reason == "Refused" and self.cause in ("SinkConflict", "CannotRewind")

    @property
    def finished(self) -> bool:
        """The script ended by itself and well."""
        return self.reason == "ScriptEnded" and self.code == 0

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.reason}: {self.message}".rstrip(": ")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFact:
    """A pod of the job."""

    name: str
    uid: str
    role: Literal["driver", "executor"]
    epoch: int
    attempt: int
    over: bool = False
    """All its containers have ended, for certain."""
    deleting: bool = False
    lost_since: datetime | None = None
    """Its node does not answer, or it outlived its grace period."""
    stuck: str = ""
    """Why it cannot start, as Kubernetes says: ImagePullBackOff, Unschedulable, …"""
    stuck_because: str = ""
    """The same with what Kubernetes says about it, and what to do."""
    created: datetime | None = None
    exit: DriverExit | None = None

    @property
    def hindrance(self) -> str:
        """Why it cannot start, in as many words as are known; empty if nothing is wrong."""
        return self.stuck and (self.stuck_because or self.stuck)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFact:
    """A query as the agent reports it."""

    name: str
    batch: int | None
    active: bool
    busy: bool
    """It works through input."""
    last_commit: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopFact:
    """A stop that the agent knows of."""

    operation: str
    state: Literal["Running", "Done", "Failed"]
    touched: bool = False
    """The queries were stopped: False means that the job runs on as if nothing was asked."""
    savepoint: str | None = None
    """Captured at the boundary."""
    empty: bool = False
    """Nothing was committed that could be captured: trying again is of no use."""
    batches: Mapping[str, int] = field(default_factory=dict)
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFact:
    """What the agent of a driver answered just now."""

    epoch: int
    attempt: int
    phase: Literal["starting", "rehearsing", "gated", "running", "stopping", "ended"]
    queries: tuple[QueryFact, ...] = ()
    stop: StopFact | None = None


class WorkerState(Enum):
    """How far a worker pod is."""

    RUNNING = "Running"
    """Or not started yet, or lost with its node: `stuck` says so."""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFact:
    """A worker pod and what it answered."""

    name: str
    state: WorkerState
    uid: str = ""
    deleting: bool = False
    lost: bool = False
    """Nobody can say whether it has ended."""
    refused: bool = False
    """It never was: the API server does not take it."""
    answer: str = ""
    """Captured, NothingCommitted, Compatible, Incompatible, Unknown, Repartitioned, Removed."""
    final: bool = False
    """Of a failure: the same again fails again, unless somebody changes something."""
    retry_helps: bool = False
    """Of a failure, or of what is not known: another try may come to something else."""
    savepoint: str = ""
    """Name of the one that it has made, or found."""
    kind: str = ""
    """Of a trial without a verdict on the code, if its reason is certain: SavepointUnreadable or
    ScriptRaises."""
    message: str = ""
    batches: Mapping[str, int] = field(default_factory=dict)
    created: datetime | None = None
    stuck: str = ""
    """Why it cannot start, in Kubernetes' own word; `message` has more of it."""

    @property
    def hindrance(self) -> str:
        """Why it cannot start, in as many words as are known; empty if nothing is wrong."""
        return self.stuck and (self.message or self.stuck)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything a decision is made from."""

    job: str
    """Its name: names of everything else begin with it."""
    wish: Wish
    record: Record
    now: datetime
    pods: tuple[PodFact, ...] = ()
    workers: tuple[WorkerFact, ...] = ()
    """Of the job's operations."""
    agent: AgentFact | None = None
    """None: it did not answer, or there is none."""
    revisions: frozenset[str] = frozenset()
    """Names of the revisions that are kept."""
    newest: str | None = None
    """The newest complete savepoint of the job."""
    life: str = ""
    """Of the resource; what is written down counts more: see `own_life`."""

    @property
    def own_life(self) -> str:
        """What names are made with: a job goes on with the names that it began with."""
        return self.record.life if self.record.sequence else self.life

    @property
    def operation(self) -> Operation:
        """The one under way; asked for only where there is one."""
        if self.record.operation is None:
            raise ValueError("there is no operation under way")
        return self.record.operation

    @property
    def run(self) -> Run:
        """What an operation launches or waits for; asked for only where it is written down."""
        if self.record.run is None:
            raise ValueError("the run is not written down")
        return self.record.run

    def driver(self, run: Run) -> PodFact | None:
        """The driver pod of exactly this attempt."""
        return next(
            (
                pod
                for pod in self.pods
                if pod.role == "driver" and (pod.epoch, pod.attempt) == (run.epoch, run.attempt)
            ),
            None,
        )

    def writers(self, epoch: int) -> tuple[PodFact, ...]:
        """Pods that may still write into the directory of this epoch."""
        return tuple(pod for pod in self.pods if pod.epoch == epoch and not pod.over)

    def is_lost(self, pod: PodFact) -> bool:
        """Whether it is no longer waited for: nobody can say whether it has ended."""
        return pod.lost_since is not None and (
            self.now - pod.lost_since > self.wish.policy.lost_timeout
        )

    def in_the_way(self, run: Run) -> tuple[PodFact, ...]:
        """Pods that have to be gone before the gate of this run is opened.

        Whoever sees this run's own pod sees also every pod that was there before it, so this is
        what a second writer cannot slip through, however old the rest of the observation is.
        """
        return tuple(
            pod
            for pod in self.pods
            if not pod.over
            and (pod.epoch, pod.attempt) != (run.epoch, run.attempt)
            and (pod.epoch == run.epoch or (pod.epoch < run.epoch and not self.is_lost(pod)))
        )

    def agent_of(self, run: Run) -> AgentFact | None:
        """What this attempt's agent answered; an answer of another one counts for nothing."""
        agent = self.agent
        if agent is None or (agent.epoch, agent.attempt) != (run.epoch, run.attempt):
            return None
        return agent

    def worker(self, name: str) -> WorkerFact | None:
        """The worker pod of this name."""
        return next((worker for worker in self.workers if worker.name == name), None)

    def waited(self) -> timedelta:
        """How long the present phase has lasted."""
        return self.now - self.operation.phase_started
