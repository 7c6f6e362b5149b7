"""A driver that ended badly while an operation waited for it."""

from dataclasses import replace

from sparkpoint.lifecycle.phases import AGAIN, Kind
from sparkpoint.lifecycle.record import Held, Record, Result, Run
from sparkpoint.lifecycle.step import Step, backoff, begin, finish, next_savepoint
from sparkpoint.lifecycle.targets import continued, goes_on, other_way_back, way_back
from sparkpoint.lifecycle.world import World

__all__ = ["failed", "on_trial"]

_LAUNCHES = 2
"""Of a new revision before it is rolled back: one failure may be the node's."""


def on_trial(world: World) -> bool:
    """Whether what runs is new and can be taken back."""
    stable, run = world.record.stable, world.run
    if not world.wish.policy.rollback or stable is None:
        return False
    match world.operation.kind:
        case Kind.UPGRADE | Kind.REPARTITION | Kind.RESTORE | Kind.RESCALE | Kind.RESTART:
            return True
        case Kind.RESUME:
            # It may have been suspended before it had proven itself.
            return stable.savepoint is not None or stable.revision != run.revision
        case Kind.RECOVER:
            # A stable revision that fails is not rolled back to itself.
            return stable.revision != run.revision
        case _:
            return False


def failed(world: World, message: str) -> Step:
    """Once more, or back, or leave it to recovery."""
    operation = world.operation
    if _cannot_rewind(world):
        return _go_on_instead(world, message)
    if not on_trial(world):
        return finish(world, Result.FAILED, message)
    policy = world.wish.policy
    late = world.now - operation.started > policy.time_to_commit(policy.stable_after) * 2
    if operation.launches >= _LAUNCHES or late:
        return _roll_back(world, message)
    return _once_more(world, message)


def _once_more(world: World, message: str) -> Step:
    """The same run with a new pod, through Stop again: pods of the first may be left."""
    record, operation, run = world.record, world.operation, world.run
    changed = record.with_operation(
        phase=AGAIN[operation.phase],
        phase_started=world.now,
        spent=operation.spent_until(world.now),
        target=continued(run, run.revision),
        savepoint=None,
        captured=False,
        fenced=False,
        launches=operation.launches + 1,
        tries=0,
        base=(),
        message=message,
    )
    due = world.now + backoff(world, operation.launches)
    return Step(record=replace(changed, due=due), again=True)


def _roll_back(world: World, message: str) -> Step:
    """To the revision that proved itself, from where it was stopped; the spec is left alone."""
    operation, run = world.operation, world.run
    held = Held(
        revision=run.revision.name,
        restore=world.wish.restore_key,
        reason="RolledBack",
        message=message,
        policy=world.wish.policy.decisive,
    )
    ended = finish(world, Result.ROLLED_BACK, message)
    moved = replace(world, record=replace(ended.record, held=held, due=None))
    captured = next_savepoint(moved, Kind.ROLLBACK) if _to_latest(world, run) else None
    step = begin(
        moved,
        Kind.ROLLBACK,
        target=way_back(moved.record, run, captured),
        savepoint=captured,
        message=f"{operation.kind.value} of generation {operation.generation} failed: {message}",
    )
    return replace(step, events=(*ended.events, *step.events))


def _to_latest(world: World, run: Run) -> bool:
    policy = world.wish.policy
    if policy.rollback_to != "Latest" or not policy.repository or not run.opened:
        return False
    return goes_on(world.record, run) and not _is_elsewhere(world.record, run)


def _is_elsewhere(record: Record, run: Run) -> bool:
    """Whether its state is in other partitions than the stable revision asks for, or was written
    by another line of Spark: an older one may read it wrongly, and without a word."""
    if record.stable is None:
        return False
    stable, revision = record.stable.revision, run.revision
    return stable.state != revision.state or revision.has_other_spark_than(stable)


def _cannot_rewind(world: World) -> bool:
    """Whether the driver has found sinks that cannot go back, and there is another way."""
    run, driver = world.run, world.driver(world.run)
    ended = driver.exit if driver is not None else None
    if ended is None or not ended.sinks_refuse or run.opened or run.given_up is None:
        return False
    return world.record.stable is not None and world.wish.policy.repository


def _go_on_instead(world: World, message: str) -> Step:
    """A sink that skips what it has seen cannot be rewound: going back would lose what it skips.

    The stable revision goes on from the newest commit, where sinks stand. If it cannot read what
    the other one wrote, nothing is lost, and a person has to choose.
    """
    run = world.run
    ended = finish(world, Result.FAILED, message)
    moved = replace(world, record=replace(ended.record, due=None))
    captured = next_savepoint(moved, Kind.ROLLBACK)
    step = begin(
        moved,
        Kind.ROLLBACK,
        target=other_way_back(moved.record, run, captured),
        savepoint=captured,
        former=run.given_up,
        message=f"The sinks cannot be rewound, so the newest commit is gone on from: {message}",
    )
    return replace(step, events=(*ended.events, *step.events))
