"""decide_savepoint(world): what a SparkSavepoint needs next.

Captured by the driver's agent while the job runs, by a worker pod while it stands, and by nobody
while something is being done to the job. Savepoints of operations are taken by the operation; they
are only watched here. Pure, like `decide`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sparkpoint.lifecycle.actions import Event
from sparkpoint.lifecycle.savepointworld import (
    AskAgent,
    JobState,
    SavepointAction,
    SavepointRecord,
    SavepointState,
    SavepointTask,
    SavepointWorld,
    StartTask,
    Taker,
    task_name,
)
from sparkpoint.lifecycle.world import WorkerFact, WorkerState

__all__ = ["SavepointDecision", "decide_savepoint"]

_LOOK = timedelta(seconds=2)
_SELDOM = timedelta(seconds=30)
_LONGEST_PAUSE = timedelta(minutes=5)
_DISPOSAL = timedelta(minutes=10)
"""For the data to be removed, or to be no longer in use; then the resource goes without that."""
_STUCK = timedelta(minutes=10)
"""For a worker pod to start."""


_NO_JOB = (
    "Waiting for the job: there is none of that name. Make it, or delete this savepoint and make "
    "one with the right spec.jobRef."
)
_UNUSABLE = (
    "Waiting for the job: its spec names no repository, or cannot be used. Set "
    "spec.savepoints.repository of the job, and look at its condition Accepted."
)


_PAUSED = "The job is paused."


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointDecision:
    """Write `record` down, then do `actions`, then look again after `wake` or when woken."""

    record: SavepointRecord
    actions: tuple[SavepointAction, ...] = ()
    events: tuple[Event, ...] = ()
    wake: timedelta | None = None
    released: bool = False
    """A resource that is being deleted may go."""


def decide_savepoint(world: SavepointWorld) -> SavepointDecision:
    """The next thing to do. Deciding again on the same world adds nothing."""
    if world.wish.deleting is not None:
        return _deleted(world, world.wish.deleting)
    match world.record.state:
        case SavepointState.PENDING:
            return _pending(world)
        case SavepointState.IN_PROGRESS:
            return _in_progress(world)
        case SavepointState.COMPLETED:
            return _completed(world)
        case SavepointState.FAILED:
            return SavepointDecision(record=world.record)


def _wait(
    world: SavepointWorld, message: str, wake: timedelta, *actions: SavepointAction
) -> SavepointDecision:
    record = replace(world.record, message=message)
    return SavepointDecision(record=record, actions=actions, wake=wake)


def _pending(world: SavepointWorld) -> SavepointDecision:
    record, wish = world.record, world.wish
    if record.due is not None and world.now < record.due:
        return _wait(world, record.message, record.due - world.now)
    if wish.operation is not None:
        return _of_operation(world)
    if world.job is JobState.MISSING:
        return _wait(world, _NO_JOB, _SELDOM)
    if world.job is JobState.UNUSABLE:
        return _wait(world, _UNUSABLE, _SELDOM)
    if world.job is JobState.PAUSED:
        return _wait(world, _PAUSED, _SELDOM)
    if wish.existing:
        return _begin(world, Taker.WORKER)
    match world.job:
        case JobState.RUNNING:
            return _begin(world, Taker.AGENT)
        case JobState.STANDING:
            return _begin(world, Taker.WORKER)
        case JobState.BUSY:
            return _wait(
                world,
                f"Waiting for {world.operation or 'the deletion'} of the job to end.",
                _SELDOM,
            )
        case _:
            return _wait(world, "Waiting for the job to run: it has no state yet.", _SELDOM)


def _begin(world: SavepointWorld, taker: Taker) -> SavepointDecision:
    record = replace(
        world.record,
        state=SavepointState.IN_PROGRESS,
        taker=taker,
        epoch=world.epoch,
        started=world.now,
        due=None,
        message="",
    )
    return _in_progress(replace(world, record=record))


def _of_operation(world: SavepointWorld) -> SavepointDecision:
    """Filled in by whoever carries the operation out; it fails if that ended without it."""
    if world.operation == world.wish.operation:
        return _wait(world, f"Taken by {world.wish.operation}.", _SELDOM)
    words = f"{world.wish.operation} of the job ended without it."
    return _over(world, words)


def _in_progress(world: SavepointWorld) -> SavepointDecision:
    if world.wish.operation is not None:
        return _of_operation(world)
    if world.wish.existing:
        return _task(world, SavepointTask.INSPECT, "Looking for it.", done=_described)
    if world.record.taker is Taker.WORKER:
        return _task(world, SavepointTask.CAPTURE, "Capturing.", done=_described)
    return _by_agent(world)


def _by_agent(world: SavepointWorld) -> SavepointDecision:
    agent = world.agent
    if agent is None or agent.state == "Unknown":
        if world.job is not JobState.RUNNING or world.epoch != world.record.epoch:
            # The job was stopped meanwhile, or is another one by now: begin anew.
            record = replace(world.record, state=SavepointState.PENDING, taker=None)
            return SavepointDecision(record=record, wake=_LOOK)
        if agent is None:
            return _wait(world, "The driver's agent does not answer.", _LOOK)
        return _wait(world, "Capturing.", _LOOK, AskAgent())
    match agent.state:
        case "Done":
            return _described(world)
        case "Failed":
            return _failed(world, agent.message, retry_helps=agent.retry_helps)
        case _:
            return _wait(world, "Capturing.", _LOOK)


def _task(
    world: SavepointWorld,
    task: SavepointTask,
    words: str,
    *,
    done: Callable[[SavepointWorld], SavepointDecision],
) -> SavepointDecision:
    name, worker = task_name(world.name, task, world.record.tries), world.worker(task)
    if worker is None and world.job in (JobState.MISSING, JobState.UNUSABLE):
        return _wait(world, "Waiting for the job, whose image does the work.", _SELDOM)
    if worker is None and world.job is JobState.PAUSED:
        return _wait(world, _PAUSED, _SELDOM)
    if worker is None and world.refused is not None:
        return _failed(world, world.refused.message, retry_helps=world.refused.retry_helps)
    if worker is None:
        return _wait(world, words, _SELDOM, StartTask(name=name, task=task))
    match worker.state:
        case WorkerState.RUNNING:
            return _working(world, worker, words)
        case WorkerState.FAILED:
            return _failed(world, worker.message, retry_helps=world.retry_helps)
        case WorkerState.SUCCEEDED:
            if worker.answer == "NothingCommitted":
                return _failed(world, worker.message, retry_helps=True)
            return done(world)


def _working(world: SavepointWorld, worker: WorkerFact, words: str) -> SavepointDecision:
    since = worker.created or world.now
    if worker.stuck and world.now - since > _STUCK:
        return _failed(world, _stuck(worker), retry_helps=True)
    return _wait(world, _stuck(worker) if worker.stuck else words, _SELDOM)


def _stuck(worker: WorkerFact) -> str:
    return f"Pod {worker.name} does not start: {worker.hindrance}"


def _described(world: SavepointWorld) -> SavepointDecision:
    record = replace(
        world.record,
        state=SavepointState.COMPLETED,
        described=True,
        tries=0,
        due=None,
        message="",
    )
    told = Event(reason="Completed", message=f"Savepoint {world.name} is complete.")
    return SavepointDecision(record=record, events=(told,), wake=timedelta(0))


def _failed(world: SavepointWorld, message: str, *, retry_helps: bool) -> SavepointDecision:
    tries = world.record.tries + 1
    if tries > world.wish.backoff_limit or not retry_helps:
        return _over(world, message)
    due = _later(world, tries)
    record = replace(world.record, tries=tries, due=due, message=message)
    if record.state is SavepointState.IN_PROGRESS:
        record = replace(record, state=SavepointState.PENDING, taker=None)
    words = f"Tried again at {due:%H:%M:%S} UTC. {message}"
    told = Event(reason="Retrying", message=words, warning=True)
    return SavepointDecision(record=record, events=(told,), wake=due - world.now)


def _later(world: SavepointWorld, tries: int) -> datetime:
    return world.now + min(timedelta(seconds=5 * 2 ** min(tries, 10)), _LONGEST_PAUSE)


def _over(world: SavepointWorld, message: str) -> SavepointDecision:
    record = replace(world.record, state=SavepointState.FAILED, due=None, message=message)
    told = Event(reason="Failed", message=message, warning=True)
    return SavepointDecision(record=record, events=(told,))


def _completed(world: SavepointWorld) -> SavepointDecision:
    """What is in it is looked up, and it is checked, if that is wanted; both may fail."""
    record = world.record
    if record.due is not None and world.now < record.due:
        return _wait(world, record.message, record.due - world.now)
    if not record.described:
        return _afterwards(world, SavepointTask.INSPECT, "Looking what is in it.")
    if world.wish.verify and not record.checked:
        return _afterwards(world, SavepointTask.VERIFY, "Checking it.")
    return SavepointDecision(record=record)


def _afterwards(world: SavepointWorld, task: SavepointTask, words: str) -> SavepointDecision:
    decision = _task(world, task, words, done=_marked(task))
    if decision.record.state is not SavepointState.FAILED:
        return decision
    # It is complete all the same: what could not be found out is left out.
    return _marked(task)(
        replace(world, record=replace(world.record, message=decision.record.message))
    )


def _marked(task: SavepointTask) -> Callable[[SavepointWorld], SavepointDecision]:
    def mark(world: SavepointWorld) -> SavepointDecision:
        record = replace(world.record, tries=0, due=None)
        if task is SavepointTask.INSPECT:
            return SavepointDecision(record=replace(record, described=True), wake=timedelta(0))
        return SavepointDecision(record=replace(record, checked=True), wake=timedelta(0))

    return mark


def _deleted(world: SavepointWorld, since: datetime) -> SavepointDecision:
    record, wish = world.record, world.wish
    begun = record.state is not SavepointState.PENDING or record.started is not None
    # The data of one that was made known is somebody else's: retention never means it.
    disposes = wish.dispose or (record.expired and not wish.existing)
    if not disposes or not begun:
        return SavepointDecision(record=record, released=True)
    if world.now - since > _DISPOSAL:
        return _let_go(world, f"Its data stays in the repository. {record.message}".strip())
    if world.used:
        return _wait(world, "The job may have to go back to it.", _SELDOM)
    if record.due is not None and world.now < record.due:
        return _wait(world, record.message, record.due - world.now)
    if world.job is JobState.MISSING:
        return _let_go(world, "Its data stays in the repository: the job is gone.")
    return _disposing(world)


def _disposing(world: SavepointWorld) -> SavepointDecision:
    words, task = "Removing its data.", SavepointTask.DISPOSE
    name, worker = task_name(world.name, task, world.record.tries), world.worker(task)
    if worker is None and world.refused is not None:
        return _not_disposed(world, world.refused.message)
    if worker is None:
        return _wait(world, words, _SELDOM, StartTask(name=name, task=task))
    match worker.state:
        case WorkerState.RUNNING:
            return _wait(world, _stuck(worker) if worker.stuck else words, _SELDOM)
        case WorkerState.SUCCEEDED:
            return SavepointDecision(record=world.record, released=True)
        case WorkerState.FAILED:
            return _not_disposed(world, worker.message)


def _not_disposed(world: SavepointWorld, message: str) -> SavepointDecision:
    tries = world.record.tries + 1
    due = _later(world, tries)
    record = replace(world.record, tries=tries, due=due, message=message)
    return SavepointDecision(record=record, wake=due - world.now)


def _let_go(world: SavepointWorld, message: str) -> SavepointDecision:
    told = Event(reason="DataRetained", message=message, warning=True)
    return SavepointDecision(record=world.record, events=(told,), released=True)
