"""A driver that runs no longer, or cannot be heard any more, is replaced by the next attempt."""

from dataclasses import replace
from datetime import datetime

from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Result, Run
from sparkpoint.lifecycle.step import Step, backoff, begin, finish
from sparkpoint.lifecycle.targets import continued
from sparkpoint.lifecycle.world import World

__all__ = ["go_on_as_before", "recover", "recover_later"]


def recover(world: World, run: Run, message: str) -> Step:
    """The next attempt at once: nothing is wrong with the job itself."""
    return _recover(world, run, message, failures=world.record.failures, due=None)


def recover_later(world: World, run: Run, message: str) -> Step:
    """The next attempt after a pause that grows with every failure in a row."""
    failures = world.record.failures + 1
    due = world.now + backoff(world, failures)
    return _recover(world, run, message, failures=failures, due=due)


def go_on_as_before(world: World, run: Run, message: str) -> Step:
    """The operation has failed, and nothing was changed: what ran before runs again, if it ran."""
    ended = finish(world, Result.FAILED, message)
    if ended.record.suspended or ended.record.finished:
        return ended
    step = recover(replace(world, record=ended.record), run, "The job goes on as it was.")
    return replace(step, events=ended.events + step.events)


def _recover(world: World, run: Run, message: str, *, failures: int, due: datetime | None) -> Step:
    record = replace(world.record, failures=failures, due=due)
    target = continued(run, run.revision)
    return begin(replace(world, record=record), Kind.RECOVER, target=target, message=message)
