"""Prepare: code is tried on a copy of the state that it is to go on from, before that begins."""

from dataclasses import replace

from sparkpoint.lifecycle.actions import Event, Rehearse, StartWorker
from sparkpoint.lifecycle.naming import savepoint_name, worker_name
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Result, Run
from sparkpoint.lifecycle.step import Step, advance, finish, held_back, hold, wait
from sparkpoint.lifecycle.world import WorkerFact, WorkerState, World

__all__ = ["prepare", "refuse"]

_TRYING = "Trying the code on a copy of the state."


def prepare(world: World) -> Step:
    """Over when the verdict lets the operation go on."""
    operation, policy = world.operation, world.wish.policy
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
    if world.wish.policy.mode == "Stateless":
        return None
    if world.newest is not None:
        return Rehearse(run=target, savepoint=world.newest)
    run = world.record.run
    if run is None or not run.opened or not world.wish.policy.repository:
        return None
    # One name for all trials of the job's life: what a killed one leaves, the next one takes away.
    name = savepoint_name(world.job, "trial", world.record.life)
    return Rehearse(run=target, savepoint=name, captured_from=run)


def _still_trying(world: World, worker: WorkerFact, trial: Rehearse) -> Step:
    policy = world.wish.policy
    if world.waited() <= policy.deadline:
        left = policy.deadline - world.waited()
        return wait(world, wake=left, message=worker.hindrance or _TRYING)
    message = f"The trial of the new code did not end in time. {worker.hindrance}".strip()
    if trial.captured_from is not None and not worker.hindrance:
        # It had to be captured first: that takes the same time when it is tried again.
        return _warned(advance(world), "CompatibilityUnknown", message)
    return refuse(world, "NotPrepared", message)


def _judged(world: World, worker: WorkerFact) -> Step:
    if worker.answer == "Incompatible" and world.wish.policy.compatibility == "Enforce":
        record = hold(world, "Incompatible", worker.message, until=None)
        return finish(replace(world, record=record), Result.FAILED, worker.message)
    hindrance = _hindrance(world, worker)
    if hindrance == "ScriptFailed" and world.operation.adopt is not None:
        # Every Start anew captures the whole checkpoint once more: only an edit can change this.
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
    enforced = world.wish.policy.compatibility == "Enforce"
    # Whatever the code is worth, it cannot begin from what cannot be read.
    needed = world.operation.kind in (Kind.START, Kind.RESTORE)
    if worker.kind == "SavepointUnreadable" and (enforced or needed):
        return "NotPrepared"
    if worker.refused and enforced:
        return "NotPrepared"
    return "ScriptFailed" if worker.kind == "ScriptRaises" and enforced else ""


def _warned(step: Step, reason: str, message: str) -> Step:
    told = Event(reason=reason, message=message, warning=True)
    return replace(step, events=(told, *step.events))


def refuse(world: World, reason: str, message: str) -> Step:
    """The operation fails before it touched anything; it is tried again later."""
    return finish(replace(world, record=held_back(world, reason, message)), Result.FAILED, message)
