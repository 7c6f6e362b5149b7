"""Whether a pod is lost: its node does not answer, or it outlived its grace period.

Nodes are asked for on suspicion only. Where the operator may not read nodes (it serves single
namespaces), a pod is lost once it has outlived its grace period.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sparkpoint.controller.cluster import NODES, Cluster, Object, find, metadata
from sparkpoint.controller.errors import ForbiddenError
from sparkpoint.controller.podfacts import is_over, parse_time

__all__ = ["is_suspicious", "lost_pods", "lost_since"]


async def lost_pods(cluster: Cluster, pods: Iterable[Object], now: datetime) -> dict[str, datetime]:
    """Uid of a lost pod -> since when."""
    found: dict[str, datetime] = {}
    nodes: dict[str, Object | None] = {}
    for pod in pods:
        if is_over(pod) or not is_suspicious(pod, now):
            continue
        name = (pod.get("spec") or {}).get("nodeName")
        if name is not None and name not in nodes:
            nodes[name] = await _node(cluster, name)
        since = lost_since(pod, nodes.get(name) if name is not None else {}, now)
        if since is not None:
            found[metadata(pod)["uid"]] = since
    return found


async def _node(cluster: Cluster, name: str) -> Object | None:
    """None if it is gone; an empty object if it must not be read."""
    try:
        return await find(cluster, NODES, None, name)
    except ForbiddenError:
        return {}


def is_suspicious(pod: Object, now: datetime) -> bool:
    """Whether the pod gives reason to look at its node."""
    deadline = parse_time(metadata(pod).get("deletionTimestamp"))
    if deadline is not None and now > deadline:
        return True
    status = pod.get("status") or {}
    if status.get("phase") in ("Unknown", "Failed"):
        return True
    ready = _condition(pod, "Ready")
    return status.get("phase") == "Running" and ready.get("status") in ("False", "Unknown")


def lost_since(pod: Object, node: Object | None, now: datetime) -> datetime | None:
    """None: it is not lost, as far as can be seen. A node that is gone (None) has lost its pods."""
    deadline = parse_time(metadata(pod).get("deletionTimestamp"))
    if deadline is not None and now > deadline:
        return deadline
    if node is None:
        return parse_time(_condition(pod, "Ready").get("lastTransitionTime")) or now
    ready = _condition(node, "Ready")
    if not ready or ready.get("status") == "True":
        return None
    return parse_time(ready.get("lastTransitionTime")) or now


def _condition(body: Object, name: str) -> dict[str, Any]:
    conditions: list[dict[str, Any]] = (body.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each.get("type") == name), {})
