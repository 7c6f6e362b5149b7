"""What the operator may ask of the API server: the chart's roles are made after these tables.

The cluster of the unit tests refuses what is not here, so that no call comes in without its right.
Watches are kopf's. Patches put our finalizer on, and take it off. Discovery needs no right of ours.
"""

from collections.abc import Mapping
from typing import Final

from sparkpoint.controller.cluster import (
    BUDGETS,
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
    Kind,
)

__all__ = ["ANYWHERE", "OWN_NAMESPACE", "SERVED_NAMESPACES", "Rights", "group_of"]

Rights = Mapping[tuple[str, str], frozenset[str]]
"""(API group, resource) -> verbs."""


def group_of(kind: Kind) -> str:
    """Its API group; empty for the core of Kubernetes."""
    return kind.api_version.rpartition("/")[0]


def _right(kind: Kind, verbs: str, *, part: str = "") -> tuple[tuple[str, str], frozenset[str]]:
    resource = f"{kind.plural}/{part}" if part else kind.plural
    return (group_of(kind), resource), frozenset(verbs.split())


SERVED_NAMESPACES: Final[Rights] = dict(
    [
        _right(JOBS, "get list watch patch"),
        _right(JOBS, "update", part="status"),
        _right(SAVEPOINTS, "get list watch create patch delete"),
        _right(SAVEPOINTS, "update", part="status"),
        _right(PODS, "get list watch create delete"),
        _right(CONFIG_MAPS, "get list create delete"),
        _right(SECRETS, "get list create delete"),
        _right(BUDGETS, "get list create delete"),
        _right(REVISIONS, "get list create delete"),
        # It goes with its job, by Kubernetes' own garbage collection.
        _right(SERVICES, "get create update"),
        _right(EVENTS, "create"),
        # One of each namespace says which release serves it.
        _right(LEASES, "get create update"),
    ]
)
"""In every namespace whose jobs are kept."""

OWN_NAMESPACE: Final[Rights] = dict([_right(LEASES, "get create update")])
"""In the namespace of the operator's own pod, where several replicas take turns."""

ANYWHERE: Final[Rights] = dict([_right(NODES, "get")])
"""Of the whole cluster, and optional: see nodes.py for what is done without."""
