"""A cluster in which no unsafe pod is made: the last look, whichever way its spec came here.

A spec is judged when it is accepted. What was accepted by another operator, or by this one with
other settings, is kept in a revision, and pods are made of that.
"""

from collections.abc import Mapping, Sequence

from sparkpoint.controller.cluster import PODS, Cluster, Kind, Object
from sparkpoint.controller.errors import UnprocessableError
from sparkpoint.controller.objects import unsafe_parts

__all__ = ["SafePods"]


class SafePods:
    """Passes everything on but pods that reach into their node."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object:
        """See Cluster."""
        return await self._cluster.get(kind, namespace, name)

    async def list(
        self, kind: Kind, namespace: str, *, labels: Mapping[str, str]
    ) -> Sequence[Object]:
        """See Cluster."""
        return await self._cluster.list(kind, namespace, labels=labels)

    async def create(self, body: Object) -> Object:
        """See Cluster. UnprocessableError for an unsafe pod, as if the API server had refused."""
        if body["kind"] == PODS.kind:
            found = list(unsafe_parts(body, f"Pod {body['metadata']['name']}"))
            if found:
                raise UnprocessableError("\n".join(str(error) for error in found))
        return await self._cluster.create(body)

    async def replace(self, body: Object) -> Object:
        """See Cluster."""
        return await self._cluster.replace(body)

    async def replace_status(self, body: Object) -> Object:
        """See Cluster."""
        return await self._cluster.replace_status(body)

    async def set_finalizers(self, body: Object, finalizers: Sequence[str]) -> Object:
        """See Cluster."""
        return await self._cluster.set_finalizers(body, finalizers)

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """See Cluster."""
        await self._cluster.delete(kind, namespace, name, uid=uid)
