"""What a wish means for a job that runs, or stands: nothing, or the kind of operation it needs."""

from dataclasses import dataclass

from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Begin, Held, Revision, Run
from sparkpoint.lifecycle.world import Wish, World

__all__ = ["Change", "change", "is_of_wish"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An operation that is wanted, or why it cannot be had."""

    kind: Kind
    refusal: str = ""


def change(world: World) -> Change | None:
    """What separates the wish from what is written down; None: nothing."""
    wish, record = world.wish, world.record
    run = record.run
    if run is None:
        start = Change(kind=Kind.START, refusal=_not_ready(world))
        return None if wish.suspend else _unless_held(world, start)
    if wish.suspend:
        return None if record.suspended else Change(kind=Kind.SUSPEND)
    resumed = Change(kind=Kind.RESUME) if record.suspended else None
    # What is held is not done, but what stands still for it runs again.
    return _of_restore(world) or _of_revision(world) or resumed


def _of_restore(world: World) -> Change | None:
    restore = world.wish.restore
    if restore is None or restore.key == world.record.restored:
        return None
    return _unless_held(world, Change(kind=Kind.RESTORE, refusal=_not_ready(world)))


def _of_revision(world: World) -> Change | None:
    wish, run = world.wish, world.record.run
    if run is None or run.revision.name == wish.revision.name:
        return None
    new, old = wish.revision, run.revision
    if new.state != old.state and _has_state(run) and wish.policy.mode != "Stateless":
        wanted = Change(kind=Kind.REPARTITION, refusal=_not_movable(world, run))
        return wanted if wanted.refusal else _unless_held(world, wanted)
    if new.code != old.code or new.state != old.state:
        return _unless_held(world, Change(kind=Kind.UPGRADE))
    return _unless_held(world, Change(kind=Kind.RESCALE if new.size != old.size else Kind.RESTART))


def _has_state(run: Run) -> bool:
    """Whether anything was ever written, or would be lost: a first run may not have come so far."""
    return run.opened or run.left is not None or run.source.begin is not Begin.EMPTY


def _not_movable(world: World, run: Run) -> str:
    """Why state cannot be brought to what spec.state says; empty if it can be tried."""
    new, old = world.wish.revision, run.revision
    if old.fixed and new.fixed != old.fixed:
        return (
            "spec.state: the provider and the format are fixed in the checkpoint while there is "
            "state. Set them back, or give up the state with spec.upgrade.mode: Stateless. To go "
            "from HDFSBacked to RocksDB, migrate a savepoint with `sparkpoint state migrate`, and "
            "restore it in a new job."
        )
    if new.partitions is None:
        return (
            "spec.state.partitions was said before and is left out now, which does not say how "
            f"many there are to be. Set it back{_number(old)}, or to another number."
        )
    if not world.wish.policy.repository:
        return (
            "spec.state.partitions: other partitions are made of a savepoint, and there is no "
            "place for one. Set spec.savepoints.repository, or the number back"
            f"{_number(old)}."
        )
    if not run.opened and "/" in (run.source.savepoint or ""):
        return (
            "spec.state.partitions: the job has not begun yet from the savepoint of another job. "
            f"Let it begin with the number as it was{_number(old)}, then change it."
        )
    return ""


def _number(revision: Revision) -> str:
    return f" to {revision.partitions}" if revision.partitions is not None else ""


def _not_ready(world: World) -> str:
    restore, wish = world.wish.restore, world.wish
    if wish.adopt is not None and world.record.run is None and not wish.policy.repository:
        return (
            "spec.checkpoint.adopt: the checkpoint is taken on by way of a savepoint, and there is "
            "no place for one. Set spec.savepoints.repository."
        )
    if restore is None or restore.ready:
        return ""
    return restore.problem or f"Savepoint {restore.savepoint} is not complete yet."


def _unless_held(world: World, wanted: Change) -> Change | None:
    return None if _is_held(world) else wanted


def _is_held(world: World) -> bool:
    """Whether this very wish was tried, and is not to be tried (yet) again."""
    held = world.record.held
    if held is None or not is_of_wish(held, world.wish):
        return False
    return held.until is None or world.now < held.until


def is_of_wish(held: Held, wish: Wish) -> bool:
    """Whether what is held is what is wished for now, and as it was tried."""
    if (held.revision, held.restore) != (wish.revision.name, wish.restore_key):
        return False
    return held.policy is None or held.policy == wish.policy.decisive
