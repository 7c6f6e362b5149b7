"""Whether state can be had in other partitions: looked at before the job is stopped for it.

A worker looks at the newest savepoint, whose provider, operators and formats are those of the next
one. Unlike a trial of code this is not left to a policy: what cannot be moved cannot be begun from.
"""

from dataclasses import dataclass, replace

from sparkpoint.lifecycle.actions import Examine, StartWorker
from sparkpoint.lifecycle.naming import savepoint_name, worker_name
from sparkpoint.lifecycle.record import Result, Run
from sparkpoint.lifecycle.step import Step, finish, hold, refuse, wait
from sparkpoint.lifecycle.world import WorkerFact, WorkerState, World

__all__ = ["LookedAt", "examine", "looked_at"]

_LOOKING = "Looking whether the state can be brought to other partitions."


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedAt:
    """A savepoint that stands for the state which the operation is going to capture."""

    savepoint: str
    captured_from: Run | None = None
    """There is none yet: it is taken of this run first, and removed afterwards."""


def looked_at(world: World) -> LookedAt | None:
    """What is tried or examined before the stop; None: there is nothing to look at."""
    if world.newest is not None:
        return LookedAt(savepoint=world.newest)
    run = world.record.run
    if run is None or not run.opened or not world.wish.policy.repository:
        return None
    # One name for all trials of the job's life: what a killed one leaves, the next one takes away.
    name = savepoint_name(world.job, "trial", world.record.life)
    return LookedAt(savepoint=name, captured_from=run)


def examine(world: World) -> Step:
    """Over when a worker has said that it can be done, or nothing is there to look at."""
    operation = world.operation
    target, found = operation.target, _begun_from(world) or looked_at(world)
    partitions = target.revision.partitions if target is not None else None
    if target is None or found is None or partitions is None:
        return _passed(world)
    name = worker_name(world.job, operation)
    worker = world.worker(name)
    if worker is None:
        task = Examine(
            run=target,
            savepoint=found.savepoint,
            partitions=partitions,
            captured_from=found.captured_from,
        )
        return wait(world, StartWorker(name=name, task=task), message=_LOOKING)
    if worker.state is WorkerState.RUNNING:
        return _still_looking(world, worker)
    return _judged(world, worker, partitions)


def _begun_from(world: World) -> LookedAt | None:
    """What a run that was never let in begins from is what the operation will capture."""
    run = world.record.run
    if run is None or run.opened:
        return None
    savepoint = run.left or run.source.savepoint
    return LookedAt(savepoint=savepoint) if savepoint is not None else None


def _still_looking(world: World, worker: WorkerFact) -> Step:
    deadline = world.wish.policy.deadline
    if world.waited() <= deadline:
        return wait(world, wake=deadline - world.waited(), message=worker.hindrance or _LOOKING)
    message = f"The look at the state did not end in time. {worker.hindrance}".strip()
    return refuse(world, "NotPrepared", message)


def _judged(world: World, worker: WorkerFact, partitions: int) -> Step:
    match worker.answer:
        case "Compatible":
            return _passed(world)
        case "Incompatible":
            message = f"The state cannot be brought to {partitions} partitions: {worker.message}"
            record = hold(world, "NotRepartitioned", message, until=None)
            return finish(replace(world, record=record), Result.FAILED, message)
        case "Unknown":
            message = (
                f"{worker.message} It is tried again; with spec.upgrade.mode: Stateless the job "
                "begins anew in the other number."
            )
            return refuse(world, "NotPrepared", message.strip())
        case _:
            return refuse(world, "NotPrepared", worker.message or "The worker said nothing.")


def _passed(world: World) -> Step:
    """The next pod of this phase tries the code, if there is new code to be tried."""
    record = world.record.with_operation(tries=1, message="")
    return Step(record=record, again=True)
