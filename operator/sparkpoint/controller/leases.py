"""A Lease of Kubernetes: who holds it may do something that others must not do meanwhile.

Whether a foreign Lease has run out is judged by how long it has not changed before our own eyes:
clocks of two nodes are never compared. The holder stops counting on it well before others may take
it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sparkpoint.controller.cluster import LEASES, Cluster, Object, find, metadata
from sparkpoint.controller.errors import AlreadyExistsError, ConflictError

__all__ = ["Lease", "Terms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How long a Lease counts, in seconds after its last renewal."""

    holder: float
    """For its holder."""
    others: float
    """For everybody else: longer."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A Lease as it was when it changed last before our eyes."""

    version: str
    at: float


class Lease:
    """One Lease, and whether we hold it. `monotonic` is a clock that never goes back."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespace: str,
        name: str,
        identity: str,
        terms: Terms,
        monotonic: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        self._cluster, self._namespace, self._name = cluster, namespace, name
        self._identity, self._terms = identity, terms
        self._monotonic, self._now = monotonic, now
        self._seen: _Seen | None = None
        self._renewed: float | None = None
        self.holder = ""
        """Who held it when we looked last."""

    def holds(self) -> bool:
        """Whether we may count on it now."""
        return self._renewed is not None and self._monotonic() - self._renewed < self._terms.holder

    async def renew(self) -> bool:
        """One try to take or to renew it; one that raises leaves us with what we had."""
        begun = self._monotonic()
        won = await self._try()
        # From when we asked: the answer may have taken its time.
        self._renewed = begun if won else None
        return won

    def assume(self) -> None:
        """Count on it although it cannot be written, as nobody else can either."""
        self._renewed = self._monotonic()

    async def give_back(self) -> None:
        """So that the next one need not wait for it to run out."""
        if not self.holds():
            return
        self._renewed = None
        body = await self._cluster.get(LEASES, self._namespace, self._name)
        spec = body.get("spec") or {}
        # The answer may have taken so long that somebody else counts on it by now.
        if spec.get("holderIdentity") == self._identity:
            await self._cluster.replace({**body, "spec": {**spec, "holderIdentity": ""}})

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
        """Ours, nobody's, or unchanged for so long that its holder has stopped counting on it."""
        self.holder = (body.get("spec") or {}).get("holderIdentity") or ""
        if self.holder in ("", self._identity):
            return True
        seen = self._notice(body)
        return self._monotonic() - seen.at > self._terms.others

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
            "leaseDurationSeconds": int(self._terms.others),
            "acquireTime": (former.get("acquireTime") if same else None) or time,
            "renewTime": time,
            "leaseTransitions": (former.get("leaseTransitions") or 0) + (0 if same else 1),
        }
