"""Small worlds to decide on: a job, what is written down about it, and what is seen of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sparkpoint.lifecycle.naming import driver_name, operation_id
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import (
    Begin,
    Operation,
    Origin,
    Record,
    Revision,
    Run,
    SinkPolicy,
    Stable,
)
from sparkpoint.lifecycle.world import (
    AgentFact,
    DriverExit,
    PodFact,
    Policy,
    QueryFact,
    RestoreWish,
    StopFact,
    Wish,
    WorkerFact,
    WorkerState,
    World,
)

__all__ = [
    "JOB",
    "NOW",
    "A",
    "B",
    "C",
    "agent",
    "ago",
    "continuing",
    "driver",
    "during",
    "empty",
    "ended",
    "executor",
    "from_savepoint",
    "gated",
    "lost",
    "restore",
    "revision",
    "running",
    "stable",
    "standing",
    "steady",
    "stopped",
    "wish",
    "worker",
    "world",
]

JOB = "visits"
NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def ago(**time: float) -> datetime:
    """A moment before now."""
    return NOW - timedelta(**time)


def revision(
    code: str,
    *,
    size: str = "2",
    state: str = "",
    nonce: str = "",
    fixed: str = "",
    partitions: int | None = None,
) -> Revision:
    """What a spec is built from."""
    state = state or (f"p{partitions}" if partitions is not None else "")
    name = "-".join(part for part in (code, size, state, nonce) if part)
    return Revision(
        name=name, code=code, size=size, state=state, fixed=fixed, partitions=partitions
    )


A, B, C = revision("a"), revision("b"), revision("c")


# --- runs ----------------------------------------------------------------------------------------


def empty(revision: Revision = A, *, epoch: int = 1, attempt: int = 1, opened: bool = True) -> Run:
    """A run in a directory that began empty."""
    origin = Origin(begin=Begin.EMPTY)
    return Run(
        epoch=epoch,
        attempt=attempt,
        revision=revision,
        origin=origin,
        source=origin,
        opened=opened,
    )


def from_savepoint(
    savepoint: str,
    revision: Revision = A,
    *,
    epoch: int = 2,
    attempt: int = 2,
    opened: bool = True,
    sink: SinkPolicy = "Resume",
) -> Run:
    """A run in a directory that began with a savepoint."""
    origin = Origin(begin=Begin.SAVEPOINT, savepoint=savepoint, sink=sink)
    return Run(
        epoch=epoch,
        attempt=attempt,
        revision=revision,
        origin=origin,
        source=origin,
        opened=opened,
    )


def continuing(run: Run, revision: Revision | None = None) -> Run:
    """The next attempt in the same directory."""
    return replace(
        run,
        attempt=run.attempt + 1,
        revision=revision or run.revision,
        origin=Origin(begin=Begin.CONTINUE),
    )


# --- what is written down ------------------------------------------------------------------------


def stable(
    revision: Revision = A, savepoint: str | None = None, restored: str | None = None
) -> Stable:
    """The last revision that proved itself."""
    return Stable(revision=revision, savepoint=savepoint, restored=restored)


def steady(run: Run | None, **facts: Any) -> Record:
    """Nothing is under way, and what runs has proven itself; what stands was seen to end."""
    proven = Stable(revision=run.revision) if run is not None else None
    stands = any(facts.get(name) for name in ("suspended", "finished", "removed"))
    facts = {"writing": not stands, **facts}
    return replace(Record(run=run, stable=proven, sequence=6, progressed=True), **facts)


def during(kind: Kind, phase: Phase, run: Run | None, **facts: Any) -> Record:
    """An operation is under way; fields of the operation and of the record may be given."""
    operation = Operation(
        id=operation_id(kind, 7),
        kind=kind,
        phase=phase,
        generation=1,
        started=ago(seconds=30),
        phase_started=ago(seconds=10),
    )
    mine = {name: facts.pop(name) for name in list(facts) if name in Operation.__dataclass_fields__}
    record = steady(run, operation=replace(operation, **mine), sequence=7)
    return replace(record, **facts)


# --- what is wished ------------------------------------------------------------------------------


def wish(revision: Revision = A, *, generation: int = 1, **facts: Any) -> Wish:
    """A spec; what is not a field of the wish is one of its policy."""
    mine = {name: facts.pop(name) for name in list(facts) if name in Wish.__dataclass_fields__}
    policy = Policy(**facts)
    return Wish(**{"generation": generation, "revision": revision, "policy": policy, **mine})


def restore(savepoint: str, *, sink: SinkPolicy = "Rewind", **facts: Any) -> RestoreWish:
    """A savepoint to go to."""
    return RestoreWish(**{"key": f"{savepoint}#1", "savepoint": savepoint, "sink": sink, **facts})


# --- what is seen --------------------------------------------------------------------------------


def driver(run: Run, **facts: Any) -> PodFact:
    """The driver pod of a run."""
    name = driver_name(JOB, run)
    pod = PodFact(name=name, uid=f"uid-{name}", role="driver", epoch=run.epoch, attempt=run.attempt)
    return replace(pod, **facts)


def executor(run: Run, **facts: Any) -> PodFact:
    """An executor pod of a run."""
    name = f"{driver_name(JOB, run)}-exec-1"
    return replace(driver(run), name=name, uid=f"uid-{name}", role="executor", **facts)


def lost(pod: PodFact, *, minutes: float = 2) -> PodFact:
    """Its node has not answered for some time; two minutes are more than is waited for."""
    return replace(pod, lost_since=ago(minutes=minutes))


def ended(run: Run, reason: str = "QueryFailed", **facts: Any) -> PodFact:
    """A driver pod that has ended."""
    told = DriverExit(**{"code": 80, "reason": reason, **facts})
    return driver(run, over=True, exit=told)


def stopped(run: Run, savepoint: str | None, batch: int = 9) -> PodFact:
    """A driver pod that has ended at its boundary, as it was asked to."""
    batches = {"visits": batch}
    return ended(run, "Stopped", code=0, clean=True, savepoint=savepoint, batches=batches)


def agent(
    run: Run,
    phase: Literal["starting", "gated", "running", "stopping", "ended"],
    *queries: QueryFact,
    stop: StopFact | None = None,
) -> AgentFact:
    """What an agent answers."""
    return AgentFact(epoch=run.epoch, attempt=run.attempt, phase=phase, queries=queries, stop=stop)


def running(
    run: Run, batch: int | None = 9, *, busy: bool = True, stop: StopFact | None = None
) -> AgentFact:
    """The agent of a driver whose one query runs."""
    query = QueryFact(
        name="visits", batch=batch, active=True, busy=busy, last_commit=ago(seconds=1)
    )
    return agent(run, "running", query, stop=stop)


def gated(run: Run) -> AgentFact:
    """The agent of a driver that waits at its gate."""
    return agent(run, "gated")


def standing(run: Run, operation: str, state: Literal["Done", "Failed"], **facts: Any) -> AgentFact:
    """The agent of a driver that was brought to its boundary."""
    fact = StopFact(**{"operation": operation, "state": state, "touched": True, **facts})
    return agent(run, "stopping", stop=fact)


def worker(name: str, answer: str = "", **facts: Any) -> WorkerFact:
    """A worker pod; one that has answered has succeeded."""
    state = WorkerState.SUCCEEDED if answer else WorkerState.RUNNING
    return WorkerFact(**{"name": name, "state": state, "answer": answer, **facts})


def world(record: Record, **facts: Any) -> World:
    """All of it; the revisions of the tests are kept."""
    seen: dict[str, Any] = {
        "job": JOB,
        "wish": wish(),
        "record": record,
        "now": NOW,
        "revisions": frozenset({each.name for each in (A, B, C)}),
    }
    return World(**{**seen, **facts})
