"""Pods that do not start, told in the conditions of their job: which one, why, and what to do."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.podfacts import created_at, is_over, stuck_because
from sparkpoint.lifecycle.conditions import Condition, Reason

__all__ = ["Stuck", "explained", "stuck_pod"]

_PATIENCE: Final = timedelta(minutes=1)
"""For a node to be added, or a registry to answer, before a person is needed."""
_PREPARATION: Final = timedelta(minutes=3)
"""For images and volumes; what is wrong with these, only Kubernetes' own events tell."""
_TOLD_IN: Final = (Reason.UNDER_WAY, Reason.AGENT_SILENT)
"""Conditions that say that something is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """A pod that does not start."""

    words: str
    lasts: bool
    """It has been so for long enough to be a matter for a person."""


def stuck_pod(pods: Iterable[Object | None], now: datetime) -> Stuck | None:
    """The first of these pods that does not start."""
    for pod in pods:
        found = _stuck(pod, now) if pod is not None and not is_over(pod) else None
        if found is not None:
            return found
    return None


def _stuck(pod: Object, now: datetime) -> Stuck | None:
    name, reason = metadata(pod)["name"], stuck_because(pod)
    age = now - (created_at(pod) or now)
    if reason:
        return Stuck(words=f"Pod {name} does not start: {reason}", lasts=age > _PATIENCE)
    if (pod.get("status") or {}).get("phase") == "Pending" and age > _PREPARATION:
        words = (
            f"Pod {name} is still being prepared: its image is large, or a volume of it is not "
            f"there (Secret, ConfigMap, claim). kubectl describe pod {name} tells."
        )
        return Stuck(words=words, lasts=True)
    return None


def explained(conditions: Iterable[Condition], stuck: Stuck | None) -> tuple[Condition, ...]:
    """With the pod that is waited for, where a condition says that something is."""
    if stuck is None:
        return tuple(conditions)
    return tuple(
        replace(each, message=f"{each.message} {stuck.words}".strip())
        if each.reason in _TOLD_IN
        else each
        for each in conditions
    )
