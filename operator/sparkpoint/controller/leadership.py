"""Which of several operators acts: the one that holds a Lease, and has renewed it just now.

Others watch and wait. The holder stops acting well before others may take over. Two that act at
once for a moment, because a process was frozen between the check and the effect, do no harm: status
writes carry the version that was read, and effects have names.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from sparkpoint.controller.agents import Agent, Dial
from sparkpoint.controller.cluster import Cluster, Kind, Object
from sparkpoint.controller.errors import ClusterError, UnavailableError
from sparkpoint.controller.leases import Lease, Terms
from sparkpoint.runtime.model import (
    GateInfo,
    Progress,
    SavepointOperation,
    SavepointRequest,
    StopOperation,
    StopRequest,
)

__all__ = [
    "LEASE_NAME",
    "FencedAgent",
    "FencedCluster",
    "Leadership",
    "NotLeaderError",
    "fenced",
    "identity_on",
]

logger = logging.getLogger(__name__)

LEASE_NAME: Final = "sparkpoint-operator"
_TERMS: Final = Terms(holder=8.0, others=12.0)
_RENEWAL: Final = 2.0
_PATIENCE: Final = 5.0
"""Seconds that a try may take: one that hangs must not keep the next from being made."""


def identity_on(host: str) -> str:
    """Who we are: two processes on one host, or in one pod one after the other, are two."""
    return f"{host}_{secrets.token_hex(4)}"


class NotLeaderError(UnavailableError):
    """Another operator acts, or we cannot be sure that none does."""


class Leadership:
    """Whether it is our turn. `monotonic` is a clock that never goes back."""

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
        self._identity, self._complaint = identity, ""
        self._lease = Lease(
            cluster,
            namespace=namespace,
            name=name,
            identity=identity,
            terms=_TERMS,
            monotonic=monotonic,
            now=now,
        )
        self.term = 0
        """How often it was taken: between two terms, others may have acted."""

    def holds(self) -> bool:
        """Whether we may act now."""
        return self._lease.holds()

    def check(self) -> None:
        """NotLeaderError if we may not: asked right before every effect."""
        if not self.holds():
            raise NotLeaderError("another operator holds the lease")

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
        before = self.holds()
        try:
            async with asyncio.timeout(_PATIENCE):
                won = await self._lease.renew()
        except (ClusterError, TimeoutError) as error:
            self._complain(_reason(error))
            return
        self._complaint = ""
        self.term += won and not before
        if won is not before:
            logger.info("%s is the operator that acts" if won else "%s waits", self._identity)

    def _complain(self, of: str) -> None:
        """Once, and not every other second, while the reason is the same."""
        if of != self._complaint:
            logger.warning("The lease could not be renewed, and nobody acts without it: %s", of)
        self._complaint = of

    async def _give_back(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._lease.give_back()
        except (ClusterError, TimeoutError) as error:
            logger.warning("The lease could not be given back: %s", _reason(error))


def _reason(error: Exception) -> str:
    return str(error) or f"no answer within {_PATIENCE:.0f} s"


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
        self._leadership.check()
        return await self._cluster.create(body)

    async def replace(self, body: Object) -> Object:
        """See Cluster."""
        self._leadership.check()
        return await self._cluster.replace(body)

    async def replace_status(self, body: Object) -> Object:
        """See Cluster."""
        self._leadership.check()
        return await self._cluster.replace_status(body)

    async def set_finalizers(self, body: Object, finalizers: Sequence[str]) -> Object:
        """See Cluster."""
        self._leadership.check()
        return await self._cluster.set_finalizers(body, finalizers)

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """See Cluster."""
        self._leadership.check()
        await self._cluster.delete(kind, namespace, name, uid=uid)


class FencedAgent:
    """An agent that is asked to do something by the operator that acts alone.

    It was dialled when a pass began. Whatever was waited for since then, the Lease may be over.
    """

    def __init__(self, agent: Agent, leadership: Leadership) -> None:
        self._agent, self._leadership = agent, leadership

    async def progress(self) -> Progress:
        """See Agent."""
        return await self._agent.progress()

    async def get_stop(self, operation: str, *, wait: float = 0) -> StopOperation:
        """See Agent."""
        return await self._agent.get_stop(operation, wait=wait)

    async def stop(self, operation: str, request: StopRequest | None = None) -> StopOperation:
        """See Agent."""
        self._leadership.check()
        return await self._agent.stop(operation, request)

    async def get_savepoint(self, name: str) -> SavepointOperation:
        """See Agent."""
        return await self._agent.get_savepoint(name)

    async def savepoint(self, name: str, request: SavepointRequest) -> SavepointOperation:
        """See Agent."""
        self._leadership.check()
        return await self._agent.savepoint(name, request)

    async def open_gate(self, epoch: int) -> GateInfo:
        """See Agent."""
        self._leadership.check()
        return await self._agent.open_gate(epoch)


def fenced(dial: Dial, leadership: Leadership) -> Dial:
    """The way to agents for the operator that acts alone."""

    def checked(url: str, token: str) -> Agent:
        leadership.check()
        return FencedAgent(dial(url, token), leadership)

    return checked
