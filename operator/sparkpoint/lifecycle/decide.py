"""decide(world): from what is wished, written down and seen to what to write down and then do."""

from dataclasses import dataclass, replace
from datetime import timedelta

from sparkpoint.lifecycle.actions import Action, DeletePod, Event
from sparkpoint.lifecycle.changes import change
from sparkpoint.lifecycle.phases import OPEN_TO_CHANGE, UNTOUCHED, Kind, Phase
from sparkpoint.lifecycle.record import Outcome, Record, Result
from sparkpoint.lifecycle.steady import steady
from sparkpoint.lifecycle.step import Step, finish
from sparkpoint.lifecycle.steps.adopt import adopt
from sparkpoint.lifecycle.steps.capture import capture
from sparkpoint.lifecycle.steps.clean import clean, hurried, overdue, released
from sparkpoint.lifecycle.steps.launch import launch
from sparkpoint.lifecycle.steps.modify import modify
from sparkpoint.lifecycle.steps.observe import observe
from sparkpoint.lifecycle.steps.prepare import prepare
from sparkpoint.lifecycle.steps.stop import stop
from sparkpoint.lifecycle.targets import is_outdated, is_tried_otherwise
from sparkpoint.lifecycle.world import PodFact, World

__all__ = ["Decision", "decide"]

_MOST_STEPS = 50
"""Phases that are over at once follow one another; more than this is a mistake of ours."""

_PHASES = {
    Phase.ADOPT: adopt,
    Phase.PREPARE: prepare,
    Phase.STOP: stop,
    Phase.CAPTURE: capture,
    Phase.MODIFY: modify,
    Phase.LAUNCH: launch,
    Phase.OBSERVE: observe,
    Phase.CLEAN: clean,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Write `record` down, then do `actions`, then look again after `wake` or when woken."""

    record: Record
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    ended: tuple[Outcome, ...] = ()
    """Operations that are over with this, in order; the record keeps the last one alone."""
    wake: timedelta | None = None


def decide(world: World) -> Decision:
    """The next thing to do. Deciding again on the same world adds nothing."""
    events: tuple[Event, ...] = ()
    ended: tuple[Outcome, ...] = ()
    world = replace(world, record=_with_end(world))
    for _ in range(_MOST_STEPS):
        step = _step(world)
        events += _of_operation(step, world.record)
        ended += _ended(step.record, world.record)
        if not step.again:
            decision = _decision(replace(world, record=step.record), step)
            return replace(decision, events=events, ended=ended)
        world = replace(world, record=step.record)
    raise RuntimeError(f"no end in {_MOST_STEPS} steps: {world.record.operation}")


def _of_operation(step: Step, before: Record) -> tuple[Event, ...]:
    """Events that do not say it belong to the operation that was under way."""
    operation = before.operation or step.record.operation
    if operation is None:
        return step.events
    return tuple(
        event if event.operation else replace(event, operation=operation.id)
        for event in step.events
    )


def _ended(after: Record, before: Record) -> tuple[Outcome, ...]:
    return (after.last,) if after.last is not None and after.last != before.last else ()


def _with_end(world: World) -> Record:
    """Whether the driver's end was seen is kept: at the next look its pod may be gone."""
    record, run = world.record, world.record.run
    if run is None or not (run.opened and record.writing):
        return record
    driver = world.driver(run)
    if driver is None:
        return replace(record, vanished=record.vanished or world.now)
    return replace(record, writing=not driver.over, vanished=None)


def _decision(world: World, step: Step) -> Decision:
    deletions = (DeletePod(name=pod.name, uid=pod.uid) for pod in _strays(world))
    strays = tuple(each for each in deletions if each not in step.actions)
    return Decision(record=step.record, actions=strays + step.actions, wake=step.wake)


def _strays(world: World) -> tuple[PodFact, ...]:
    """Pods of runs that are over, such as those on a node that was lost and has come back."""
    record = world.record
    run = record.run
    if run is None:
        return ()
    everything = _stands(record)
    return tuple(
        pod
        for pod in world.pods
        if not (pod.over or pod.deleting)
        and (everything or (pod.epoch, pod.attempt) < (run.epoch, run.attempt))
    )


def _stands(record: Record) -> bool:
    """Whether nothing of the job may run, or what does is left behind."""
    operation = record.operation
    if operation is None:
        return record.suspended or record.finished
    return operation.fenced and operation.phase in (Phase.CAPTURE, Phase.MODIFY, Phase.CLEAN)


def _step(world: World) -> Step:
    if world.record.removed:
        return released(world)
    operation = world.record.operation
    if operation is None:
        return steady(world)
    if operation.kind is Kind.DELETE:
        late = overdue(world)
        return late if late is not None else hurried(world, _PHASES[operation.phase](world))
    if world.wish.deleting is not None or _is_overtaken(world):
        return finish(world, Result.SUPERSEDED, "A newer wish takes its place.")
    return _PHASES[operation.phase](world)


def _is_overtaken(world: World) -> bool:
    operation = world.operation
    if operation.phase not in OPEN_TO_CHANGE:
        return False
    if operation.phase in UNTOUCHED:
        # Nothing was touched yet: any other wish is a reason to begin anew.
        # But what a Start adopts is not captured once more for it.
        anew = operation.adopt is None and is_tried_otherwise(world)
        return is_outdated(world) or anew
    # A wish that waited already when this began goes on waiting: what recovers the job is not
    # interrupted by what it was recovered from.
    if world.wish.generation <= operation.generation:
        return False
    wanted = change(world)
    return wanted is not None and not wanted.refusal
