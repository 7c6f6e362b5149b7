"""Modify: of the savepoint that was captured, a worker pod makes one in other partitions.

The one that was captured stays as it is: it is the way back. If the other one cannot be made, the
job goes on in its directory, where nothing was changed.
"""

from dataclasses import replace

from sparkpoint.lifecycle.actions import Repartition, StartWorker
from sparkpoint.lifecycle.naming import worker_name
from sparkpoint.lifecycle.record import Run
from sparkpoint.lifecycle.recovery import go_on_as_before
from sparkpoint.lifecycle.step import Step, advance, backoff, held_back, hold, wait
from sparkpoint.lifecycle.steps.leaving import left
from sparkpoint.lifecycle.world import WorkerFact, WorkerState, World

__all__ = ["modify"]

_TRIES = 4
_MOVING = "Bringing the state to other partitions."
_PASSING = ("PendingBatch",)
"""Failures for which another stop may come at a better moment."""


def modify(world: World) -> Step:
    """Over when the savepoint in other partitions is in the repository, or none is needed."""
    operation, run = world.operation, world.record.run
    if run is None:
        return advance(world)
    task = _task(world)
    if task is None:
        return _over(world, run)
    due = world.record.due
    if operation.tries and due is not None and world.now < due:
        return wait(world, wake=due - world.now, message=operation.message)
    name = worker_name(world.job, operation)
    worker = world.worker(name)
    if worker is None:
        return wait(world, StartWorker(name=name, task=task), message=_MOVING)
    match worker.state:
        case WorkerState.RUNNING:
            return _moving(world, run, worker)
        case WorkerState.SUCCEEDED:
            return _answered(world, run, worker)
        case WorkerState.FAILED:
            return _failed(world, run, worker)


def _task(world: World) -> Repartition | None:
    operation, target = world.operation, world.operation.target
    if not operation.moves or target is None or operation.savepoint is None:
        # A second launch begins from what was made for the first.
        return None
    made, partitions = target.origin.savepoint, target.revision.partitions
    if made is None or partitions is None:
        return None
    return Repartition(run=target, savepoint=operation.savepoint, made=made, partitions=partitions)


def _over(world: World, run: Run) -> Step:
    return advance(replace(world, record=left(world, run)))


def _moving(world: World, run: Run, worker: WorkerFact) -> Step:
    deadline = world.wish.policy.deadline
    since = worker.created or world.operation.phase_started
    if worker.stuck and world.now - since > deadline:
        words = f"Pod {worker.name} does not start: {worker.hindrance}"
        return _failed(world, run, replace(worker, message=words))
    return wait(world, wake=deadline / 10, message=worker.hindrance or _MOVING)


def _answered(world: World, run: Run, worker: WorkerFact) -> Step:
    if worker.answer != "Repartitioned":
        words = worker.message or f"The worker answered {worker.answer!r}."
        return _failed(world, run, replace(worker, message=words))
    target = world.operation.target
    if target is not None and worker.savepoint not in ("", target.origin.savepoint):
        # What was captured has these partitions already, and is begun from itself.
        origin = replace(target.origin, savepoint=worker.savepoint)
        moved = replace(target, origin=origin, source=origin)
        world = replace(world, record=world.record.with_operation(target=moved))
    return _over(world, run)


def _failed(world: World, run: Run, worker: WorkerFact) -> Step:
    tries = world.operation.tries + 1
    if worker.final or tries >= _TRIES:
        return _given_up(world, run, worker)
    record = world.record.with_operation(tries=tries, message=worker.message)
    return Step(record=replace(record, due=world.now + backoff(world, tries)), again=True)


def _given_up(world: World, run: Run, worker: WorkerFact) -> Step:
    """The job goes on as it was, and this wish is not tried again, or later."""
    target = world.operation.target
    number = target.revision.partitions if target is not None else None
    message = f"The state could not be brought to {number} partitions: {worker.message}"
    record = world.record
    if target is not None and target.revision.name == world.wish.revision.name:
        # Another wish that was made meanwhile has not been tried.
        lasts = worker.final and worker.kind not in _PASSING
        reason = "NotRepartitioned"
        record = (
            hold(world, reason, message, until=None) if lasts else held_back(world, reason, message)
        )
    return go_on_as_before(replace(world, record=record), run, message)
