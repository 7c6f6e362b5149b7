"""Stop: the driver comes to its boundary and ends, and no pod of its epoch is left."""

from dataclasses import replace
from datetime import timedelta

from sparkpoint.lifecycle.actions import DeletePod, Event, RequestStop
from sparkpoint.lifecycle.naming import directory_name, savepoint_name
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Begin, Operation, Origin, Record, Run
from sparkpoint.lifecycle.step import SOON, Step, advance, last_commit, refuse, wait
from sparkpoint.lifecycle.world import PodFact, StopFact, World

__all__ = ["stop", "stranded"]

_WISHED = (Kind.UPGRADE, Kind.REPARTITION, Kind.RESTORE)
"""What is not worth a stop without a savepoint."""
_GONE = timedelta(seconds=10)
"""A pod's end is an event; this is for one that was missed."""
_DYING = timedelta(seconds=10)
"""For a driver whose pod vanished to end, and for the watch to show its end: what it commits later
is computed again. Its directory is left to it anyhow."""
_DEAF = timedelta(seconds=30)
"""For an agent to take up a stop that it is asked for at every look."""
_STOPPING = "Stopping at a boundary."


def stop(world: World) -> Step:
    """Over when nothing can write into the epoch's directory, or what can is left behind."""
    run = world.record.run
    if run is None:
        return advance(world)
    writers = world.writers(run.epoch)
    if not writers:
        return _without_pods(world, run)
    reachable = tuple(pod for pod in writers if not _is_out_of_reach(world, run, pod))
    if not reachable:
        return _leave_behind(world, run, writers)
    driver = world.driver(run)
    if driver is None or driver not in reachable:
        return _clear(world, reachable)
    if driver.deleting:
        return wait(world, wake=_GONE, message=f"Waiting for pod {driver.name} to end.")
    if not run.opened or _is_gated(world, run):
        # It has started no query: there is nothing to stop at a boundary.
        return wait(world, _delete(driver), wake=_GONE, message=f"Deleting pod {driver.name}.")
    return _ask(world, run, driver)


def _without_pods(world: World, run: Run) -> Step:
    """A pod that is gone says nothing about its process, unless its end was seen.

    Whoever deletes it by force takes only the object away: a kubelet still gives the process its
    grace period, and one that cannot be reached does not even know.
    """
    since = world.record.vanished
    if since is None:
        return _stopped(world, run)
    alone = _needs_its_directory(world, run)
    left = (world.wish.policy.stop_timeout if alone else _DYING) - (world.now - since)
    if left > timedelta(0):
        message = "The driver's pod is gone, and its end was not seen: its process may live on."
        return wait(world, wake=left, message=message)
    # Without a repository there is no other directory: the grace period is over by now, and who
    # deleted the pod on a node that does not answer has said that it is dead.
    return _stopped(world, run) if alone else _leave_behind(world, run, ())


def _is_out_of_reach(world: World, run: Run, pod: PodFact) -> bool:
    """A driver whose agent answers can be stopped, whatever its node does; for a time."""
    if not world.is_lost(pod):
        return False
    heard = pod == world.driver(run) and world.agent_of(run) is not None
    return not heard or world.waited() > 2 * world.wish.policy.stop_timeout


def _is_gated(world: World, run: Run) -> bool:
    agent = world.agent_of(run)
    return agent is not None and agent.phase == "gated"


def _clear(world: World, pods: tuple[PodFact, ...]) -> Step:
    rest = tuple(_delete(pod) for pod in pods if not pod.deleting)
    names = ", ".join(pod.name for pod in pods[:3])
    return wait(world, *rest, wake=_GONE, message=f"Waiting for {len(pods)} pods to end: {names}.")


def _delete(pod: PodFact) -> DeletePod:
    return DeletePod(name=pod.name, uid=pod.uid)


def _ask(world: World, run: Run, driver: PodFact) -> Step:
    operation, patience = world.operation, world.wish.policy.stop_timeout
    if world.waited() > 2 * patience:
        return _end_pod(world, driver)
    agent = world.agent_of(run)
    if agent is None and world.waited() > patience:
        return _end_pod(world, driver)
    if agent is None:
        return wait(world, wake=SOON, message="The agent does not answer.")
    world = replace(world, record=_seen(world))
    fact = agent.stop
    if fact is None or (fact.state == "Failed" and fact.operation != operation.id):
        late = world.waited() > _DEAF
        message = "Asking for a stop; the agent does not take it." if late else _STOPPING
        return wait(world, _request(operation, run), wake=SOON, message=message)
    match fact.state:
        case "Running":
            return wait(world, wake=SOON, message=_STOPPING)
        case "Done":
            return wait(_told(world, fact), wake=SOON, message="Waiting for the driver to end.")
        case "Failed":
            return _not_stopped(world, run, fact)


def _request(operation: Operation, run: Run) -> RequestStop:
    return RequestStop(run=run, operation=operation.id, savepoint=operation.savepoint)


def _end_pod(world: World, driver: PodFact) -> Step:
    told = Event(
        reason="StopTimedOut",
        message=f"Pod {driver.name} did not stop at a boundary in time and is deleted.",
        warning=True,
    )
    return wait(world, _delete(driver), wake=_GONE, message=told.message, events=(told,))


def _not_stopped(world: World, run: Run, fact: StopFact) -> Step:
    operation = world.operation
    wished = operation.kind in _WISHED and operation.launches == 1
    if not fact.touched and wished:
        return refuse(world, "SavepointFailed", f"The job runs on as it was: {fact.message}")
    late = world.waited() > world.wish.policy.stop_timeout
    if not fact.touched or fact.empty or late:
        # A worker pod captures it once the driver is gone.
        bare = RequestStop(run=run, operation=f"{operation.id}-bare", savepoint=None)
        return wait(world, bare, wake=SOON, message=f"Stopping without a savepoint: {fact.message}")
    return wait(
        world, _request(operation, run), wake=SOON, message=f"Capturing again: {fact.message}"
    )


def _seen(world: World) -> Record:
    """The agent answers; the last commit before the stop, as far as it is known."""
    stopped = last_commit(world) or world.operation.stopped
    return replace(world.record.with_operation(stopped=stopped), silent_since=None)


def _told(world: World, fact: StopFact) -> World:
    """What the agent said last is kept: the pod may be gone with it at the next look."""
    operation = world.operation
    mine = operation.savepoint is not None and fact.savepoint == operation.savepoint
    record = world.record.with_operation(
        captured=operation.captured or mine,
        base=tuple(sorted(fact.batches.items())) or operation.base,
    )
    return replace(world, record=record)


def _stopped(world: World, run: Run) -> Step:
    driver = world.driver(run)
    if driver is None or driver.exit is None:
        return advance(world)
    ended, operation = driver.exit, world.operation
    mine = operation.savepoint is not None and ended.savepoint == operation.savepoint
    record = world.record.with_operation(
        captured=operation.captured or mine,
        base=tuple(sorted(ended.batches.items())) or operation.base,
    )
    progressed = record.progressed or bool(ended.batches)
    return advance(replace(world, record=replace(record, progressed=progressed)))


def _leave_behind(world: World, run: Run, writers: tuple[PodFact, ...]) -> Step:
    """A zombie keeps its directory: the next run gets another one, from the last commit."""
    if _needs_its_directory(world, run):
        return wait(world, wake=_GONE, message=stranded(world))
    names = ", ".join(pod.name for pod in writers[:3])
    who = f"Pods on lost nodes may live on and keep epoch {run.epoch}: {names}."
    gone = f"The driver's pod vanished; its process may live on and keeps epoch {run.epoch}."
    told = Event(reason="LeftBehind", message=who if writers else gone, warning=True)
    step = advance(replace(world, record=_fenced(world, run)))
    return replace(step, events=(told, *step.events))


def _needs_its_directory(world: World, run: Run) -> bool:
    """What is in it cannot be taken elsewhere, and the next run goes on from it."""
    target = world.operation.target
    goes_on = target is not None and target.epoch == run.epoch
    return goes_on and run.opened and not world.wish.policy.repository


def stranded(world: World) -> str:
    """Why a stop waits for a lost node, and what a person can do; empty: it does not."""
    operation, run = world.record.operation, world.record.run
    if operation is None or operation.phase is not Phase.STOP or run is None:
        return ""
    writers = world.writers(run.epoch)
    if not writers or not _needs_its_directory(world, run):
        return ""
    if not all(_is_out_of_reach(world, run, pod) for pod in writers):
        return ""
    names = ", ".join(pod.name for pod in writers[:3])
    return (
        f"Pods on lost nodes may still write into epoch {run.epoch}: {names}. Without "
        "spec.savepoints.repository the last commit cannot be taken to another directory: set it, "
        "or delete the pods by force if you know that their nodes are dead."
    )


def _fenced(world: World, run: Run) -> Record:
    operation = world.operation
    target = operation.target
    if target is None or target.epoch != run.epoch:
        return world.record.with_operation(fenced=True)
    # Its own name: an earlier launch of this operation may have captured under the usual one.
    life = world.own_life
    name = savepoint_name(world.job, f"{operation.id}-{operation.launches}", life)
    origin = Origin(begin=Begin.SAVEPOINT, savepoint=name)
    moved = replace(
        target,
        epoch=run.epoch + 1,
        origin=origin,
        source=origin,
        opened=False,
        directory=directory_name(run.epoch + 1, life),
    )
    return world.record.with_operation(fenced=True, savepoint=name, captured=False, target=moved)
