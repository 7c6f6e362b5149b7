"""Prepare: code is tried on a copy of the state that it is to go on from, before that begins."""

from dataclasses import replace

from sparkpoint.lifecycle.actions import Action, Event, Rehearse, StartWorker
from sparkpoint.lifecycle.naming import worker_name
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Result, Run, Trouble
from sparkpoint.lifecycle.step import (
    Step,
    advance,
    backoff,
    earlier_tries,
    finish,
    hold,
    refuse,
    wait,
)
from sparkpoint.lifecycle.steps.examine import LookedAt, examine, looked_at
from sparkpoint.lifecycle.targets import is_tried_otherwise
from sparkpoint.lifecycle.world import WorkerFact, WorkerState, World

__all__ = ["prepare"]

_TRYING = "Trying the code on a copy of the state."


def prepare(world: World) -> Step:
    """Over when the verdict lets the operation go on."""
    operation, policy = world.operation, world.wish.policy
    if operation.kind is Kind.REPARTITION and not operation.tries:
        return examine(world)
    trial = _trial(world, operation.target) if operation.target is not None else None
    # Without state there is nothing to try it on; rollback is what is left then.
    if trial is None or policy.compatibility == "Skip":
        return advance(world)
    if is_tried_otherwise(world) or _is_let_go(world):
        return _otherwise(world)
    due = world.record.due if operation.trouble is not None else None
    if due is not None and world.now < due:
        return wait(world, wake=due - world.now, message=operation.message)
    name = worker_name(world.job, operation)
    worker = world.worker(name)
    if worker is None:
        start: Action = StartWorker(name=name, task=trial)
        former = earlier_tries(world) if operation.trouble is not None else ()
        return wait(world, *former, start, message=_told(world, _TRYING))
    if worker.state is WorkerState.RUNNING:
        return _still_trying(world, worker, trial)
    return _judged(world, worker)


def _is_let_go(world: World) -> bool:
    """Whether another policy may let pass what the trial has failed of."""
    trouble = world.operation.trouble
    return trouble is not None and trouble.policy != world.wish.policy.decisive


def _otherwise(world: World) -> Step:
    """Another trial at once, as something else is asked for."""
    operation = world.operation
    record = world.record.with_operation(
        strict=world.wish.policy.strict or None,
        tries=operation.tries + 1,
        phase_started=world.now,
        spent=operation.spent_until(world.now),
        trouble=None,
        message="",
    )
    return Step(record=replace(record, due=None), again=True)


def _told(world: World, now: str) -> str:
    """What it has failed of stays in sight while it is repeated."""
    return world.operation.message if world.operation.trouble is not None else now


def _trial(world: World, target: Run) -> Rehearse | None:
    if world.operation.kind in (Kind.START, Kind.RESTORE):
        savepoint = target.origin.savepoint
        if savepoint is None:
            return None
        return _rehearse(world, target, LookedAt(savepoint=savepoint))
    # Code that is to begin without state need not be able to read any.
    if world.wish.policy.mode == "Stateless" or _is_proven(world, target):
        return None
    found = looked_at(world)
    return _rehearse(world, target, found) if found is not None else None


def _rehearse(world: World, target: Run, found: LookedAt) -> Rehearse:
    return Rehearse(
        run=target,
        savepoint=found.savepoint,
        captured_from=found.captured_from,
        strict=bool(world.operation.strict),
    )


def _is_proven(world: World, target: Run) -> bool:
    """Whether the very code that runs is to go on, from its own state in other partitions."""
    run = world.record.run
    if world.operation.kind is not Kind.REPARTITION or run is None:
        return False
    return run.revision.code == target.revision.code


def _still_trying(world: World, worker: WorkerFact, trial: Rehearse) -> Step:
    policy = world.wish.policy
    # A repeated trial has a time of its own, from when there was room for its pod.
    since = worker.created if world.operation.trouble is not None else None
    waited = world.now - since if since is not None else world.waited()
    if waited <= policy.deadline:
        left = policy.deadline - waited
        return wait(world, wake=left, message=_told(world, worker.hindrance or _TRYING))
    message = f"The trial of the new code did not end in time. {worker.hindrance}".strip()
    if trial.captured_from is not None and not worker.hindrance and not policy.strict:
        # It had to be captured first: that takes the same time when it is tried again.
        return _warned(advance(world), "CompatibilityUnknown", message)
    return _later(world, "NotPrepared", message)


def _judged(world: World, worker: WorkerFact) -> Step:
    if worker.answer == "Incompatible" and _is_enforced(world):
        return _never(world, "Incompatible", worker.message)
    hindrance = _hindrance(world, worker)
    if _is_final(world, worker, hindrance):
        return _never(world, hindrance, worker.message)
    if hindrance:
        return _later(world, hindrance, worker.message)
    step = advance(world)
    if worker.answer == "Compatible":
        return step
    reason = "Incompatible" if worker.answer == "Incompatible" else "CompatibilityUnknown"
    return _warned(step, reason, worker.message)


def _hindrance(world: World, worker: WorkerFact) -> str:
    """Why the job would be stopped for nothing, in a word; empty if nothing is known."""
    enforced = _is_enforced(world)
    # Whatever the code is worth, it cannot begin from what cannot be read.
    needed = world.operation.kind in (Kind.START, Kind.RESTORE)
    if worker.kind == "SavepointUnreadable" and (enforced or needed):
        return "NotPrepared"
    if worker.refused and enforced:
        return "NotPrepared"
    if worker.kind == "ScriptRaises" and enforced:
        return "ScriptFailed"
    if worker.answer == "Compatible" or not world.wish.policy.strict:
        return ""
    # A trial that has come to nothing, such as one whose pod was evicted, says nothing of the code.
    return "CompatibilityUnknown" if worker.answer == "Unknown" else "NotPrepared"


def _is_final(world: World, worker: WorkerFact, hindrance: str) -> bool:
    """Whether only an edit can change this: what begins from a certain savepoint would be tried on
    the same one again."""
    if world.operation.kind not in (Kind.START, Kind.RESTORE):
        return False
    if hindrance == "CompatibilityUnknown":
        return not worker.retry_helps
    return hindrance == "NotPrepared" and worker.final


def _never(world: World, reason: str, message: str) -> Step:
    """Not before an edit."""
    record = hold(world, reason, message, until=None)
    if world.operation.trouble is not None:
        record = replace(record, due=None)
    return finish(replace(world, record=record), Result.FAILED, message)


def _later(world: World, reason: str, message: str) -> Step:
    """Later, and later still each time. Another Start would capture what this one has adopted once
    more, so that it repeats the trial alone."""
    operation = world.operation
    if operation.adopt is None:
        return refuse(world, reason, message)
    tries = operation.tries + 1
    trouble = Trouble(reason=reason, policy=world.wish.policy.decisive)
    record = world.record.with_operation(tries=tries, trouble=trouble, message=message)
    told = Event(reason=reason, message=f"{message} Nothing is started.", warning=True)
    due = world.now + backoff(world, tries)
    return Step(record=replace(record, due=due), events=(told,), again=True)


def _is_enforced(world: World) -> bool:
    return world.wish.policy.compatibility in ("Strict", "Enforce")


def _warned(step: Step, reason: str, message: str) -> Step:
    told = Event(reason=reason, message=message, warning=True)
    return replace(step, events=(told, *step.events))
