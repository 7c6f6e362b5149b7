"""Which of several operators acts: the one that holds a Lease, and has renewed it just now.

Others watch and wait. Whether a foreign Lease has run out is judged by how long it has not changed
before our own eyes: clocks of two nodes are never compared. The holder stops acting well before
others may take over. Two that act at once for a moment, because a process was frozen between the
check and the effect, do no harm: status writes carry the version that was read, and effects have
names.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sparkpoint.controller.agents import Agent, Dial
from sparkpoint.controller.cluster import LEASES, Cluster, Kind, Object, find, metadata
from sparkpoint.controller.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    UnavailableError,
)

__all__ = ["LEASE_NAME", "FencedCluster", "Leadership", "NotLeaderError", "fenced"]

logger = logging.getLogger(__name__)

LEASE_NAME: Final = "sparkpoint-operator"
_DURATION: Final = 15.0
"""Seconds after which others may take over a Lease that is not renewed."""
_HOLD: Final = 10.0
"""Seconds after its last renewal during which the holder acts."""
_RENEWAL: Final = 3.0


class NotLeaderError(UnavailableError):
    """Another operator acts, or we cannot be sure that none does."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A Lease as it was when it changed last before our eyes."""

    version: str
    at: float


class Leadership:
    """The Lease, and whether we hold it. `monotonic` is a clock that never goes back."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespace: str,
        identity: str,
        monotonic: Callable[[], float],
        now: Callable[[], datetime],
        name: str = LEASE_NAME,
    ) -> None:
        self._cluster, self._namespace, self._name = cluster, namespace, name
        self._identity, self._monotonic, self._now = identity, monotonic, now
        self._seen: _Seen | None = None
        self._renewed: float | None = None
        self.term = 0
        """How often it was taken: between two terms, others may have acted."""

    def holds(self) -> bool:
        """Whether we may act now."""
        return self._renewed is not None and self._monotonic() - self._renewed < _HOLD

    async def keep(self) -> None:
        """Take the Lease when it is free, and renew it, until cancelled; then give it back."""
        try:
            while True:
                await self.renew()
                await asyncio.sleep(_RENEWAL)
        finally:
            await self._give_back()

    async def renew(self) -> None:
        """One try to take or to renew it; one that fails leaves us with what we had."""
        before, begun = self.holds(), self._monotonic()
        try:
            won = await self._try()
        except ClusterError as error:
            logger.warning("The lease could not be renewed: %s", error)
            return
        # From when we asked: the answer may have taken its time.
        self._renewed = begun if won else None
        self.term += won and not before
        if won is not before:
            logger.info("%s is the operator that acts" if won else "%s waits", self._identity)

    async def _try(self) -> bool:
        body = await find(self._cluster, LEASES, self._namespace, self._name)
        try:
            if body is None:
                self._notice(await self._cluster.create(self._new()))
                return True
            if not self._is_free(body):
                return False
            self._notice(await self._cluster.replace(self._taken(body)))
        except (AlreadyExistsError, ConflictError):
            return False
        return True

    def _is_free(self, body: Object) -> bool:
        """Ours, nobody's, or unchanged for so long that its holder has stopped acting."""
        holder = (body.get("spec") or {}).get("holderIdentity") or ""
        if holder in ("", self._identity):
            return True
        seen = self._notice(body)
        return self._monotonic() - seen.at > _DURATION

    def _notice(self, body: Object) -> _Seen:
        version = str(metadata(body).get("resourceVersion"))
        if self._seen is None or self._seen.version != version:
            self._seen = _Seen(version, self._monotonic())
        return self._seen

    def _new(self) -> Object:
        about = {"name": self._name, "namespace": self._namespace}
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": about,
            "spec": self._spec({}),
        }

    def _taken(self, body: Object) -> Object:
        return {**body, "spec": self._spec(body.get("spec") or {})}

    def _spec(self, former: Mapping[str, Any]) -> dict[str, Any]:
        time = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        same = former.get("holderIdentity") == self._identity
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(_DURATION),
            "acquireTime": former["acquireTime"] if same else time,
            "renewTime": time,
            "leaseTransitions": former.get("leaseTransitions", 0) + (0 if same else 1),
        }

    async def _give_back(self) -> None:
        """So that the next operator need not wait for the Lease to run out."""
        if not self.holds():
            return
        self._renewed = None
        try:
            body = await self._cluster.get(LEASES, self._namespace, self._name)
            spec = {**(body.get("spec") or {}), "holderIdentity": ""}
            await self._cluster.replace({**body, "spec": spec})
        except ClusterError as error:
            logger.warning("The lease could not be given back: %s", error)


class FencedCluster:
    """A cluster that is written to by the operator that acts alone."""

    def __init__(self, cluster: Cluster, leadership: Leadership) -> None:
        self._cluster, self._leadership = cluster, leadership

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object:
        """See Cluster."""
        return await self._cluster.get(kind, namespace, name)

    async def list(
        self, kind: Kind, namespace: str, *, labels: Mapping[str, str]
    ) -> Sequence[Object]:
        """See Cluster."""
        return await self._cluster.list(kind, namespace, labels=labels)

    async def create(self, body: Object) -> Object:
        """See Cluster."""
        self._check()
        return await self._cluster.create(body)

    async def replace(self, body: Object) -> Object:
        """See Cluster."""
        self._check()
        return await self._cluster.replace(body)

    async def replace_status(self, body: Object) -> Object:
        """See Cluster."""
        self._check()
        return await self._cluster.replace_status(body)

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """See Cluster."""
        self._check()
        await self._cluster.delete(kind, namespace, name, uid=uid)

    def _check(self) -> None:
        if not self._leadership.holds():
            raise NotLeaderError("another operator holds the lease")


def fenced(dial: Dial, leadership: Leadership) -> Dial:
    """The way to agents for the operator that acts alone."""

    def checked(url: str, token: str) -> Agent:
        if not leadership.holds():
            raise NotLeaderError("another operator holds the lease")
        return dial(url, token)

    return checked
