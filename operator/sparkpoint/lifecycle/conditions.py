"""A job's state in a word, and in conditions that say what to check.

Pure, like all of this room: from what is wished, written down and seen.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from sparkpoint.lifecycle.changes import change, is_of_wish
from sparkpoint.lifecycle.phases import MEANINGS, Kind, Phase
from sparkpoint.lifecycle.record import Held, Record, Result
from sparkpoint.lifecycle.steps.stop import stranded
from sparkpoint.lifecycle.waiting import missed
from sparkpoint.lifecycle.world import AgentFact, World

__all__ = [
    "Aspect",
    "Circumstances",
    "Condition",
    "JobWord",
    "Reason",
    "SavepointHealth",
    "Status",
    "conditions",
    "job_word",
    "since_when",
]


class JobWord(Enum):
    """Where a job is, in one word."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    UPGRADING = "Upgrading"
    RESCALING = "Rescaling"
    RESTARTING = "Restarting"
    REPARTITIONING = "Repartitioning"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    RESTORING = "Restoring"
    ROLLING_BACK = "RollingBack"
    RECOVERING = "Recovering"
    COMPLETED = "Completed"
    FAILED = "Failed"
    DELETING = "Deleting"


_WORDS = {
    Kind.START: JobWord.STARTING,
    Kind.UPGRADE: JobWord.UPGRADING,
    Kind.RESCALE: JobWord.RESCALING,
    Kind.RESTART: JobWord.RESTARTING,
    Kind.REPARTITION: JobWord.REPARTITIONING,
    Kind.SUSPEND: JobWord.SUSPENDING,
    Kind.RESUME: JobWord.STARTING,
    Kind.RESTORE: JobWord.RESTORING,
    Kind.ROLLBACK: JobWord.ROLLING_BACK,
    Kind.RECOVER: JobWord.RECOVERING,
    Kind.DELETE: JobWord.DELETING,
}


class Aspect(Enum):
    """The conditions of a job."""

    ACCEPTED = "Accepted"
    READY = "Ready"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"
    COMPATIBLE = "Compatible"
    SAVEPOINT_HEALTHY = "SavepointHealthy"


class Status(Enum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(Enum):
    """Why a condition is as it is: one word for programs."""

    VALID = "Valid"
    INVALID_SPEC = "InvalidSpec"
    SCRIPT_NOT_FOUND = "ScriptNotFound"
    CHANGE_REFUSED = "ChangeRefused"

    COMMITTING = "Committing"
    NOT_STARTED = "NotStarted"
    STARTING = "Starting"
    STANDING = "Standing"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    GAVE_UP = "GaveUp"
    NO_COMMITS = "NoCommits"
    QUERY_ENDED = "QueryEnded"
    AGENT_SILENT = "AgentSilent"

    UNDER_WAY = "UnderWay"
    WAITING_FOR_SAVEPOINT = "WaitingForSavepoint"
    HELD_BACK = "HeldBack"
    IDLE = "Idle"

    AS_EXPECTED = "AsExpected"
    ROLLED_BACK = "RolledBack"
    INCOMPATIBLE = "Incompatible"
    SAVEPOINT_FAILED = "SavepointFailed"
    NOT_PREPARED = "NotPrepared"
    SCRIPT_FAILED = "ScriptFailed"
    COMPATIBILITY_UNKNOWN = "CompatibilityUnknown"
    NOT_REPARTITIONED = "NotRepartitioned"
    DRIVER_FAILING = "DriverFailing"
    OBJECT_REFUSED = "ObjectRefused"
    NOT_ADOPTED = "NotAdopted"
    NODE_LOST = "NodeLost"
    SAVEPOINT_NOT_FOUND = "SavepointNotFound"
    NOT_ROLLED_BACK = "NotRolledBack"
    RECORD_UNREADABLE = "RecordUnreadable"

    PROVEN = "Proven"
    NOT_TRIED = "NotTried"

    TAKEN = "Taken"
    LATE = "Late"
    NONE_YET = "NoneYet"
    NO_REPOSITORY = "NoRepository"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One aspect of a job's state."""

    aspect: Aspect
    status: Status
    reason: Reason
    message: str = ""
    since: datetime | None = None
    """When the status became what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointHealth:
    """How savepoints fare, as far as a condition tells it."""

    last: str | None = None
    """The newest complete one."""
    failed: str | None = None
    """One that failed after it."""
    failure: str = ""
    due: datetime | None = None
    """When the schedule wanted one that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What conditions tell besides what decisions are made from."""

    invalid: str = ""
    """Everything that is wrong with the spec; empty: nothing."""
    script_missing: str = ""
    """Why the script cannot be read."""
    obstacle: str = ""
    """What the API server refused last."""
    stalled_after: timedelta = timedelta(minutes=10)
    """A query that works but has not committed for so long stands still."""
    savepoints: SavepointHealth | None = None
    """None: the job has no repository."""


def job_word(record: Record, *, deleting: bool) -> JobWord:
    """Where the job is."""
    if deleting or record.removed:
        return JobWord.DELETING
    if record.operation is not None:
        return _WORDS[record.operation.kind]
    if record.run is None:
        return JobWord.PENDING
    if record.finished:
        return JobWord.FAILED if _gave_up(record) else JobWord.COMPLETED
    return JobWord.SUSPENDED if record.suspended else JobWord.RUNNING


def _gave_up(record: Record) -> bool:
    return record.held is not None and record.held.reason == Reason.GAVE_UP.value


def conditions(world: World, around: Circumstances) -> tuple[Condition, ...]:
    """All conditions of a job, in the order in which a person wants to read them."""
    return (
        _accepted(world, around),
        _ready(world, around),
        _progressing(world),
        _degraded(world, around),
        _compatible(world),
        _savepoint_healthy(around),
    )


def since_when(
    fresh: Iterable[Condition], former: Iterable[Condition], now: datetime
) -> tuple[Condition, ...]:
    """With the time of their last change: kept where the status is what it was."""
    known = {each.aspect: each for each in former}
    return tuple(replace(each, since=_since(each, known.get(each.aspect), now)) for each in fresh)


def _since(fresh: Condition, former: Condition | None, now: datetime) -> datetime:
    if former is None or former.since is None or former.status is not fresh.status:
        return now
    return former.since


def _accepted(world: World, around: Circumstances) -> Condition:
    if around.invalid:
        return _false(Aspect.ACCEPTED, Reason.INVALID_SPEC, around.invalid)
    if around.script_missing:
        return _false(Aspect.ACCEPTED, Reason.SCRIPT_NOT_FOUND, around.script_missing)
    wanted = change(world)
    if wanted is not None and wanted.refusal and not _waits(world):
        return _false(Aspect.ACCEPTED, Reason.CHANGE_REFUSED, wanted.refusal)
    return _true(Aspect.ACCEPTED, Reason.VALID, "The spec is what is being carried out.")


def _waits(world: World) -> bool:
    return world.wish.restore is not None and not world.wish.restore.ready


def _ready(world: World, around: Circumstances) -> Condition:
    record, run = world.record, world.record.run
    if run is None:
        return _false(Aspect.READY, Reason.NOT_STARTED, "Nothing was started yet.")
    agent = world.agent_of(run)
    if agent is not None and agent.phase == "running":
        return _running(world, agent, around)
    if record.operation is not None:
        words = f"{record.operation.kind.value}: {MEANINGS[record.operation.phase]}"
        starting = agent is not None or record.operation.kind in (Kind.START, Kind.RESUME)
        return _false(Aspect.READY, Reason.STARTING if starting else Reason.STANDING, words)
    if record.finished:
        gave_up = _gave_up(record)
        words = record.held.message if gave_up and record.held is not None else "The script ended."
        return _false(Aspect.READY, Reason.GAVE_UP if gave_up else Reason.COMPLETED, words)
    if record.suspended:
        return _false(Aspect.READY, Reason.SUSPENDED, "Set spec.suspend to false to go on.")
    words = "The driver's agent does not answer. Look at the driver's log and its network policies."
    return Condition(
        aspect=Aspect.READY, status=Status.UNKNOWN, reason=Reason.AGENT_SILENT, message=words
    )


def _running(world: World, agent: AgentFact, around: Circumstances) -> Condition:
    ended = [query.name for query in agent.queries if not query.active]
    if ended:
        words = f"Not running: {', '.join(ended)}. The driver's log says why."
        return _false(Aspect.READY, Reason.QUERY_ENDED, words)
    if not agent.queries:
        return _false(Aspect.READY, Reason.STARTING, "The script has not started a query yet.")
    begun = _begun(world)
    late = [
        query.name
        for query in agent.queries
        if query.busy and world.now - (query.last_commit or begun) > around.stalled_after
    ]
    if late:
        words = (
            f"At work, but without a commit for {around.stalled_after.total_seconds():.0f} s: "
            f"{', '.join(late)}. Look at the running batch in Spark's UI, and at the executors."
        )
        return _false(Aspect.READY, Reason.NO_COMMITS, words)
    first = [query.name for query in agent.queries if query.busy and query.last_commit is None]
    if first:
        words = f"At work on the first batch since the driver started: {', '.join(first)}."
        return _false(Aspect.READY, Reason.STARTING, words)
    return _true(Aspect.READY, Reason.COMMITTING, "All queries run.")


def _begun(world: World) -> datetime:
    """Since when the queries run, as far as it is written down; never before they did."""
    record = world.record
    if record.operation is not None and record.operation.phase is Phase.OBSERVE:
        return record.operation.phase_started
    return record.healthy_since or world.now


def _progressing(world: World) -> Condition:
    record = world.record
    operation = record.operation
    if operation is not None:
        words = f"{operation.kind.value} {operation.id}, {operation.phase.value}: "
        words += operation.message or MEANINGS[operation.phase]
        return _true(Aspect.PROGRESSING, Reason.UNDER_WAY, words)
    restore = world.wish.restore
    if restore is not None and not restore.ready and restore.key != record.restored:
        return _true(Aspect.PROGRESSING, Reason.WAITING_FOR_SAVEPOINT, restore.problem)
    held = _held(world)
    if held is not None and held.until is not None and world.now < held.until:
        words = f"Tried again at {held.until:%Y-%m-%d %H:%M:%S} UTC. {held.message}"
        return _true(Aspect.PROGRESSING, Reason.HELD_BACK, words)
    return _false(Aspect.PROGRESSING, Reason.IDLE, "Nothing is being done.")


def _held(world: World) -> Held | None:
    """What keeps the present wish from being carried out."""
    held = world.record.held
    return held if held is not None and is_of_wish(held, world.wish) else None


_HELD = {
    reason.value: reason
    for reason in (
        Reason.ROLLED_BACK,
        Reason.INCOMPATIBLE,
        Reason.SAVEPOINT_FAILED,
        Reason.NOT_PREPARED,
        Reason.SCRIPT_FAILED,
        Reason.COMPATIBILITY_UNKNOWN,
        Reason.NOT_REPARTITIONED,
        Reason.GAVE_UP,
    )
}
_GOES_ON = "What ran before runs on. "
_REMEDIES = {
    Reason.ROLLED_BACK: "The last stable revision runs. Change the spec, or how it is to prove "
    "itself in spec.upgrade, to try again.",
    Reason.INCOMPATIBLE: f"{_GOES_ON}Change the code, or set spec.upgrade.compatibility to Warn.",
    Reason.SAVEPOINT_FAILED: "Check the repository and its credentials.",
    Reason.NOT_PREPARED: "Check that a worker pod can be scheduled, and can read the savepoint.",
    Reason.SCRIPT_FAILED: f"{_GOES_ON}Correct the code, or set "
    "spec.upgrade.compatibility to Warn if it can start in its driver alone.",
    Reason.COMPATIBILITY_UNKNOWN: "Nothing was stopped for it. If what differs is what the change "
    "is for, set spec.upgrade.compatibility to Enforce.",
    Reason.NOT_REPARTITIONED: "What ran before runs on, in the partitions that it has. Set "
    "spec.state.partitions back, or give up the state with spec.upgrade.mode: Stateless.",
    Reason.GAVE_UP: "Change spec.restartNonce to start it again.",
}


def _degraded(world: World, around: Circumstances) -> Condition:
    record, held = world.record, _held(world)
    if around.obstacle:
        return _true(Aspect.DEGRADED, Reason.OBJECT_REFUSED, around.obstacle)
    stuck = _not_rolled_back(record, held)
    if stuck:
        return _true(Aspect.DEGRADED, Reason.NOT_ROLLED_BACK, stuck)
    if held is not None:
        reason = _HELD.get(held.reason, Reason.NOT_PREPARED)
        return _true(Aspect.DEGRADED, reason, f"{held.message} {_REMEDIES[reason]}".strip())
    lacking = missed(world)
    if lacking is not None:
        return _true(Aspect.DEGRADED, Reason(lacking.reason), lacking.message)
    unread = _not_adopted(record)
    if unread:
        return _true(Aspect.DEGRADED, Reason.NOT_ADOPTED, unread)
    operation = record.operation
    if operation is not None and operation.trouble is not None:
        reason = _HELD.get(operation.trouble.reason, Reason.NOT_PREPARED)
        words = f"{operation.message} Nothing is started, and it is tried again."
        return _true(Aspect.DEGRADED, reason, f"{words} {_REMEDIES[reason].removeprefix(_GOES_ON)}")
    waits = stranded(world)
    if waits:
        return _true(Aspect.DEGRADED, Reason.NODE_LOST, waits)
    if record.failures:
        last = record.last.message if record.last is not None else ""
        cause = record.operation.message if record.operation is not None else last
        words = f"The driver failed {record.failures} times in a row. {cause}".strip()
        return _true(Aspect.DEGRADED, Reason.DRIVER_FAILING, words)
    return _false(Aspect.DEGRADED, Reason.AS_EXPECTED, "Nothing needs a person.")


def _not_rolled_back(record: Record, held: Held | None) -> str:
    """Why nothing runs although the stable revision should, and what a person can do."""
    run, last = record.run, record.last
    if held is None or held.reason != Reason.ROLLED_BACK.value or last is None or run is None:
        return ""
    if last.kind not in (Kind.ROLLBACK, Kind.RECOVER) or last.result is not Result.FAILED:
        return ""
    remedy = (
        "If it cannot read the state, set spec.restoreFrom to an earlier savepoint."
        if run.opened
        else f"If sinks do not fit savepoint {run.source.savepoint}, bring them to where it stands "
        "and set spec.restoreFrom to it, with sink: Fork for tables that remember the batches of "
        "a query, else Resume. If a rewind has cut a sink already, set it to the savepoint that "
        "was to be restored."
    )
    return (
        f"{held.message} The last stable revision does not run either, and is tried again: "
        f"{last.message} {remedy}"
    )


def _not_adopted(record: Record) -> str:
    operation = record.operation
    if operation is None or operation.phase is not Phase.ADOPT or not operation.tries:
        return ""
    return (
        f"{operation.message} Nothing is started, and it is tried again. Correct "
        "spec.checkpoint.adopt, or remove it to begin without state."
    )


def _compatible(world: World) -> Condition:
    held, stable = _held(world), world.record.stable
    if held is not None and held.reason == Reason.INCOMPATIBLE.value:
        return _false(Aspect.COMPATIBLE, Reason.INCOMPATIBLE, held.message)
    if stable is not None and stable.revision.code == world.wish.revision.code:
        return _true(Aspect.COMPATIBLE, Reason.PROVEN, "This code has committed on this state.")
    if held is not None and held.reason == Reason.COMPATIBILITY_UNKNOWN.value:
        return _not_known(Reason.COMPATIBILITY_UNKNOWN, held.message)
    return _not_known(Reason.NOT_TRIED, "This code has not committed on this state yet.")


def _not_known(reason: Reason, message: str) -> Condition:
    return Condition(
        aspect=Aspect.COMPATIBLE, status=Status.UNKNOWN, reason=reason, message=message
    )


def _savepoint_healthy(around: Circumstances) -> Condition:
    health = around.savepoints
    if health is None:
        return _unhealthy(Status.UNKNOWN, Reason.NO_REPOSITORY, "spec.savepoints is not set.")
    if health.failed is not None:
        words = f"{health.failed}: {health.failure}"
        return _unhealthy(Status.FALSE, Reason.SAVEPOINT_FAILED, words)
    if health.due is not None:
        words = f"The schedule wanted one at {health.due:%Y-%m-%d %H:%M} UTC."
        return _unhealthy(Status.FALSE, Reason.LATE, words)
    if health.last is None:
        return _unhealthy(Status.UNKNOWN, Reason.NONE_YET, "None was taken yet.")
    return _true(Aspect.SAVEPOINT_HEALTHY, Reason.TAKEN, f"The last one is {health.last}.")


def _unhealthy(status: Status, reason: Reason, message: str) -> Condition:
    return Condition(aspect=Aspect.SAVEPOINT_HEALTHY, status=status, reason=reason, message=message)


def _true(aspect: Aspect, reason: Reason, message: str) -> Condition:
    return Condition(aspect=aspect, status=Status.TRUE, reason=reason, message=message)


def _false(aspect: Aspect, reason: Reason, message: str) -> Condition:
    return Condition(aspect=aspect, status=Status.FALSE, reason=reason, message=message)
