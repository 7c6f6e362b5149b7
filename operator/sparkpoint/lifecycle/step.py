"""One step of a decision, and the few ways in which an operation moves on."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sparkpoint.lifecycle.actions import Action, DeletePod, Event
from sparkpoint.lifecycle.changes import is_of_wish
from sparkpoint.lifecycle.naming import operation_id, savepoint_name
from sparkpoint.lifecycle.phases import PLANS, Kind, Phase, following
from sparkpoint.lifecycle.record import Begin, Held, Operation, Outcome, Record, Result, Run
from sparkpoint.lifecycle.world import WorkerState, World

__all__ = [
    "SOON",
    "Step",
    "advance",
    "backoff",
    "begin",
    "earlier_tries",
    "finish",
    "held_back",
    "hold",
    "last_commit",
    "next_savepoint",
    "refuse",
    "wait",
]

SOON = timedelta(seconds=2)
"""Until the next look at what tells nobody when it changes: an agent."""

_RESTORES = (Kind.START, Kind.RESTORE)
"""What carries out a wish to restore; anything else leaves it to be carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What to write down, and then do; `again`: the record moved on, so decide again first."""

    record: Record
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    wake: timedelta | None = None
    again: bool = False


def wait(
    world: World,
    *actions: Action,
    wake: timedelta | None = None,
    message: str = "",
    events: tuple[Event, ...] = (),
) -> Step:
    """Stay in this phase, do this, and look again when something changes or after `wake`."""
    return Step(
        record=world.record.with_operation(message=message),
        actions=actions,
        events=events,
        wake=wake,
    )


def earlier_tries(world: World) -> tuple[Action, ...]:
    """What is tried for as long as it takes must not leave a pod of each try behind."""
    return tuple(
        DeletePod(name=each.name, uid=each.uid)
        for each in world.workers
        if each.state is not WorkerState.RUNNING and not each.deleting
    )


def next_savepoint(world: World, kind: Kind) -> str:
    """Under what the operation that begins next captures."""
    operation = operation_id(kind, world.record.sequence + 1)
    return savepoint_name(world.job, operation, world.own_life)


def begin(
    world: World,
    kind: Kind,
    *,
    target: Run | None,
    savepoint: str | None = None,
    former: Run | None = None,
    message: str,
) -> Step:
    """Write down a new operation; `savepoint`: what it captures, if it does, and `former` of what,
    if not of the run."""
    sequence = world.record.sequence + 1
    operation = Operation(
        id=operation_id(kind, sequence),
        kind=kind,
        phase=PLANS[kind][0],
        generation=world.wish.generation,
        started=world.now,
        phase_started=world.now,
        target=target,
        savepoint=savepoint,
        former=former,
        stopped=last_commit(world),
        restore=world.wish.restore_key if kind in _RESTORES else None,
        adopt=world.wish.adopt if kind is Kind.START else None,
        strict=world.wish.policy.strict or None,
        message=message,
    )
    record = replace(world.record, operation=operation, sequence=sequence, life=world.own_life)
    told = Event(reason=kind.value, message=message, operation=operation.id)
    return Step(record=record, again=True, events=(told,))


def advance(world: World) -> Step:
    """This phase is over: the next one, or the operation has succeeded."""
    operation = world.operation
    phase = following(operation.kind, operation.phase)
    if phase is None:
        stands = operation.kind is Kind.SUSPEND
        record = replace(world.record, suspended=stands or world.record.suspended)
        return finish(replace(world, record=record), Result.SUCCEEDED)
    record = world.record.with_operation(
        phase=phase,
        phase_started=world.now,
        spent=operation.spent_until(world.now),
        tries=0,
        trouble=None,
        message="",
    )
    return Step(record=_switched(record) if phase is Phase.LAUNCH else record, again=True)


def _switched(record: Record) -> Record:
    """From here on the target is what runs: written down before its first pod exists."""
    operation = record.operation
    if operation is None or operation.target is None:
        raise ValueError("nothing to launch")
    former, run = record.run, operation.target
    same = former is not None and former.epoch == run.epoch
    # What the user wants, or a way back, does not wait for what failed before it.
    anew = operation.kind is not Kind.RECOVER and operation.launches == 1
    return replace(
        record,
        run=run,
        operation=replace(operation, base=operation.base if _goes_on(operation, run) else ()),
        restored=_restored(record, operation, run),
        held=_still_held(record, operation.kind),
        progressed=record.progressed and same,
        suspended=False,
        finished=False,
        failures=0 if anew else record.failures,
        due=None if anew else record.due,
        healthy_since=None,
        silent_since=None,
        writing=False,
        vanished=None,
    )


def _goes_on(operation: Operation, run: Run) -> bool:
    """Whether it begins where the run before it stood: only then its batches are counted on."""
    if run.origin.begin is Begin.CONTINUE or operation.kind is Kind.REPARTITION:
        return True
    return run.origin.savepoint is not None and run.origin.savepoint == operation.savepoint


def _still_held(record: Record, kind: Kind) -> Held | None:
    """A wish that is carried out is held no longer; one that the former revision runs on for is."""
    held = record.held
    if held is None or held.reason == "GaveUp":
        return None
    return held if kind in (Kind.ROLLBACK, Kind.RECOVER, Kind.RESUME) else None


def _restored(record: Record, operation: Operation, run: Run) -> str | None:
    stable = record.stable
    if operation.kind is Kind.ROLLBACK and stable is not None and stable.savepoint is not None:
        goes_back = run.origin.savepoint == stable.savepoint
        return stable.restored if goes_back else record.restored
    return operation.restore or record.restored


def finish(
    world: World, result: Result, message: str = "", *, downtime: float | None = None
) -> Step:
    """The operation is over."""
    operation = world.operation
    outcome = Outcome(
        id=operation.id,
        kind=operation.kind,
        result=result,
        generation=operation.generation,
        started=operation.started,
        finished=world.now,
        downtime=downtime,
        savepoint=operation.savepoint if operation.captured else None,
        phases=operation.spent_until(world.now),
        message=message,
    )
    told = Event(
        reason=f"{operation.kind.value}{result.value}",
        message=message or f"{operation.kind.value} {operation.id} {result.value.lower()}.",
        warning=result in (Result.FAILED, Result.ROLLED_BACK),
        operation=operation.id,
    )
    record = replace(world.record, operation=None, last=outcome)
    return Step(record=record, again=True, events=(told,))


def hold(world: World, reason: str, message: str, *, until: datetime | None) -> Record:
    """Do not try this wish again before `until`; None: not at all, a new edit is needed."""
    wish, held = world.wish, world.record.held
    restore = wish.restore_key
    same = held is not None and is_of_wish(held, wish)
    return replace(
        world.record,
        held=Held(
            revision=wish.revision.name,
            restore=restore,
            reason=reason,
            message=message,
            until=until,
            policy=wish.policy.decisive,
            failures=held.failures + 1 if same and held is not None else 1,
        ),
    )


def held_back(world: World, reason: str, message: str) -> Record:
    """Try this wish again later, and later still each time."""
    first = hold(world, reason, message, until=world.now)
    failures = first.held.failures if first.held is not None else 1
    return hold(world, reason, message, until=world.now + backoff(world, failures))


def refuse(world: World, reason: str, message: str) -> Step:
    """The operation fails before it touched anything; it is tried again later."""
    return finish(replace(world, record=held_back(world, reason, message)), Result.FAILED, message)


def backoff(world: World, failures: int) -> timedelta:
    """How long to wait after so many failures in a row."""
    policy = world.wish.policy
    seconds = policy.backoff_initial.total_seconds()
    most = policy.backoff_max.total_seconds()
    for _ in range(failures - 1):
        seconds *= policy.backoff_factor
        # Also keeps the number from growing without bound.
        if seconds >= most:
            break
    return timedelta(seconds=min(seconds, most))


def last_commit(world: World) -> datetime | None:
    """Of the run that is written down, as its agent says."""
    run = world.record.run
    agent = world.agent_of(run) if run is not None else None
    commits = [query.last_commit for query in agent.queries] if agent is not None else []
    return max((commit for commit in commits if commit is not None), default=None)
