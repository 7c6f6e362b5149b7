"""Clean: what the job's policy does not retain is removed, then the job itself may go."""

from dataclasses import replace
from datetime import timedelta

from sparkpoint.lifecycle.actions import DeletePod, Event, Release, RemoveData, StartWorker
from sparkpoint.lifecycle.naming import worker_name
from sparkpoint.lifecycle.record import Result, Run
from sparkpoint.lifecycle.step import SOON, Step, backoff, finish, wait
from sparkpoint.lifecycle.world import WorkerFact, WorkerState, World

__all__ = ["clean", "hurried", "overdue", "released"]

_TRIES = 3
_ENDING = timedelta(minutes=2)
"""For workers to end: longer than they are given to, so that one which outlives it is lost."""


def clean(world: World) -> Step:
    """Over when nothing of it is left that should not be."""
    operation, run = world.operation, world.record.run
    if run is None:
        return _gone(world, "")
    if world.wish.policy.retain_checkpoint:
        return _gone(world, "", f"Its checkpoints stay; {_where(run)}.")
    due = world.record.due
    if operation.tries and due is not None and world.now < due:
        return wait(world, wake=due - world.now, message=operation.message)
    name = worker_name(world.job, operation)
    worker = world.worker(name)
    if worker is None:
        able = world.record.able()
        revision = able[operation.tries % len(able)]
        task = RemoveData(run=run, life=world.record.life, revision=revision)
        return wait(world, StartWorker(name=name, task=task), message="Removing the checkpoints.")
    match worker.state:
        case WorkerState.RUNNING:
            return wait(world, message=worker.hindrance or "Removing the checkpoints.")
        case WorkerState.SUCCEEDED:
            return _gone(world, "")
        case WorkerState.FAILED:
            return _again(world, worker.message)


def _where(run: Run) -> str:
    """Where the newest state is: a run that was never let in has none of its own."""
    if run.opened or run.source.savepoint is None:
        return f"{run.folder} is the newest of them"
    return f"the newest state is in savepoint {run.source.savepoint}"


def _again(world: World, message: str) -> Step:
    tries = world.operation.tries + 1
    if tries >= _TRIES:
        return _gone(world, f"The checkpoints could not be removed: {message}")
    record = world.record.with_operation(tries=tries, message=message)
    # A storage that does not answer for a moment is given it.
    return Step(record=replace(record, due=world.now + backoff(world, tries)), again=True)


def _gone(world: World, warning: str, note: str = "") -> Step:
    record = replace(world.record, removed=True)
    result = Result.FAILED if warning else Result.SUCCEEDED
    return finish(replace(world, record=record), result, warning or note)


def released(world: World) -> Step:
    """Let go of it; pods that are left are deleted with it.

    Workers are seen to end before: what one of them does must not reach into the life of the next
    job of this name.
    """
    rest = tuple(DeletePod(name=pod.name, uid=pod.uid) for pod in world.pods if not pod.deleting)
    working = tuple(each for each in world.workers if _may_work(each))
    ended = world.record.last
    if working and ended is not None and world.now - ended.finished <= _ENDING:
        last = tuple(
            DeletePod(name=each.name, uid=each.uid) for each in working if not each.deleting
        )
        return Step(record=world.record, actions=(*rest, *last), wake=SOON)
    return Step(record=world.record, actions=(*rest, Release()))


def _may_work(worker: WorkerFact) -> bool:
    return worker.state is WorkerState.RUNNING and not worker.lost


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
