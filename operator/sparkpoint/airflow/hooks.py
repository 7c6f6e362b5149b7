"""The way to the cluster: Airflow's Kubernetes connection, and the verbs of `sparkpoint job`."""

from typing import Any, Final

from airflow.providers.cncf.kubernetes.hooks.kubernetes import KubernetesHook
from kubernetes.config import ConfigException

from sparkpoint.cli.jobs.cluster import Cluster, Kind
from sparkpoint.cli.jobs.connection import Connection
from sparkpoint.cli.jobs.errors import NoClusterError

__all__ = ["DEFAULT_CONNECTION", "FIELD_MANAGER", "SparkpointHook"]

DEFAULT_CONNECTION: Final = "kubernetes_default"
FIELD_MANAGER: Final = "sparkpoint-airflow"
"""Whom the API server notes as the owner of the fields that we change."""
_PATTERN: Final = "sparkpoint_link"
"""Of the connection's extras: the address of a resource's page, with {namespace}, {plural} and
{name} in it."""


class SparkpointHook(KubernetesHook):
    """A Kubernetes connection (`kubernetes_default` unless another one is named)."""

    def cluster(self, namespace: str | None = None) -> Cluster:
        """One namespace: this one, else the connection's, else `default`."""
        try:
            api = self.api_client
        except (ConfigException, OSError) as error:
            raise NoClusterError(
                f"Connection {self.conn_id} leads to no cluster: {error}. Set in_cluster, "
                "kube_config_path or kube_config in its extras."
            ) from error
        return Cluster(
            Connection(api, namespace or self.own_namespace or "default"), manager=FIELD_MANAGER
        )

    @property
    def own_namespace(self) -> str | None:
        """What the connection's extras name; None: it is for the whole cluster."""
        found: str | None = self._get_field("namespace")
        return found or None

    def link(self, kind: Kind, namespace: str, name: str) -> str:
        """Where a person looks at a resource: by the connection's pattern, else its own address."""
        pattern: Any = self.conn_extras.get(_PATTERN)
        if not pattern:
            host = self.api_client.configuration.host
            pattern = f"{host}/apis/{kind.api_version}/namespaces/{{namespace}}/{{plural}}/{{name}}"
        text = str(pattern)
        for key, value in (("namespace", namespace), ("plural", kind.plural), ("name", name)):
            text = text.replace(f"{{{key}}}", value)
        return text
