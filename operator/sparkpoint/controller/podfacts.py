"""Pods as facts: what Kubernetes reports of a pod, in the words that decisions are made in.

A pod is judged by the container that does its work: what else a template puts beside it neither
keeps the pod from being over nor says how it ended.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import ValidationError

from sparkpoint.controller.agents import in_words
from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import ATTEMPT, EPOCH, ROLE
from sparkpoint.controller.objects.places import (
    DRIVER_CONTAINER,
    EXECUTOR_CONTAINER,
    WORKER_CONTAINER,
)
from sparkpoint.lifecycle.world import DriverExit, PodFact
from sparkpoint.runtime.model import Termination

__all__ = [
    "created_at",
    "is_over",
    "label",
    "lingers",
    "parse_time",
    "pod_fact",
    "slim",
    "stuck_because",
    "stuck_reason",
    "terminated_container",
]

_KILLED = 137
_HARMLESS = ("ContainerCreating", "PodInitializing")
_ENDED = ("Succeeded", "Failed")
_AT_WORK = (DRIVER_CONTAINER, EXECUTOR_CONTAINER, WORKER_CONTAINER)
_OOM_KILLED = "OOMKilled"
_OOM = (
    "The container used more memory than its limit. Raise memoryOverhead of that role in the spec, "
    "or memory."
)


_IMAGE = "Check spec.image, spec.imagePullSecrets and spec.imagePullPolicy."
_LOOK = "Look at the pod with kubectl describe."
_REMEDIES = {
    "CreateContainerConfigError": "Make the Secret, ConfigMap or key that it names, or correct "
    "its name in the spec (storage.secretName, driver.env, driver.envFrom).",
    "ErrImageNeverPull": _IMAGE,
    "ErrImagePull": _IMAGE,
    "ImagePullBackOff": _IMAGE,
    "InvalidImageName": _IMAGE,
    "Unschedulable": "Make room on the nodes, or ask for less memory, fewer cores or another "
    "place in the spec.",
}


def pod_fact(pod: Object, *, lost_since: datetime | None = None) -> PodFact | None:
    """What decisions need of a driver or an executor; None for any other pod."""
    role, epoch, attempt = label(pod, ROLE), label(pod, EPOCH), label(pod, ATTEMPT)
    if role not in ("driver", "executor") or not epoch.isdecimal() or not attempt.isdecimal():
        return None
    kind: Literal["driver", "executor"] = "driver" if role == "driver" else "executor"
    over = is_over(pod)
    return PodFact(
        name=metadata(pod)["name"],
        uid=metadata(pod)["uid"],
        role=kind,
        epoch=int(epoch),
        attempt=int(attempt),
        over=over,
        deleting=metadata(pod).get("deletionTimestamp") is not None,
        lost_since=None if over else lost_since,
        stuck="" if over else stuck_reason(pod),
        stuck_because="" if over else stuck_because(pod),
        created=created_at(pod),
        exit=_exit(pod) if over and role == "driver" else None,
    )


def slim(pod: Object) -> Object:
    """What is looked at of a pod: a cache of whole pods takes ten times the memory."""
    spec = pod.get("spec") or {}
    names = [{"name": each.get("name")} for each in spec.get("containers") or []]
    kept = {"nodeName": spec.get("nodeName"), "containers": names}
    return {**pod, "spec": {key: value for key, value in kept.items() if value is not None}}


def label(pod: Object, name: str) -> str:
    """The value of a label; empty if there is none."""
    return str((metadata(pod).get("labels") or {}).get(name, ""))


def created_at(pod: Object) -> datetime | None:
    """When it was made."""
    return parse_time(metadata(pod).get("creationTimestamp"))


def parse_time(text: str | None) -> datetime | None:
    """A time as Kubernetes writes it."""
    return datetime.fromisoformat(text) if text else None


def is_over(pod: Object) -> bool:
    """Whether its work has ended, for certain.

    No pod of ours starts a container again, so that one which has ended stays so, whatever runs
    beside it. The phase alone is no proof: a pod whose node was lost is marked Failed before it is
    deleted, while its containers may live on.
    """
    if terminated_container(pod):
        return True
    if _status(pod).get("phase") not in _ENDED:
        return False
    return not _is_anything_running(pod)


def _is_anything_running(pod: Object) -> bool:
    return any("running" in (each.get("state") or {}) for each in _containers(pod))


def lingers(pod: Object) -> bool:
    """Whether its work has ended, and other containers keep it there.

    They must be seen to run: the phase of any pod follows a moment after its last container.
    """
    return is_over(pod) and _status(pod).get("phase") not in _ENDED and _is_anything_running(pod)


def stuck_reason(pod: Object) -> str:
    """Why it cannot start, in Kubernetes' own word; empty if nothing is known to be wrong."""
    return _stuck(pod)[0]


def stuck_because(pod: Object) -> str:
    """The same with what Kubernetes says about it, and what to do."""
    reason, message = _stuck(pod)
    words = f"{reason}: {message}".rstrip(": .")
    return f"{words}. {_REMEDIES.get(reason, _LOOK)}" if reason else ""


def _stuck(pod: Object) -> tuple[str, str]:
    if _state_at_work(pod).keys() & {"running", "terminated"}:
        # What else does not start is not what keeps it from working.
        return "", ""
    for each in _containers(pod):
        waiting = (each.get("state") or {}).get("waiting") or {}
        reason = str(waiting.get("reason", ""))
        if reason and reason not in _HARMLESS:
            return reason, str(waiting.get("message", ""))
    for condition in _status(pod).get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("reason", "")), str(condition.get("message", ""))
    return "", ""


def terminated_container(pod: Object) -> Mapping[str, Any]:
    """How the container that does the work ended; empty if it has not."""
    ended: Mapping[str, Any] = _state_at_work(pod).get("terminated") or {}
    return ended


def _state_at_work(pod: Object) -> Mapping[str, Any]:
    """Of the container that does the work."""
    name = _name_at_work(pod)
    for each in _status(pod).get("containerStatuses") or []:
        if each.get("name") == name:
            state: Mapping[str, Any] = each.get("state") or {}
            return state
    return {}


def _name_at_work(pod: Object) -> str | None:
    """By its name: Spark puts its executor behind the other containers of a template."""
    names = [each.get("name") for each in (pod.get("spec") or {}).get("containers") or []]
    known = [name for name in names if name in _AT_WORK]
    return next(iter(known or names), None)


def _exit(pod: Object) -> DriverExit:
    ended = terminated_container(pod)
    code = ended.get("exitCode")
    told = _termination(str(ended.get("message", "")))
    if ended.get("reason") == _OOM_KILLED or (told is not None and told.out_of_memory):
        # Whatever the driver says, it says because its JVM is gone.
        return DriverExit(code=code, reason=_OOM_KILLED, message=_OOM)
    if told is None:
        reason, message = _outside(pod, ended)
        return DriverExit(code=code, reason=reason, message=message)
    words = told.message if told.error is None else f"{told.message} {in_words(told.error)}"
    return DriverExit(
        code=told.exit_code if code is None else code,
        reason=told.reason.value,
        message=words.strip(),
        clean=told.clean,
        operation=told.operation,
        savepoint=told.savepoint,
        batches={name: q.batch for name, q in told.queries.items() if q.batch is not None},
        cause=told.error.type if told.error is not None else "",
    )


def _outside(pod: Object, ended: Mapping[str, Any]) -> tuple[str, str]:
    """An end that the driver said nothing about: in Kubernetes' words."""
    # Why the whole pod was ended, such as Evicted.
    reason = str(_status(pod).get("reason", ""))
    if reason:
        return reason, str(_status(pod).get("message", "")) or _last_line(ended)
    return str(ended.get("reason") or "Unknown"), _last_line(ended)


def _last_line(ended: Mapping[str, Any]) -> str:
    """Of a driver that could not say a last word, what its log ends with."""
    code = ended.get("exitCode")
    if code is None:
        return ""
    how = "It was killed" if code == _KILLED else f"It ended with exit code {code}"
    lines = str(ended.get("message", "")).strip().splitlines()
    return f"{how}. Its log ends with: {lines[-1][-500:]}" if lines else f"{how}."


def _termination(text: str) -> Termination | None:
    try:
        return Termination.model_validate_json(text)
    except ValidationError:
        return None


def _status(pod: Object) -> dict[str, Any]:
    found: dict[str, Any] = pod.get("status") or {}
    return found


def _containers(pod: Object) -> list[dict[str, Any]]:
    status = _status(pod)
    found: list[dict[str, Any]] = (status.get("initContainerStatuses") or []) + (
        status.get("containerStatuses") or []
    )
    return found
