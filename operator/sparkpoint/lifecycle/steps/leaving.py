"""A directory is left for something that has to prove itself: what a rollback goes back to."""

from dataclasses import replace

from sparkpoint.lifecycle.record import Begin, Operation, Record, Run
from sparkpoint.lifecycle.world import World

__all__ = ["left"]


def left(world: World, run: Run) -> Record:
    """With where the stable revision's state is from now on, and where sinks stand."""
    record, operation = world.record, world.operation
    stable, target = record.stable, operation.target
    if target is None or target.epoch == run.epoch:
        return record
    target = replace(target, before=_sinks_stand_at(operation, run))
    if target.origin.begin is Begin.EMPTY:
        target = replace(target, left=operation.savepoint)
    record = record.with_operation(target=target)
    if stable is None or stable.savepoint is not None:
        return record
    kept = replace(stable, savepoint=operation.savepoint)
    # Without a savepoint there is no way back to it.
    return replace(record, stable=kept if operation.savepoint is not None else None)


def _sinks_stand_at(operation: Operation, run: Run) -> str | None:
    """Not where they were captured, if a pod on a lost node may go on writing."""
    if operation.fenced:
        return None
    return operation.savepoint if run.opened else run.before
