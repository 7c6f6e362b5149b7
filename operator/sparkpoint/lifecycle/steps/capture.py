"""Capture: what the stop did not capture itself, a worker pod does, from the directory."""

from dataclasses import replace

from sparkpoint.lifecycle.actions import Capture, Event, StartWorker
from sparkpoint.lifecycle.naming import worker_name
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Begin, Operation, Origin, Record, Result, Run
from sparkpoint.lifecycle.recovery import go_on_as_before
from sparkpoint.lifecycle.step import SOON, Step, advance, backoff, finish, held_back, wait
from sparkpoint.lifecycle.steps.leaving import left
from sparkpoint.lifecycle.targets import is_outdated, way_back
from sparkpoint.lifecycle.world import WorkerFact, WorkerState, World

__all__ = ["capture"]

_TRIES = 4
_TRIED = (Kind.UPGRADE, Kind.RESTORE)
"""What may be taken back to the savepoint that was captured for it. So may a Repartition, which
leaves the directory only when the state is in its new partitions."""
_UNASKED = (Kind.RECOVER, Kind.ROLLBACK)


def capture(world: World) -> Step:
    """Over when the state is in the repository, or there is none to capture."""
    operation = world.operation
    run = operation.former or world.record.run
    if run is None:
        return advance(world)
    if operation.savepoint is None or operation.captured:
        return _over(world, run)
    if not run.opened:
        return _over(replace(world, record=_from_source(world, run)), run)
    due = world.record.due
    if operation.tries and due is not None and world.now < due:
        return wait(world, wake=due - world.now, message=operation.message)
    name = worker_name(world.job, operation)
    worker = world.worker(name)
    returned = tuple(pod for pod in world.writers(run.epoch) if not world.is_lost(pod))
    if worker is None and returned:
        # Left behind, and back again: it is ended first, so that what it commits is not lost.
        return wait(world, wake=SOON, message=f"Waiting for pod {returned[0].name} to end.")
    if worker is None:
        able = world.record.able()
        revision = able[operation.tries % len(able)]
        task = Capture(run=run, savepoint=operation.savepoint, revision=revision)
        return wait(world, StartWorker(name=name, task=task), message="Capturing the last commit.")
    match worker.state:
        case WorkerState.RUNNING:
            return _capturing(world, run, worker)
        case WorkerState.SUCCEEDED:
            return _answered(world, run, worker)
        case WorkerState.FAILED:
            return _failed(world, run, worker.message)


def _capturing(world: World, run: Run, worker: WorkerFact) -> Step:
    deadline = world.wish.policy.deadline
    since = worker.created or world.operation.phase_started
    if worker.stuck and world.now - since > deadline:
        return _failed(world, run, f"Pod {worker.name} does not start: {worker.hindrance}")
    message = worker.hindrance or "Capturing the last commit."
    return wait(world, wake=deadline / 10, message=message)


def _answered(world: World, run: Run, worker: WorkerFact) -> Step:
    if worker.answer == "Captured":
        base = tuple(sorted(worker.batches.items())) or world.operation.base
        record = world.record.with_operation(captured=True, base=base)
        return _over(replace(world, record=record), run)
    nothing = worker.answer == "NothingCommitted" and _is_credible(world.record, run)
    if nothing and world.operation.moves:
        # A first batch that was begun has the former number written down in its directory.
        return _given_up(world, run, worker.message or "Nothing was committed yet.")
    if nothing:
        return _over(replace(world, record=_with_nothing(world, run)), run)
    return _failed(world, run, worker.message or f"The worker answered {worker.answer!r}.")


def _is_credible(record: Record, run: Run) -> bool:
    """State that was there cannot have become nothing: then it is the storage that fails."""
    return run.source.begin is Begin.EMPTY and not record.progressed


def _over(world: World, run: Run) -> Step:
    """What is left for something that has to prove itself is remembered: a rollback goes there."""
    if world.operation.kind not in _TRIED:
        return advance(world)
    return advance(replace(world, record=left(world, run)))


def _from_source(world: World, run: Run) -> Record:
    """Nothing was written since: what the epoch began from is what would be captured."""
    operation = world.operation
    record = world.record.with_operation(savepoint=run.left or run.source.savepoint)
    target = operation.target
    if target is None or _is_dispensable(operation):
        return record
    origin = run.source
    if operation.moves:
        # What is made of it stands where it stands, and so do the sinks.
        sink = run.source.sink if run.left is None else "Resume"
        origin = replace(target.origin, sink=sink)
    moved = replace(target, origin=origin, source=origin, given_up=run.given_up)
    return record.with_operation(target=moved)


def _with_nothing(world: World, run: Run) -> Record:
    """Nothing was ever committed. Its directory is kept: a first batch that was begun is repeated
    with the same offsets, and a sink that has seen it drops it. Only if it is left to a pod on a
    lost node the next one begins empty as well."""
    operation = world.operation
    record = world.record.with_operation(savepoint=None)
    target = operation.target
    if target is None or _is_dispensable(operation):
        return record
    if operation.fenced:
        return record.with_operation(target=replace(target, origin=run.source, source=run.source))
    origin = Origin(begin=Begin.CONTINUE)
    moved = replace(
        target,
        epoch=run.epoch,
        origin=origin,
        source=run.source,
        opened=run.opened,
        directory=run.directory,
    )
    return record.with_operation(target=moved)


def _failed(world: World, run: Run, message: str) -> Step:
    operation = world.operation
    tries = operation.tries + 1
    if tries >= _TRIES:
        return _without(world, run, message)
    record = world.record.with_operation(tries=tries, message=message)
    return Step(record=replace(record, due=world.now + backoff(world, tries)), again=True)


def _without(world: World, run: Run, message: str) -> Step:
    """What is done if it cannot be captured."""
    operation = world.operation
    if _gives_up_state(operation) and is_outdated(world):
        return finish(world, Result.SUPERSEDED, "The state is not to be given up any more.")
    if _is_dispensable(operation):
        # The directory itself is still there: no reason to hold the user's wish up.
        return _told(_over(_uncaptured(world, operation.target), run), message)
    if operation.kind is Kind.ROLLBACK and operation.former is None:
        target = way_back(world.record, run, None)
        if target.epoch != run.epoch or not operation.fenced:
            return _told(_over(_uncaptured(world, target), run), message)
    return _given_up(world, run, message)


def _is_dispensable(operation: Operation) -> bool:
    """Nothing is to begin from it."""
    target = operation.target
    if target is None:
        return True
    return not operation.moves and target.origin.savepoint != operation.savepoint


def _gives_up_state(operation: Operation) -> bool:
    return operation.target is not None and operation.target.origin.begin is Begin.EMPTY


def _uncaptured(world: World, target: Run | None) -> World:
    return replace(world, record=world.record.with_operation(savepoint=None, target=target))


def _told(step: Step, message: str) -> Step:
    told = Event(reason="SavepointFailed", message=message, warning=True)
    return replace(step, events=(told, *step.events))


def _given_up(world: World, run: Run, message: str) -> Step:
    """The job goes on as it was: what it ran before runs again, if it ran."""
    if world.operation.kind in _UNASKED:
        # Tried again from the beginning: a newer wish may come in between, with a better image.
        return finish(world, Result.FAILED, message)
    held = replace(world, record=held_back(world, "SavepointFailed", message))
    return go_on_as_before(held, run, message)
