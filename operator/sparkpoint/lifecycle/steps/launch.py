"""Launch: the driver pod of the next run exists, and waits at its gate with all it begins from."""

from dataclasses import replace
from datetime import timedelta
from typing import Literal

from sparkpoint.lifecycle.actions import StartDriver
from sparkpoint.lifecycle.record import Begin, Record, Run
from sparkpoint.lifecycle.step import SOON, Step, advance, wait
from sparkpoint.lifecycle.steps.failing import failed
from sparkpoint.lifecycle.steps.gate import barred
from sparkpoint.lifecycle.world import PodFact, World

__all__ = ["expectation", "launch"]

_STUCK_FOR_GOOD = ("ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError")


def launch(world: World) -> Step:
    """Over when the agent says that the driver stands at its gate."""
    run, due = world.run, world.record.due
    if due is not None and world.now < due:
        return wait(world, wake=due - world.now, message=f"Waiting until {due:%H:%M:%S}.")
    driver = world.driver(run)
    if driver is None:
        start = StartDriver(run=run, expect=expectation(world.record, run))
        return wait(world, start, wake=SOON, message="Starting the driver.")
    if driver.over:
        return failed(world, _words(driver))
    agent = world.agent_of(run)
    if agent is None and world.is_lost(driver):
        return failed(world, f"The node of pod {driver.name} is lost.")
    if agent is not None and agent.phase in ("gated", "running") and not driver.deleting:
        return _at_the_gate(world, run)
    if _waited(world) > world.wish.policy.deadline or driver.stuck in _STUCK_FOR_GOOD:
        why = driver.hindrance.rstrip(".") or "no answer"
        return failed(world, f"Pod {driver.name} did not come up: {why}.")
    return wait(world, wake=SOON, message=driver.hindrance or "Starting the driver.")


def _waited(world: World) -> timedelta:
    since, due = world.operation.phase_started, world.record.due
    return world.now - (since if due is None else max(since, due))


def _at_the_gate(world: World, run: Run) -> Step:
    shut = barred(world, run)
    if shut is not None:
        return shut
    opened = run.let_in()
    record = replace(world.record.with_operation(target=opened), run=opened, writing=True)
    return advance(replace(world, record=record))


def expectation(record: Record, run: Run) -> Literal["empty", "restored", "any"]:
    """What the driver must find: a job with state never starts from an empty directory."""
    if run.origin.begin is Begin.EMPTY:
        return "empty"
    if run.origin.begin is Begin.CONTINUE and not record.progressed:
        # Its first batch may not have begun.
        return "any" if run.source.begin is Begin.EMPTY else "restored"
    return "restored"


def _words(driver: PodFact) -> str:
    if driver.exit is None:
        return f"Pod {driver.name} ended."
    return driver.exit.words
