"""Prepare: code is tried on a copy of the state that it is to go on from, before that begins."""

from dataclasses import replace

from sparkpoint.lifecycle.actions import Event, Rehearse, StartWorker
from sparkpoint.lifecycle.naming import worker_name
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Result, Run
from sparkpoint.lifecycle.step import Step, advance, finish, hold, refuse, wait
from sparkpoint.lifecycle.steps.examine import examine, looked_at
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
    name = worker_name(world.job, operation)
    worker = world.worker(name)
    if worker is None:
        return wait(world, StartWorker(name=name, task=trial), message=_TRYING)
    if worker.state is WorkerState.RUNNING:
        return _still_trying(world, worker, trial)
    return _judged(world, worker)


def _trial(world: World, target: Run) -> Rehearse | None:
    if world.operation.kind in (Kind.START, Kind.RESTORE):
        savepoint = target.origin.savepoint
        return Rehearse(run=target, savepoint=savepoint) if savepoint is not None else None
    # Code that is to begin without state need not be able to read any.
    if world.wish.policy.mode == "Stateless" or _is_proven(world, target):
        return None
    found = looked_at(world)
    if found is None:
        return None
    return Rehearse(run=target, savepoint=found.savepoint, captured_from=found.captured_from)


def _is_proven(world: World, target: Run) -> bool:
    """Whether the very code that runs is to go on, from its own state in other partitions."""
    run = world.record.run
    if world.operation.kind is not Kind.REPARTITION or run is None:
        return False
    return run.revision.code == target.revision.code


def _still_trying(world: World, worker: WorkerFact, trial: Rehearse) -> Step:
    policy = world.wish.policy
    if world.waited() <= policy.deadline:
        left = policy.deadline - world.waited()
        return wait(world, wake=left, message=worker.hindrance or _TRYING)
    message = f"The trial of the new code did not end in time. {worker.hindrance}".strip()
    if trial.captured_from is not None and not worker.hindrance and not policy.strict:
        # It had to be captured first: that takes the same time when it is tried again.
        return _warned(advance(world), "CompatibilityUnknown", message)
    return refuse(world, "NotPrepared", message)


def _judged(world: World, worker: WorkerFact) -> Step:
    if worker.answer == "Incompatible" and _is_enforced(world):
        record = hold(world, "Incompatible", worker.message, until=None)
        return finish(replace(world, record=record), Result.FAILED, worker.message)
    hindrance = _hindrance(world, worker)
    if _is_final(world, worker, hindrance):
        record = hold(world, hindrance, worker.message, until=None)
        return finish(replace(world, record=record), Result.FAILED, worker.message)
    if hindrance:
        return refuse(world, hindrance, worker.message)
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
    """Whether only an edit can change this: every Start that adopts captures the whole checkpoint
    once more, and what begins from a certain savepoint would be tried on the same one again."""
    operation = world.operation
    if hindrance == "CompatibilityUnknown":
        return operation.kind in (Kind.START, Kind.RESTORE) and not worker.retry_helps
    return hindrance == "ScriptFailed" and operation.adopt is not None


def _is_enforced(world: World) -> bool:
    return world.wish.policy.compatibility in ("Strict", "Enforce")


def _warned(step: Step, reason: str, message: str) -> Step:
    told = Event(reason=reason, message=message, warning=True)
    return replace(step, events=(told, *step.events))
