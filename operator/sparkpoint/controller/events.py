"""Kubernetes Events: each thing is told once, however often a pass is repeated.

The name of an Event follows from what it tells, so telling it again finds it told. What fails over
and over is another occasion each time: of these a few are told, and the conditions tell the rest.
"""

import hashlib
import logging
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

from sparkpoint.controller.cluster import Cluster, Object, metadata
from sparkpoint.controller.correlation import annotations, correlation_id, current
from sparkpoint.controller.errors import (
    AlreadyExistsError,
    ForbiddenError,
    NotFoundError,
    UnprocessableError,
)
from sparkpoint.lifecycle.actions import Event

__all__ = ["Events", "event_object"]

logger = logging.getLogger(__name__)

_LONGEST: Final = 1024
"""Characters of an Event's message, as the API server wants it."""
_REMEMBERED: Final = 10_000
_MOST: Final = 3
_WITHIN: Final = timedelta(hours=1)
"""As long as Kubernetes keeps an Event: so many of one reason about one spec at a time."""


class Events:
    """Tells what happened to resources."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._told: OrderedDict[str, None] = OrderedDict()
        self._lately: OrderedDict[tuple[str, int, str], tuple[datetime, ...]] = OrderedDict()

    async def tell(self, about: Object, event: Event, *, occasion: str, now: datetime) -> None:
        """Tell it, unless it was told on this occasion before, or too often lately."""
        body = event_object(about, event, occasion=occasion, now=now)
        name = metadata(body)["name"]
        if name in self._told or self._is_too_much(about, event, now):
            return
        try:
            await self._cluster.create(body)
        except AlreadyExistsError:
            pass
        except (ForbiddenError, NotFoundError, UnprocessableError) as error:
            # An Event is for people: nothing waits for one that is not let through.
            ends = isinstance(error, ForbiddenError) and error.is_of_ending_namespace
            level = logging.DEBUG if ends else logging.WARNING
            logger.log(level, "Could not tell %s of %s: %s", event.reason, name, error)
            return
        self._remember(name)
        self._count(about, event, now)

    def _remember(self, name: str) -> None:
        self._told[name] = None
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)

    def _is_too_much(self, about: Object, event: Event, now: datetime) -> bool:
        lately = self._lately.get(_topic(about, event), ())
        return sum(1 for time in lately if now - time < _WITHIN) >= _MOST

    def _count(self, about: Object, event: Event, now: datetime) -> None:
        topic = _topic(about, event)
        self._lately[topic] = (*self._lately.pop(topic, ()), now)[-_MOST:]
        if len(self._lately) > _REMEMBERED:
            self._lately.popitem(last=False)


def _topic(about: Object, event: Event) -> tuple[str, int, str]:
    known = metadata(about)
    return known["uid"], known.get("generation", 0), event.reason


def _marks(uid: str, event: Event) -> Object:
    """The operation that it is about: its own, or what the pass is about."""
    if event.operation:
        marks = annotations(event.operation, correlation_id(uid, event.operation))
        return {"annotations": marks}
    topic = current()
    if topic is None or not topic.id:
        return {}
    return {"annotations": annotations(topic.operation, topic.id)}


def event_object(about: Object, event: Event, *, occasion: str, now: datetime) -> Object:
    """The Event. The same reason on the same occasion has the same name."""
    known = metadata(about)
    identity = f"{known['uid']}/{occasion}/{event.reason}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    named = {"name": f"{known['name']}.{digest}", "namespace": known["namespace"]}
    time = now.isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {**named, **_marks(known["uid"], event)},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": known["name"],
            "namespace": known["namespace"],
            "uid": known["uid"],
            "resourceVersion": known.get("resourceVersion"),
        },
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "message": event.message[:_LONGEST],
        "source": {"component": "sparkpoint"},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
