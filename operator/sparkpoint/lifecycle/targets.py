"""What an operation leads to: the run that it ends with, and whether state is captured before."""

from dataclasses import replace

from sparkpoint.lifecycle.changes import change
from sparkpoint.lifecycle.naming import directory_name, moved_name
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Begin, Origin, Record, Revision, Run
from sparkpoint.lifecycle.world import World

__all__ = [
    "captures",
    "continued",
    "goes_on",
    "is_outdated",
    "is_tried_otherwise",
    "other_way_back",
    "target",
    "way_back",
]


def captures(world: World, kind: Kind) -> bool:
    """Whether the state is captured once the job stands."""
    policy, run = world.wish.policy, world.record.run
    if not policy.repository:
        return False
    if kind is Kind.START:
        return world.wish.adopt is not None
    if run is None:
        return False
    match kind:
        case Kind.UPGRADE:
            return policy.mode != "LastCommit"
        case Kind.RESTORE | Kind.REPARTITION:
            # What is given up, or changed, is captured first: it can be undone.
            return True
        case Kind.SUSPEND:
            return run.opened
        case Kind.DELETE:
            return run.opened and policy.final_savepoint
        case _:
            return False


def target(world: World, kind: Kind, savepoint: str | None) -> Run | None:
    """The run that a wished operation ends with; `savepoint`: what it captures before."""
    revision, run = world.wish.revision, world.record.run
    if kind is Kind.START:
        return _first(world, savepoint)
    if run is None:
        return None
    match kind:
        case Kind.UPGRADE:
            return _upgraded(world, run, savepoint)
        case Kind.REPARTITION:
            return _repartitioned(world, run, savepoint)
        case Kind.RESTORE:
            return _next(world.record, run, revision, _wished_origin(world))
        case Kind.RESCALE | Kind.RESTART:
            return continued(run, revision)
        case Kind.RESUME:
            # What is wished for may be held: then it is not what runs again.
            return continued(run, run.revision)
        case _:
            return None


def is_outdated(world: World) -> bool:
    """Whether the wish of now needs something else than the operation that is under way.

    Asked before the operation has switched to its target.
    """
    operation, wanted = world.operation, change(world)
    if wanted is None or wanted.refusal or wanted.kind is not operation.kind:
        return True
    restores = wanted.kind in (Kind.START, Kind.RESTORE)
    if restores and world.wish.restore_key != operation.restore:
        return True
    planned = target(world, wanted.kind, operation.savepoint)
    captured = operation.savepoint is not None
    return planned != operation.target or captured is not captures(world, wanted.kind)


def is_tried_otherwise(world: World) -> bool:
    """Whether the trial of the operation under way, whose pod may have answered already, is not the
    one that the wish of now asks for."""
    return bool(world.operation.strict) is not world.wish.policy.strict


def continued(run: Run, revision: Revision) -> Run:
    """The next attempt in the same directory."""
    origin = Origin(begin=Begin.CONTINUE) if run.opened else run.origin
    return replace(run, attempt=run.attempt + 1, revision=revision, origin=origin)


def way_back(record: Record, run: Run, captured: str | None) -> Run:
    """The stable revision where it was stopped, or at the newest commit if that is captured."""
    stable = record.stable
    if stable is None:
        raise ValueError("there is nothing to roll back to")
    if captured is not None:
        origin = Origin(begin=Begin.SAVEPOINT, savepoint=captured)
    elif stable.savepoint is None:
        return continued(run, stable.revision)
    elif not run.opened and run.source.savepoint == stable.savepoint:
        # Nothing was written since: the sinks stand where they stood.
        origin = run.source
    elif not run.opened and run.before == stable.savepoint:
        origin = Origin(begin=Begin.SAVEPOINT, savepoint=stable.savepoint)
    else:
        origin = Origin(begin=Begin.SAVEPOINT, savepoint=stable.savepoint, sink="Rewind")
    back = _next(record, run, stable.revision, origin)
    return replace(back, given_up=_given_up(record, run)) if origin.sink == "Rewind" else back


def _given_up(record: Record, run: Run) -> Run | None:
    """What holds the newest commit, if that can be gone on from."""
    if not run.opened and run.given_up is not None:
        return run.given_up
    return replace(run, given_up=None) if goes_on(record, run) else None


def goes_on(record: Record, run: Run) -> bool:
    """Whether the newest commit goes on from the stable revision's state: what was restored or
    begun empty without proving itself is given up with the revision."""
    stable = record.stable
    if stable is None or record.restored != stable.restored:
        return False
    return stable.savepoint is None or run.source.begin is not Begin.EMPTY


def other_way_back(record: Record, run: Run, captured: str) -> Run:
    """The stable revision at the newest commit, once it is known that sinks cannot be rewound."""
    if record.stable is None:
        raise ValueError("there is nothing to roll back to")
    origin = Origin(begin=Begin.SAVEPOINT, savepoint=captured)
    return _next(record, run, record.stable.revision, origin)


def _first(world: World, captured: str | None) -> Run:
    """`captured`: what is adopted."""
    adopted = Origin(begin=Begin.SAVEPOINT, savepoint=captured)
    origin = adopted if captured is not None else _wished_origin(world)
    return Run(
        epoch=1,
        attempt=1,
        revision=world.wish.revision,
        origin=origin,
        source=origin,
        directory=directory_name(1, world.own_life),
    )


def _wished_origin(world: World) -> Origin:
    restore = world.wish.restore
    if restore is None:
        return Origin(begin=Begin.EMPTY)
    return Origin(begin=Begin.SAVEPOINT, savepoint=restore.savepoint, sink=restore.sink)


def _upgraded(world: World, run: Run, savepoint: str | None) -> Run:
    revision, mode = world.wish.revision, world.wish.policy.mode
    if mode == "Stateless":
        return _next(world.record, run, revision, Origin(begin=Begin.EMPTY))
    if run.left is not None and not run.opened:
        origin = Origin(begin=Begin.SAVEPOINT, savepoint=run.left)
        return _next(world.record, run, revision, origin)
    if mode == "LastCommit" or savepoint is None:
        return continued(run, revision)
    origin = Origin(begin=Begin.SAVEPOINT, savepoint=savepoint)
    return _next(world.record, run, revision, origin)


def _repartitioned(world: World, run: Run, savepoint: str | None) -> Run:
    """From what is made of the savepoint: its name is written down long before it is there."""
    revision = world.wish.revision
    if savepoint is None or revision.partitions is None:
        raise ValueError("nothing says what to make of which savepoint")
    moved = moved_name(savepoint, revision.partitions)
    origin = Origin(begin=Begin.SAVEPOINT, savepoint=moved)
    return _next(world.record, run, revision, origin)


def _next(record: Record, run: Run, revision: Revision, origin: Origin) -> Run:
    """The first attempt in a new directory."""
    return Run(
        epoch=run.epoch + 1,
        attempt=run.attempt + 1,
        revision=revision,
        origin=origin,
        source=origin,
        directory=directory_name(run.epoch + 1, record.life),
    )
