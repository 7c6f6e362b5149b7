"""No operation is under way: keep the books, and begin what is wanted."""

from dataclasses import replace
from datetime import datetime, timedelta

from sparkpoint.lifecycle.actions import Event, OpenGate, StoreRevision
from sparkpoint.lifecycle.changes import change, is_of_wish
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Held, Record, Run
from sparkpoint.lifecycle.recovery import recover, recover_later
from sparkpoint.lifecycle.step import SOON, Step, begin, next_savepoint
from sparkpoint.lifecycle.targets import captures, target
from sparkpoint.lifecycle.waiting import noted
from sparkpoint.lifecycle.world import AgentFact, DriverExit, PodFact, World

__all__ = ["LOOK", "steady"]

LOOK = timedelta(seconds=15)
"""Between two looks at a healthy agent."""

_ENDING = ("stopping", "ended")
"""An agent that says so for long is as good as silent: its driver stands, and does not end."""


def steady(world: World) -> Step:
    """What a job needs that nothing is being done to."""
    if world.wish.deleting is not None:
        return _begin(world, Kind.DELETE, "Deleting.")
    world = replace(world, record=_without_old_wish(world))
    wanted = change(world)
    world = replace(world, record=noted(world, wanted))
    if wanted is not None and not wanted.refusal:
        return _begin_stored(world, wanted.kind)
    run = world.record.run
    if run is None or world.record.suspended or world.record.finished:
        return Step(record=world.record, wake=LOOK if wanted is not None else _retry(world))
    return _keep(world, run)


def _without_old_wish(world: World) -> Record:
    """Another wish was made since: if the user returns to this one, it is tried again."""
    record = world.record
    if record.held is None or is_of_wish(record.held, world.wish):
        return record
    # A job that was left alone is looked at anew: it is not taken for one that has done its work.
    return replace(record, held=None, finished=record.finished and record.held.reason != "GaveUp")


def _retry(world: World) -> timedelta | None:
    held = world.record.held
    until = held.until if held is not None else None
    return until - world.now if until is not None and until > world.now else None


def _begin_stored(world: World, kind: Kind) -> Step:
    if kind is not Kind.SUSPEND and world.wish.revision.name not in world.revisions:
        # Kept before anything is written down that names it: the spec may change at any moment.
        store = StoreRevision(name=world.wish.revision.name)
        return Step(record=world.record, actions=(store,), wake=SOON)
    return _begin(world, kind, f"{kind.value} of generation {world.wish.generation} begins.")


def _begin(world: World, kind: Kind, message: str) -> Step:
    savepoint = next_savepoint(world, kind) if captures(world, kind) else None
    run = target(world, kind, savepoint)
    return begin(world, kind, target=run, savepoint=savepoint, message=message)


def _keep(world: World, run: Run) -> Step:
    driver = world.driver(run)
    if driver is None or driver.over:
        return _ended(world, run, driver)
    agent = world.agent_of(run)
    if agent is None and driver.lost_since is not None:
        return _lost(world, run, driver, driver.lost_since)
    if agent is None or agent.phase in _ENDING:
        return _silent(world, run)
    if agent.phase == "gated" and not driver.deleting:
        return _let_in(world, run)
    return Step(record=_booked(world, agent), wake=LOOK)


def _ended(world: World, run: Run, driver: PodFact | None) -> Step:
    ended, policy = driver.exit if driver is not None else None, world.wish.policy
    if ended is not None and ended.finished:
        return _finished(world, run)
    if ended is not None and _was_asked_to(ended):
        return recover(world, run, _words(ended))
    most = 0 if policy.restart == "Never" else policy.max_failures
    if most is not None and world.record.failures >= most:
        return _left_alone(world, _words(ended))
    return recover_later(world, run, _words(ended))


def _finished(world: World, run: Run) -> Step:
    if world.wish.policy.restart == "Always":
        return recover_later(world, run, "The script has ended by itself.")
    told = Event(reason="Finished", message="The script has ended by itself.")
    return Step(record=replace(world.record, finished=True), events=(told,), again=True)


def _was_asked_to(ended: DriverExit) -> bool:
    """A driver that was asked to end, by a drain, an eviction or a stop, has not failed."""
    return ended.reason in ("Terminated", "Stopped") and ended.clean


def _words(ended: DriverExit | None) -> str:
    if ended is None:
        return "The driver's pod is gone."
    return ended.words


def _left_alone(world: World, message: str) -> Step:
    told = Event(reason="GaveUp", message=f"Not restarted again. {message}", warning=True)
    held = Held(
        revision=world.wish.revision.name,
        restore=world.wish.restore_key,
        reason="GaveUp",
        message=message,
    )
    return Step(record=replace(world.record, finished=True, held=held), events=(told,), again=True)


def _lost(world: World, run: Run, driver: PodFact, since: datetime) -> Step:
    if world.is_lost(driver):
        return recover(world, run, f"The node of pod {driver.name} is lost.")
    left = world.wish.policy.lost_timeout - (world.now - since)
    return Step(record=world.record, wake=max(left, SOON))


def _silent(world: World, run: Run) -> Step:
    since: datetime = world.record.silent_since or world.now
    record = replace(world.record, silent_since=since, healthy_since=None)
    if world.now - since > world.wish.policy.silence_timeout:
        message = "The driver's agent does not answer any more, or its driver does not end."
        return recover_later(replace(world, record=record), run, message)
    return Step(record=record, wake=LOOK)


def _let_in(world: World, run: Run) -> Step:
    """It came up after the operation that launched it had given up waiting."""
    barred = world.in_the_way(run)
    if any(pod.epoch == run.epoch and world.is_lost(pod) for pod in barred):
        return recover(world, run, "A pod on a lost node may write into the same directory.")
    if barred:
        return Step(record=world.record, wake=SOON)
    opened = run.let_in()
    record = replace(world.record, run=opened, writing=True)
    return Step(record=record, actions=(OpenGate(run=opened),), wake=SOON)


def _booked(world: World, agent: AgentFact) -> Record:
    record = world.record
    healthy = bool(agent.queries) and all(query.active for query in agent.queries)
    since = (record.healthy_since or world.now) if healthy else None
    calm = since is not None and world.now - since > world.wish.policy.reset_after
    committed = any(query.batch is not None for query in agent.queries)
    return replace(
        record,
        silent_since=None,
        healthy_since=since,
        failures=0 if calm else record.failures,
        progressed=record.progressed or committed,
    )
