"""The few verbs that the operator has for Kubernetes, on plain JSON objects.

Nothing is tried again here: a pass that fails is repeated as a whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sparkpoint.api.common import API_VERSION
from sparkpoint.controller.errors import AlreadyExistsError, NotFoundError

__all__ = [
    "BUDGETS",
    "CONFIG_MAPS",
    "EVENTS",
    "JOBS",
    "LEASES",
    "NODES",
    "PODS",
    "REVISIONS",
    "SAVEPOINTS",
    "SECRETS",
    "SERVICES",
    "Cluster",
    "Kind",
    "Object",
    "create_or_get",
    "find",
    "kind_of",
    "metadata",
    "owner_uid",
]

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of Kubernetes object."""

    api_version: str
    kind: str
    plural: str


CONFIG_MAPS: Final = Kind("v1", "ConfigMap", "configmaps")
EVENTS: Final = Kind("v1", "Event", "events")
JOBS: Final = Kind(API_VERSION, "StatefulSparkJob", "statefulsparkjobs")
LEASES: Final = Kind("coordination.k8s.io/v1", "Lease", "leases")
NODES: Final = Kind("v1", "Node", "nodes")
PODS: Final = Kind("v1", "Pod", "pods")
REVISIONS: Final = Kind("apps/v1", "ControllerRevision", "controllerrevisions")
SAVEPOINTS: Final = Kind(API_VERSION, "SparkSavepoint", "sparksavepoints")
SECRETS: Final = Kind("v1", "Secret", "secrets")
SERVICES: Final = Kind("v1", "Service", "services")
BUDGETS: Final = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
_KINDS: Final = {
    (kind.api_version, kind.kind): kind
    for kind in (
        CONFIG_MAPS,
        EVENTS,
        JOBS,
        LEASES,
        NODES,
        PODS,
        REVISIONS,
        SAVEPOINTS,
        SECRETS,
        SERVICES,
        BUDGETS,
    )
}


class Cluster(Protocol):
    """Kubernetes. Every call raises a ClusterError if it was not done."""

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object:
        """The object as it is now."""
        ...

    async def list(
        self, kind: Kind, namespace: str, *, labels: Mapping[str, str]
    ) -> Sequence[Object]:
        """All objects with these labels, as they are now."""
        ...

    async def create(self, body: Object) -> Object:
        """Make it; AlreadyExistsError if one of that name is there, whoever made it."""
        ...

    async def replace(self, body: Object) -> Object:
        """Write all but the status; ConflictError if it changed since `body` was read."""
        ...

    async def replace_status(self, body: Object) -> Object:
        """Write the status alone; ConflictError if the object changed since `body` was read."""
        ...

    async def set_finalizers(self, body: Object, finalizers: Sequence[str]) -> Object:
        """Write them alone; ConflictError if the object changed since `body` was read."""
        ...

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """Delete exactly this object; one that is gone, or is another one by now, is success."""
        ...


async def create_or_get(cluster: Cluster, body: Object) -> Object:
    """The object of that name: made now, or by an earlier pass that did not live to tell."""
    try:
        return await cluster.create(body)
    except AlreadyExistsError:
        about = metadata(body)
        return await cluster.get(kind_of(body), about["namespace"], about["name"])


async def find(cluster: Cluster, kind: Kind, namespace: str | None, name: str) -> Object | None:
    """The object, or None if there is none."""
    try:
        return await cluster.get(kind, namespace, name)
    except NotFoundError:
        return None


def kind_of(body: Object) -> Kind:
    """What kind of object this is."""
    return _KINDS[body["apiVersion"], body["kind"]]


def metadata(body: Object) -> dict[str, Any]:
    """Name, labels and so on."""
    found: dict[str, Any] = body.get("metadata") or {}
    return found


def owner_uid(body: Object) -> str | None:
    """Uid of what controls it, else of its first owner."""
    owners = metadata(body).get("ownerReferences") or []
    controlling = [owner for owner in owners if owner.get("controller")] or owners
    return str(controlling[0]["uid"]) if controlling else None
