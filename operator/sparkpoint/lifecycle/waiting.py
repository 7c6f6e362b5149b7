"""A savepoint to restore that is not there: waited for, and told once it has been given time.

Resources are applied in any order, so that one which is missing may be there a moment later.
"""

from dataclasses import replace
from datetime import timedelta

from sparkpoint.lifecycle.actions import Event
from sparkpoint.lifecycle.changes import Change
from sparkpoint.lifecycle.record import Record, Waiting
from sparkpoint.lifecycle.world import World

__all__ = ["missed", "noted"]

_GRACE = timedelta(minutes=1)


def noted(world: World, wanted: Change | None) -> Record:
    """With the time since when the savepoint of the wish is missed; forgotten once it is not."""
    record, restore = world.record, world.wish.restore
    if wanted is None or not wanted.refusal or restore is None or restore.lack is None:
        return replace(record, waiting=None)
    if record.waiting is not None and record.waiting.restore == restore.key:
        return record
    return replace(record, waiting=Waiting(restore=restore.key, since=world.now))


def missed(world: World) -> Event | None:
    """What a person has to be told of; None: nothing is missed, or not for long."""
    waiting, restore = world.record.waiting, world.wish.restore
    if waiting is None or restore is None or restore.lack is None:
        return None
    if waiting.restore != restore.key or world.now - waiting.since < _GRACE:
        return None
    message = f"{restore.problem.rstrip('.')}. It goes on by itself once the savepoint is complete."
    return Event(reason=f"Savepoint{restore.lack.value}", message=message, warning=True)
