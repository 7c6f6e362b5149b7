"""Clean: what the job's policy does not retain is removed, then the job itself may go."""

from dataclasses import replace
from datetime import timedelta

from sparkpoint.lifecycle.actions import DeletePod, Event, Release, RemoveData, StartWorker
from sparkpoint.lifecycle.naming import worker_name
from sparkpoint.lifecycle.record import Result
from sparkpoint.lifecycle.step import Step, finish, wait
from sparkpoint.lifecycle.world import WorkerState, World

__all__ = ["clean", "hurried", "overdue", "released"]

_TRIES = 3


def clean(world: World) -> Step:
    """Over when nothing of it is left that should not be."""
    operation, run = world.operation, world.record.run
    if run is None or world.wish.policy.retain_checkpoint:
        return _gone(world, "")
    name = worker_name(world.job, operation)
    worker = world.worker(name)
    if worker is None:
        able = world.record.able()
        task = RemoveData(run=run, revision=able[operation.tries % len(able)])
        return wait(world, StartWorker(name=name, task=task), message="Removing the checkpoints.")
    match worker.state:
        case WorkerState.RUNNING:
            return wait(world, message=worker.stuck or "Removing the checkpoints.")
        case WorkerState.SUCCEEDED:
            return _gone(world, "")
        case WorkerState.FAILED:
            return _again(world, worker.message)


def _again(world: World, message: str) -> Step:
    tries = world.operation.tries + 1
    if tries >= _TRIES:
        return _gone(world, f"The checkpoints could not be removed: {message}")
    return Step(record=world.record.with_operation(tries=tries, message=message), again=True)


def _gone(world: World, warning: str) -> Step:
    record = replace(world.record, removed=True)
    result = Result.FAILED if warning else Result.SUCCEEDED
    return finish(replace(world, record=record), result, warning)


def released(world: World) -> Step:
    """Let go of it; pods that are left are deleted with it."""
    rest = tuple(DeletePod(name=pod.name, uid=pod.uid) for pod in world.pods if not pod.deleting)
    return Step(record=world.record, actions=(*rest, Release()))


def hurried(world: World, step: Step) -> Step:
    """No wait of a deletion goes beyond its end."""
    left = _left(world)
    return replace(step, wake=left if step.wake is None else min(step.wake, left))


def overdue(world: World) -> Step | None:
    """A deletion ends, whatever could not be done."""
    operation = world.operation
    if _left(world) > timedelta(0):
        return None
    message = f"Deleted without finishing {operation.phase.value}: {operation.message}"
    step = _gone(world, message)
    told = Event(reason="DeletionTimedOut", message=message, warning=True)
    return replace(step, events=(told, *step.events))


def _left(world: World) -> timedelta:
    return world.wish.policy.delete_timeout - (world.now - world.operation.started)
