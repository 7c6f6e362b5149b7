"""Adopt: a checkpoint that somebody else left is captured, for a new job to begin from.

It is only read. Nothing is started before it is in the repository, however long that takes: a job
that is to take state on must not begin without it.
"""

from dataclasses import replace

from sparkpoint.lifecycle.actions import Action, Adopt, Event, StartWorker
from sparkpoint.lifecycle.naming import worker_name
from sparkpoint.lifecycle.record import Adoption, Run
from sparkpoint.lifecycle.step import Step, advance, backoff, earlier_tries, wait
from sparkpoint.lifecycle.world import WorkerFact, WorkerState, World

__all__ = ["adopt"]

_CAPTURING = "Capturing the checkpoint to adopt."


def adopt(world: World) -> Step:
    """Over when the checkpoint is in the repository, or there is none to adopt."""
    operation = world.operation
    adoption, target, savepoint = operation.adopt, operation.target, operation.savepoint
    if adoption is None or target is None or savepoint is None or operation.captured:
        return advance(world)
    due = world.record.due
    if operation.tries and due is not None and world.now < due:
        return wait(world, wake=due - world.now, message=operation.message)
    worker = world.worker(worker_name(world.job, operation))
    if worker is None:
        return _start(world, target, adoption, savepoint)
    match worker.state:
        case WorkerState.RUNNING:
            return _capturing(world, adoption, worker)
        case WorkerState.SUCCEEDED:
            return _answered(world, adoption, worker)
        case WorkerState.FAILED:
            return _again(world, adoption, worker.message)


def _start(world: World, target: Run, adoption: Adoption, savepoint: str) -> Step:
    task = Adopt(run=target, adoption=adoption, savepoint=savepoint)
    start: Action = StartWorker(name=worker_name(world.job, world.operation), task=task)
    message = world.operation.message or _CAPTURING
    return wait(world, *earlier_tries(world), start, message=message)


def _capturing(world: World, adoption: Adoption, worker: WorkerFact) -> Step:
    deadline = world.wish.policy.deadline
    since = worker.created or world.operation.phase_started
    if worker.stuck and world.now - since > deadline:
        return _again(world, adoption, f"Pod {worker.name} does not start: {worker.hindrance}")
    message = worker.hindrance or world.operation.message or _CAPTURING
    return wait(world, wake=deadline / 10, message=message)


def _answered(world: World, adoption: Adoption, worker: WorkerFact) -> Step:
    if worker.answer != "Captured":
        said = worker.message or f"The worker answered {worker.answer!r}."
        return _again(world, adoption, said)
    base = tuple(sorted(worker.batches.items()))
    record = world.record.with_operation(captured=True, base=base)
    return advance(replace(world, record=replace(record, due=None)))


def _again(world: World, adoption: Adoption, said: str) -> Step:
    """Later, and later still each time; a corrected spec takes over at once."""
    tries = world.operation.tries + 1
    message = f"{adoption.location} cannot be adopted: {said}"
    record = world.record.with_operation(tries=tries, message=message)
    told = Event(reason="NotAdopted", message=f"{message} Nothing is started.", warning=True)
    due = world.now + backoff(world, tries)
    return Step(record=replace(record, due=due), events=(told,), again=True)
