"""What goes wrong, done while the operator is held right after it has written a record."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from tests.chaos.breakpoints import Hit
from tests.chaos.machine import (
    cut_agents,
    kill_pod,
    processes_of_component,
    processes_of_pod,
    standing_still,
)
from tests.chaos.matrix import Fault
from tests.chaos.stage import Stage

__all__ = ["DURATION", "strike"]

DURATION = 30.0
"""Seconds for which what stands still does."""
_AFTERMATH = 5.0
_COMPONENTS = {Fault.APISERVER: "kube-apiserver", Fault.ETCD: "etcd"}


def strike(stage: Stage, fault: Fault, hit: Hit | None) -> bool:
    """Do it, and let the operator go on; False if there was nothing to do it to in this phase.

    Without a hit, at whatever moment this is.
    """
    if fault is Fault.OPERATOR:
        stage.operator.kill()
        stage.operator.start()
        return True
    if fault in (Fault.DRIVER, Fault.EXECUTOR):
        return _kill(stage, fault.value, hit)
    with _stopped(stage, fault):
        stage.operator.breakpoints.release()
        time.sleep(DURATION)
    # Whoever wanted to release a lease meanwhile could not, and what was sent before it stood still
    # is carried out now, also for one that has given up.
    stage.struck = time.time() + _AFTERMATH
    return True


def _kill(stage: Stage, role: str, hit: Hit | None) -> bool:
    """One that is there, or the first that comes up before the phase is over."""
    if _kill_one(stage, role):
        stage.operator.breakpoints.release()
        return True
    stage.operator.breakpoints.release()
    killed = False

    def is_done() -> bool:
        nonlocal killed
        killed = killed or _kill_one(stage, role)
        return killed or hit is None or not _is_still_at(stage, hit)

    stage.wait(f"{role} to kill", is_done)
    return killed


def _kill_one(stage: Stage, role: str) -> bool:
    for pod in stage.pods_of_run(role):
        if kill_pod(stage.layout, pod["metadata"]["uid"]):
            stage.struck = time.time()
            return True
    return False


def _is_still_at(stage: Stage, hit: Hit) -> bool:
    operation = stage.record().get("operation") or {}
    return (operation.get("id"), operation.get("phase")) == (hit.operation, hit.phase)


def _stopped(stage: Stage, fault: Fault) -> AbstractContextManager[None]:
    means: dict[Fault, Callable[[], AbstractContextManager[None]]] = {
        Fault.AGENT: lambda: cut_agents(stage.layout),
        Fault.S3: lambda: standing_still(_s3(stage)),
    }
    if fault in means:
        return means[fault]()
    found = processes_of_component(stage.layout, _COMPONENTS[fault])
    assert found, f"no process of {_COMPONENTS[fault]}"
    return standing_still(found)


def _s3(stage: Stage) -> list[int]:
    pods = stage.api.pods("app=s3")
    found = [pid for pod in pods for pid in processes_of_pod(stage.layout, pod["metadata"]["uid"])]
    assert found, "no process of the S3 server"
    return found
