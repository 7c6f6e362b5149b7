"""Pods as facts: what Kubernetes reports of a pod, in the words that decisions are made in."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import ValidationError

from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import ATTEMPT, EPOCH, ROLE
from sparkpoint.lifecycle.world import DriverExit, PodFact
from sparkpoint.runtime.model import Termination

__all__ = [
    "created_at",
    "is_over",
    "label",
    "parse_time",
    "pod_fact",
    "slim",
    "stuck_because",
    "stuck_reason",
    "terminated_container",
]

_KILLED = 137
_HARMLESS = ("ContainerCreating", "PodInitializing")
_OOM = (
    "The container used more memory than its limit. Raise memoryOverhead of that role in the spec, "
    "or memory."
)


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
    """Whether all its containers have ended, for certain.

    The phase alone is no proof: a pod whose node was lost is marked Failed before it is deleted,
    while its containers may live on.
    """
    if _status(pod).get("phase") not in ("Succeeded", "Failed"):
        return False
    return not any("running" in (each.get("state") or {}) for each in _containers(pod))


def stuck_reason(pod: Object) -> str:
    """Why it cannot start, in Kubernetes' own word; empty if nothing is known to be wrong."""
    return _stuck(pod)[0]


def stuck_because(pod: Object) -> str:
    """The same with what Kubernetes says about it."""
    reason, message = _stuck(pod)
    return f"{reason}: {message}" if reason and message else reason


def _stuck(pod: Object) -> tuple[str, str]:
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
    """How Spark's or the worker's container ended; it is the first one of the pod."""
    first = ((pod.get("spec") or {}).get("containers") or [{}])[0].get("name")
    for each in _status(pod).get("containerStatuses") or []:
        if each.get("name") == first:
            ended: Mapping[str, Any] = (each.get("state") or {}).get("terminated") or {}
            return ended
    return {}


def _exit(pod: Object) -> DriverExit:
    ended = terminated_container(pod)
    code = ended.get("exitCode")
    told = _termination(str(ended.get("message", "")))
    ours = _outside(pod, ended)
    if told is None or ours is not None:
        reason, message = ours or (str(ended.get("reason") or "Unknown"), _last_line(ended))
        return DriverExit(code=code, reason=reason, message=message)
    words = told.message if told.error is None else f"{told.message} {told.error.message}"
    return DriverExit(
        code=told.exit_code if code is None else code,
        reason=told.reason.value,
        message=words.strip(),
        clean=told.clean,
        operation=told.operation,
        savepoint=told.savepoint,
        batches={name: q.batch for name, q in told.queries.items() if q.batch is not None},
    )


def _outside(pod: Object, ended: Mapping[str, Any]) -> tuple[str, str] | None:
    """An end that came from Kubernetes, whatever the driver managed to say before."""
    if ended.get("reason") == "OOMKilled":
        return "OOMKilled", _OOM
    reason = str(_status(pod).get("reason", ""))
    if reason and not ended:
        return reason, str(_status(pod).get("message", ""))
    return None


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
