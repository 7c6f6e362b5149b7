"""Observe: the gate is open, and the driver proves itself by commits."""

from dataclasses import replace
from datetime import timedelta

from sparkpoint.lifecycle.actions import OpenGate
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Record, Result, Run, Stable
from sparkpoint.lifecycle.step import SOON, Step, finish, wait
from sparkpoint.lifecycle.steps.failing import failed, on_trial
from sparkpoint.lifecycle.steps.gate import barred
from sparkpoint.lifecycle.world import AgentFact, PodFact, QueryFact, World

__all__ = ["observe"]

_NEW = (Kind.START, Kind.UPGRADE, Kind.REPARTITION, Kind.RESTORE)
"""What has to prove itself; anything else runs again what has done so."""

_IDLE = timedelta(seconds=20)
"""Queries that have nothing to read cannot commit: running this long is all they can show."""


def observe(world: World) -> Step:
    """Over when the driver has made its commits, or has nothing to commit."""
    run = world.run
    driver = world.driver(run)
    if driver is None:
        return failed(world, "The driver's pod is gone.")
    if driver.over:
        return _ended(world, driver)
    agent = world.agent_of(run)
    if agent is None:
        return _silent(world, driver)
    if agent.phase == "gated":
        return _open(world, run)
    if not agent.queries or not all(query.active for query in agent.queries):
        return _unproven(world, "The queries are starting.")
    return _judge(_with_base(world, agent), agent)


def _open(world: World, run: Run) -> Step:
    shut = barred(world, run)
    if shut is not None:
        return shut
    return wait(world, OpenGate(run=run), wake=SOON, message="Opening the gate.")


def _ended(world: World, driver: PodFact) -> Step:
    ended = driver.exit
    if ended is not None and ended.finished:
        over = world.wish.policy.restart != "Always"
        record = replace(_proven_record(world, committed=bool(ended.batches)), finished=over)
        return finish(replace(world, record=record), Result.SUCCEEDED, "The script has ended.")
    reason = ended.words if ended is not None else "It ended."
    return failed(world, reason)


def _silent(world: World, driver: PodFact) -> Step:
    if world.is_lost(driver):
        return failed(world, f"The node of pod {driver.name} is lost.")
    if world.waited() > max(world.wish.policy.deadline, world.wish.policy.silence_timeout):
        return failed(world, "The driver's agent does not answer.")
    return wait(world, wake=SOON, message="The agent does not answer.")


def _with_base(world: World, agent: AgentFact) -> World:
    """Commits are counted from what is known of the time before, else from the first one seen.

    An agent knows only of batches that its own driver has committed.
    """
    known = dict(world.operation.base)
    for query in agent.queries:
        if query.batch is not None:
            known.setdefault(query.name, query.batch - 1)
    record = world.record.with_operation(base=tuple(sorted(known.items())))
    return replace(world, record=record)


def _judge(world: World, agent: AgentFact) -> Step:
    world = _with_first_commit(world, agent)
    base = dict(world.operation.base)
    needed = _needed(world)
    patient = world.waited() > _IDLE
    unproven = [
        query
        for query in agent.queries
        if _commits(query, base) < needed and (query.busy or not patient)
    ]
    if not unproven:
        return _proven(world, committed=any(query.batch is not None for query in agent.queries))
    done = min(_commits(query, base) for query in unproven)
    return _unproven(world, f"{done} of {needed} commits.")


def _needed(world: World) -> int:
    return world.wish.policy.stable_after if on_trial(world) else 1


def _with_first_commit(world: World, agent: AgentFact) -> World:
    base = dict(world.operation.base)
    seen = [q.last_commit for q in agent.queries if q.last_commit and _commits(q, base) > 0]
    if world.operation.resumed is not None or not seen:
        return world
    return replace(world, record=world.record.with_operation(resumed=min(seen)))


def _commits(query: QueryFact, base: dict[str, int]) -> int:
    if query.batch is None or query.name not in base:
        return 0
    return max(0, query.batch - base[query.name])


def _proven(world: World, *, committed: bool) -> Step:
    operation = world.operation
    first, stopped = operation.resumed, operation.stopped
    # Two drivers told these times; clocks that differ must not make it less than nothing.
    downtime = max(0.0, (first - stopped).total_seconds()) if first and stopped else None
    record = _proven_record(world, committed=committed)
    return finish(replace(world, record=record), Result.SUCCEEDED, downtime=downtime)


def _proven_record(world: World, *, committed: bool) -> Record:
    record = world.record
    return replace(
        record,
        stable=_stable(record),
        healthy_since=world.now,
        due=None,
        progressed=record.progressed or committed,
    )


def _stable(record: Record) -> Stable | None:
    run = record.run
    return Stable(revision=run.revision, restored=record.restored) if run is not None else None


def _unproven(world: World, message: str) -> Step:
    allowed = world.wish.policy.time_to_commit(_needed(world))
    if world.waited() <= allowed:
        return wait(world, wake=SOON, message=message)
    if on_trial(world):
        return failed(world, f"Not proven within {allowed.total_seconds():.0f} s: {message}")
    return _given_time(world, message)


def _given_time(world: World, message: str) -> Step:
    """It runs on, and there is nothing to go back to: what is new has not succeeded for that."""
    operation = world.operation
    result = Result.FAILED if operation.kind in _NEW else Result.SUCCEEDED
    record = replace(world.record, healthy_since=operation.phase_started)
    message = f"It runs, but has not committed yet. {message}"
    return finish(replace(world, record=record), result, message)
