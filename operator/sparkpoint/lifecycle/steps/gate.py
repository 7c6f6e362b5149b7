"""Before a gate: nobody else may write into the directory behind it."""

from sparkpoint.lifecycle.record import Run
from sparkpoint.lifecycle.step import SOON, Step, wait
from sparkpoint.lifecycle.steps.failing import failed
from sparkpoint.lifecycle.world import World

__all__ = ["barred"]


def barred(world: World, run: Run) -> Step | None:
    """Why the gate of this run stays shut for now; None: it may be opened."""
    others = world.in_the_way(run)
    if not others:
        return None
    names = ", ".join(pod.name for pod in others[:3])
    if any(pod.epoch == run.epoch and world.is_lost(pod) for pod in others):
        # Through Stop again, which leaves the directory to them.
        return failed(world, f"Pods on lost nodes may write into the same directory: {names}.")
    return wait(world, wake=SOON, message=f"Waiting for {len(others)} pods to end: {names}.")
