"""Kubernetes Events: each thing is told once, however often a pass is repeated.

The name of an Event follows from what it tells, so telling it again finds it told.
"""

import hashlib
import logging
from collections import OrderedDict
from datetime import datetime
from typing import Final

from sparkpoint.controller.cluster import Cluster, Object, metadata
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


class Events:
    """Tells what happened to resources."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._told: OrderedDict[str, None] = OrderedDict()

    async def tell(self, about: Object, event: Event, *, occasion: str, now: datetime) -> None:
        """Tell it, unless it was told on this occasion before."""
        body = event_object(about, event, occasion=occasion, now=now)
        name = metadata(body)["name"]
        if name in self._told:
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

    def _remember(self, name: str) -> None:
        self._told[name] = None
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)


def event_object(about: Object, event: Event, *, occasion: str, now: datetime) -> Object:
    """The Event. The same reason on the same occasion has the same name."""
    known = metadata(about)
    identity = f"{known['uid']}/{occasion}/{event.reason}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    time = now.isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{known['name']}.{digest}", "namespace": known["namespace"]},
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
