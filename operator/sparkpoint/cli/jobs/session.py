"""Which cluster and which namespace a command is about."""

from dataclasses import dataclass

from sparkpoint.cli.jobs.cluster import Cluster

__all__ = ["Place", "open_cluster"]


@dataclass(frozen=True, slots=True)
class Place:
    """As the command line says it; None: as kubectl would have it."""

    context: str | None = None
    namespace: str | None = None


def open_cluster(place: Place) -> Cluster:
    """Log in. Nothing is asked yet."""
    # Loads the Kubernetes client, which takes a second and may not be installed.
    from sparkpoint.cli.jobs.connection import connect

    return Cluster(connect(place.context, place.namespace))
