"""Prepare: the new revision is tried on a copy, while the job runs on."""

from dataclasses import replace

from sparkpoint.lifecycle.actions import Event, Rehearse, StartWorker
from sparkpoint.lifecycle.naming import worker_name
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Result
from sparkpoint.lifecycle.step import Step, advance, finish, held_back, hold, wait
from sparkpoint.lifecycle.world import WorkerFact, WorkerState, World

__all__ = ["prepare", "refuse"]

_TRYING = "Trying the new code on a copy of the state."


def prepare(world: World) -> Step:
    """Over when the verdict lets the operation go on."""
    operation, policy = world.operation, world.wish.policy
    target, tried = operation.target, _tried(world)
    # Without a savepoint there is nothing to try it on; rollback is what is left then.
    if target is None or policy.compatibility == "Skip" or tried is None:
        return advance(world)
    name = worker_name(world.job, operation)
    worker = world.worker(name)
    if worker is None:
        task = Rehearse(run=target, savepoint=tried)
        return wait(world, StartWorker(name=name, task=task), message=_TRYING)
    if worker.state is WorkerState.RUNNING:
        return _still_trying(world, worker)
    return _judged(world, worker)


def _tried(world: World) -> str | None:
    target = world.operation.target
    if world.operation.kind is Kind.RESTORE and target is not None:
        return target.origin.savepoint
    # Code that is to begin without state need not be able to read any.
    return world.newest if world.wish.policy.mode != "Stateless" else None


def _still_trying(world: World, worker: WorkerFact) -> Step:
    policy = world.wish.policy
    if world.waited() > policy.deadline:
        message = f"The trial of the new code did not end in time. {worker.stuck}".strip()
        return refuse(world, "NotPrepared", message)
    left = policy.deadline - world.waited()
    return wait(world, wake=left, message=worker.stuck or _TRYING)


def _judged(world: World, worker: WorkerFact) -> Step:
    if worker.answer == "Incompatible" and world.wish.policy.compatibility == "Enforce":
        record = hold(world, "Incompatible", worker.message, until=None)
        return finish(replace(world, record=record), Result.FAILED, worker.message)
    step = advance(world)
    if worker.answer == "Compatible":
        return step
    reason = "Incompatible" if worker.answer == "Incompatible" else "CompatibilityUnknown"
    told = Event(reason=reason, message=worker.message, warning=True)
    return replace(step, events=(told, *step.events))


def refuse(world: World, reason: str, message: str) -> Step:
    """The operation fails before it touched anything; it is tried again later."""
    return finish(replace(world, record=held_back(world, reason, message)), Result.FAILED, message)
