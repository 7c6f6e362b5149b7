"""Which release serves a namespace, where two were told to: the one whose name is on its Lease.

Replicas of one release take turns by the Lease of their own namespace; that one knows nothing of
another release, which has another. So each namespace with jobs has a Lease, too, that names the
release which serves it. It is taken by the first pass, renewed from then on, and not given back: a
release that is upgraded keeps its namespaces. Only an operator without a Lease of its own gives it
back when it ends, as the next one has another name.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from sparkpoint.controller.cluster import Cluster
from sparkpoint.controller.errors import ClusterError, ForbiddenError, NotFoundError
from sparkpoint.controller.leases import Lease, Terms

__all__ = ["CLAIM_NAME", "Claims"]

logger = logging.getLogger(__name__)

CLAIM_NAME: Final = "sparkpoint-served-by"
_TERMS: Final = Terms(holder=120.0, others=180.0)
_RENEWAL: Final = 30.0
_PATIENCE: Final = 5.0
"""Seconds at the end, for all namespaces: a pod that ends is not waited for much longer."""


class _Claim:
    """On one namespace."""

    def __init__(self, lease: Lease) -> None:
        self.lease, self.lock = lease, asyncio.Lock()
        self.tried: float | None = None
        self.told = ""


class Claims:
    """What this release serves, and what another one does. `claimant` is the release's name."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        claimant: str,
        monotonic: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        self._cluster, self._claimant = cluster, claimant
        self._monotonic, self._now = monotonic, now
        self._claims: dict[str, _Claim] = {}

    async def serves(self, namespace: str) -> bool:
        """Whether jobs of this namespace are ours to look after; raises if it cannot be known."""
        claim = self._claims.get(namespace)
        if claim is None:
            claim = self._claims[namespace] = _Claim(self._lease_of(namespace))
        async with claim.lock:
            if claim.tried is None or self._monotonic() - claim.tried > _RENEWAL:
                await self._renew(namespace, claim)
        return claim.lease.holds()

    async def keep(self) -> None:
        """Renew what we serve until cancelled: passes over jobs that run well may be far apart."""
        while True:
            await asyncio.sleep(_RENEWAL)
            await self.renew_all()

    async def renew_all(self) -> None:
        """Once; a namespace that has gone is forgotten."""
        for namespace in list(self._claims):
            try:
                await self.serves(namespace)
            except NotFoundError:
                self._claims.pop(namespace, None)
            except ClusterError as error:
                logger.debug("The claim on %s could not be renewed: %s", namespace, error)

    async def give_back(self) -> None:
        """For the next one, which has another name than we, so that it need not wait."""
        try:
            async with asyncio.timeout(_PATIENCE), asyncio.TaskGroup() as tasks:
                for namespace, claim in self._claims.items():
                    tasks.create_task(self._give_back(namespace, claim))
        except TimeoutError:
            logger.debug("Not all claims could be given back within %.0f s", _PATIENCE)

    def notes(self) -> Sequence[str]:
        """A sentence for each namespace that another release serves."""
        return [claim.told for claim in self._claims.values() if claim.told]

    async def _give_back(self, namespace: str, claim: _Claim) -> None:
        try:
            await claim.lease.give_back()
        except ClusterError as error:
            logger.debug("The claim on %s could not be given back: %s", namespace, error)

    async def _renew(self, namespace: str, claim: _Claim) -> None:
        try:
            won = await claim.lease.renew()
            if not won and claim.lease.holder in ("", self._claimant):
                # Somebody wrote it while we did, and it is nobody else's: looked at anew.
                won = await claim.lease.renew()
        except ForbiddenError as error:
            if not error.is_of_ending_namespace:
                raise
            # No Lease can be made in it any more, by nobody; what is in it has to go all the same.
            claim.lease.assume()
            won = True
        claim.tried = self._monotonic()
        told = "" if won else self._refusal(namespace, claim.lease.holder)
        if told and told != claim.told:
            logger.warning("%s", told)
        claim.told = told

    def _refusal(self, namespace: str, holder: str) -> str:
        return (
            f"Namespace {namespace} is served by {holder or 'another operator'}, and not by this "
            f"operator ({self._claimant}): let one of the two serve other namespaces."
        )

    def _lease_of(self, namespace: str) -> Lease:
        return Lease(
            self._cluster,
            namespace=namespace,
            name=CLAIM_NAME,
            identity=self._claimant,
            terms=_TERMS,
            monotonic=self._monotonic,
            now=self._now,
        )
