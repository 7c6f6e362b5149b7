"""What is written down about a job: the write-ahead log in its status.

Everything an effect is named after is in here before the effect happens.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Literal

from sparkpoint.lifecycle.phases import Kind, Phase

__all__ = [
    "Adoption",
    "Begin",
    "Held",
    "Operation",
    "Origin",
    "Outcome",
    "Record",
    "Result",
    "Revision",
    "Run",
    "SinkPolicy",
    "Stable",
    "Waiting",
]

SinkPolicy = Literal["Resume", "Rewind", "Fork"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What a driver is built from."""

    name: str
    """Digest of all of it; also the name under which it is kept."""
    code: str
    """Digest of all but the executors: equal codes differ in size only."""
    size: str = ""
    """Digest of the executors."""
    state: str = ""
    """Digest of what is fixed in a checkpoint: partitions, provider and format."""
    fixed: str = ""
    """Digest of the same without the partitions, which alone can be changed; empty in records from
    before it was written down."""
    partitions: int | None = None
    """Of the state, as far as the spec says."""
    spark: str | None = field(default=None, compare=False)
    """The Spark that it runs on, if its spec says so; part of `code`, which is what is compared."""

    def has_other_spark_than(self, other: "Revision") -> bool:
        """Whether the two are known to be of different release lines, such as 4.2 and 4.3."""
        if self.spark is None or other.spark is None:
            return False
        return self.spark.split(".")[:2] != other.spark.split(".")[:2]


class Begin(Enum):
    """What a run finds in its epoch directory."""

    EMPTY = "Empty"
    """Nothing: the job's first start, or one that the user wished to be without state."""
    SAVEPOINT = "Savepoint"
    CONTINUE = "Continue"
    """What the attempt before it left there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a run begins from."""

    begin: Begin
    savepoint: str | None = None
    sink: SinkPolicy = "Resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """A checkpoint that somebody else left, for a new job to take on."""

    location: str
    query: str | None = None
    """How the job calls the query, if the checkpoint is that of a single one."""

    @property
    def key(self) -> str:
        """The same wish has the same key; never that of a savepoint to restore."""
        return f"adopt {self.location} {self.query or ''}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One attempt: a driver pod, which writes into the directory of its epoch."""

    epoch: int
    attempt: int
    revision: Revision
    origin: Origin
    source: Origin
    """What the epoch began from: the origin of its first attempt."""
    opened: bool = False
    """The gate of this epoch may have been opened: until then nothing was written into it."""
    directory: str = ""
    """Name of the epoch's directory, made once and never made anew; empty in records from before
    directories had names."""
    left: str | None = None
    """Captured of the run before one that begins empty: if the user thinks better of it before the
    gate is opened, nothing is lost."""
    before: str | None = None
    """Where sinks stand until the gate is opened: what the run before it was captured as."""
    given_up: "Run | None" = None
    """What was rolled back for this run: if sinks cannot be rewound, its last commit is the only
    way back."""

    @property
    def folder(self) -> str:
        """The epoch's directory, below the folder of the job."""
        return self.directory or f"epoch-{self.epoch}"

    def let_in(self) -> "Run":
        """With its gate open: from here on it is what the job's state is."""
        return replace(self, opened=True, left=None, before=None, given_up=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What a trial that is repeated has failed of."""

    reason: str
    policy: str
    """What of the policy it was tried with (`Policy.decisive`): another one may let it pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What is under way."""

    id: str
    kind: Kind
    phase: Phase
    generation: int
    started: datetime
    phase_started: datetime
    spent: tuple[tuple[Phase, float], ...] = ()
    """Seconds in the phases before the present one, in the order in which they began."""
    target: Run | None = None
    """The run it ends with; None if it ends with none."""
    savepoint: str | None = None
    """Name under which the state is captured once the job stands; None: it need not be."""
    former: Run | None = None
    """Whose directory is captured, if it is not that of the run which is written down."""
    captured: bool = False
    """The savepoint is in the repository."""
    fenced: bool = False
    """A pod on a lost node may live on: its directory is left to it."""
    tries: int = 0
    """Worker pods of the present phase that are done with: the next one has another name."""
    launches: int = 1
    """Drivers that were started, or will be."""
    base: tuple[tuple[str, int], ...] = ()
    """Last batch per query before the target ran: commits are counted from there."""
    stopped: datetime | None = None
    """Last commit before the stop: downtime is counted from there."""
    resumed: datetime | None = None
    """First commit that was seen after it."""
    restore: str | None = None
    """Key of the wish to restore that this carries out; only Start and Restore do."""
    adopt: Adoption | None = None
    """What is captured before anything starts; only by Start."""
    strict: bool | None = None
    """Its trial does the last batch again. None if not: what an earlier operator could not read is
    written where it is needed alone."""
    trouble: Trouble | None = None
    """Why the trial of what it has adopted is repeated; None if it is not, and once it is over."""
    message: str = ""

    @property
    def moves(self) -> bool:
        """What it captures is not what the target begins from, but what that is made of."""
        return self.kind is Kind.REPARTITION and self.launches == 1

    def spent_until(self, now: datetime) -> tuple[tuple[Phase, float], ...]:
        """With the present phase; one that is gone through again has the sum of both times."""
        seconds, known = (now - self.phase_started).total_seconds(), dict(self.spent)
        if seconds <= 0:
            # Over at once: it had nothing to do.
            return self.spent
        return tuple({**known, self.phase: known.get(self.phase, 0.0) + seconds}.items())


class Result(Enum):
    """How an operation ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ROLLED_BACK = "RolledBack"
    SUPERSEDED = "Superseded"
    """A newer wish took its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The operation that ended last."""

    id: str
    kind: Kind
    result: Result
    generation: int
    started: datetime
    finished: datetime
    downtime: float | None = None
    """Seconds from the last commit before to the first one after."""
    savepoint: str | None = None
    phases: tuple[tuple[Phase, float], ...] = ()
    """Seconds in each phase."""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stable:
    """The last revision that proved itself, and where its state is."""

    revision: Revision
    savepoint: str | None = None
    """Its state, captured when its directory was left for something that has to prove itself; None:
    its state is what the present directory holds."""
    restored: str | None = None
    """Key of the wish to restore that its state goes back to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A wish that was tried or refused, and is not tried again before `until`, or at all."""

    revision: str
    restore: str | None = None
    reason: str
    message: str
    until: datetime | None = None
    failures: int = 1
    policy: str | None = None
    """What of the policy it was tried with (`Policy.decisive`): another one may let it pass. None:
    the policy had no part in it, or the record is from before this was written down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A wish to restore what cannot be restored, and will not become so by itself."""

    restore: str
    """Key of the wish."""
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that is known about a job beyond what can be seen."""

    run: Run | None = None
    operation: Operation | None = None
    last: Outcome | None = None
    stable: Stable | None = None
    held: Held | None = None
    waiting: Waiting | None = None
    sequence: int = 0
    """Operations so far: numbers their names."""
    life: str = ""
    """Tells names apart from those of an earlier job of this name: written down with the first
    operation and kept; empty in records from before."""
    restored: str | None = None
    """Key of the wish to restore that was carried out last."""
    suspended: bool = False
    finished: bool = False
    """The script ended by itself and is not run again."""
    failures: int = 0
    """Drivers that ended badly in a row; forgotten after a time of health."""
    due: datetime | None = None
    """No driver starts before it."""
    healthy_since: datetime | None = None
    silent_since: datetime | None = None
    """The driver's pod runs, its agent does not answer."""
    writing: bool = True
    """The driver of the run was let in, and nobody has seen its end; records from before say so of
    every run, to be safe."""
    vanished: datetime | None = None
    """Since when such a driver has no pod any more: its process may live on."""
    progressed: bool = False
    """A commit of the present epoch was seen: its directory is not empty any more."""
    removed: bool = False
    """A job that is being deleted needs nothing more."""

    def references(self) -> frozenset[str]:
        """Savepoints that must not be deleted."""
        names: set[str | None] = set()
        given_up = [run.given_up for run in self._runs() if run.given_up is not None]
        for run in self._runs() + given_up:
            names |= {run.origin.savepoint, run.source.savepoint, run.left}
        if self.operation is not None:
            names.add(self.operation.savepoint)
        if self.stable is not None:
            names.add(self.stable.savepoint)
        return frozenset(name for name in names if name is not None)

    def revisions(self) -> frozenset[str]:
        """Names of the revisions that must be kept."""
        names = {run.revision.name for run in self._runs()}
        if self.stable is not None:
            names.add(self.stable.revision.name)
        return frozenset(names)

    def able(self) -> tuple[Revision, ...]:
        """Revisions whose image may serve for work on the data, the most trusted first."""
        stable = [self.stable.revision] if self.stable is not None else []
        newest = [run.revision for run in reversed(self._runs())]
        return tuple(dict.fromkeys(stable + newest))

    def _runs(self) -> list[Run]:
        target = self.operation.target if self.operation is not None else None
        return [run for run in (self.run, target) if run is not None]

    def with_operation(self, **changes: object) -> "Record":
        """The operation that is under way, changed."""
        if self.operation is None:
            raise ValueError("there is no operation under way")
        # mypy cannot check keywords that are passed on.
        return replace(self, operation=replace(self.operation, **changes))  # type: ignore[arg-type]
