"""Raise and lower a cluster, or use the one that a person named."""

import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from dev.cache import exclusive
from dev.cluster import images, node
from dev.cluster.layout import NODE, Layout, find_layout, take_layout
from dev.cluster.preflight import check_machine
from dev.cluster.programs import debian_tools, kubernetes_binaries, tool_environment
from dev.console import Problem, run_program, step

__all__ = ["Cluster", "delete_cluster", "find_cluster", "lower_cluster", "raise_cluster"]

_NODE_READY_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that commands and tests may use: ours by name, or one that a person named."""

    kubeconfig: Path | None
    """None: the person's own kubeconfig."""
    context: str
    layout: Layout | None
    """None: not ours; images cannot be loaded into it."""

    @property
    def kubectl_arguments(self) -> list[str]:
        config = [f"--kubeconfig={self.kubeconfig}"] if self.kubeconfig else []
        return [*config, f"--context={self.context}"]

    @property
    def kubectl_hint(self) -> str:
        """How a person calls kubectl on it."""
        binary = kubernetes_binaries() / "kubectl" if self.layout else Path("kubectl")
        return " ".join([str(binary), *self.kubectl_arguments])

    def kubectl(self, *arguments: str, text: str | None = None, timeout: float = 120) -> str:
        """Run kubectl and return what it prints; Problem with its words if it fails."""
        return run_program(
            ["kubectl", *self.kubectl_arguments, *arguments],
            env=tool_environment() if self.layout else None,
            text=text,
            timeout=timeout,
            failed=f"kubectl {' '.join(arguments)} failed",
            remedy="mend what kubectl says; make cluster-up repairs a local cluster.",
        )


def find_cluster(name: str, *, context: str | None = None) -> Cluster:
    """The cluster, without raising it."""
    if context:
        return Cluster(None, context, None)
    layout = find_layout(name)
    if layout is None or not node.is_running(layout):
        raise Problem(
            f"The cluster {name} is not running.", remedy=f"make cluster-up CLUSTER={name}"
        )
    return Cluster(layout.kubeconfig, layout.context, layout)


def raise_cluster(name: str, *, context: str | None = None, nodeless: bool = False) -> Cluster:
    """The cluster, up and healthy. Never touches a cluster that nobody named.

    `nodeless`: the control plane alone.
    """
    if context:
        return _use_context(context)
    check_machine()
    debian_tools()
    kubernetes_binaries()
    layout = take_layout(name, nodeless=nodeless)
    cluster = Cluster(layout.kubeconfig, layout.context, layout)
    with exclusive(f"cluster-{name}"):
        if not (node.is_running(layout) and (nodeless or _node_ready(cluster))):
            _start(layout, cluster)
        if not nodeless:
            # Also when it runs: whoever started it may have been killed before this.
            images.load_pause(layout)
    return cluster


def delete_cluster(layout: Layout) -> None:
    """End the cluster and forget it, images too."""
    with exclusive(f"cluster-{layout.name}"), step(f"Removing cluster {layout.name}"):
        node.stop_node(layout)
        for folder in (layout.volatile, layout.images, layout.pki):
            shutil.rmtree(folder, ignore_errors=True)
        # Last what makes it a cluster: cut off before, the same command finds it again.
        shutil.rmtree(layout.folder)


def lower_cluster(layout: Layout) -> None:
    """End the cluster and all that belongs to it; its images stay in its folder."""
    with exclusive(f"cluster-{layout.name}"), step(f"Ending cluster {layout.name}"):
        node.stop_node(layout)
        shutil.rmtree(layout.volatile, ignore_errors=True)


def _use_context(context: str) -> Cluster:
    cluster = Cluster(None, context, None)
    if shutil.which("kubectl") is None:
        raise Problem("kubectl is not on PATH.", remedy="install kubectl, or leave --context out.")
    cluster.kubectl("version")
    return cluster


def _start(layout: Layout, cluster: Cluster) -> None:
    with step(f"Raising cluster {layout.name}", usually="20 s"):
        node.stop_node(layout)
        _write_pki(layout)
        node.start_node(layout)
        if not layout.nodeless:
            _await_node(cluster)
        # Pods cannot be made before the controller manager has made the default service account.
        cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")


def _write_pki(layout: Layout) -> None:
    # Here, because it needs a package: ending clusters must work without the environment.
    from dev.cluster import pki

    shutil.rmtree(layout.pki, ignore_errors=True)
    authority = pki.Authority.create(layout.pki)
    service_names = [f"kubernetes{suffix}" for suffix in ("", ".default", ".default.svc")]
    authority.issue(
        "apiserver",
        "kube-apiserver",
        hosts=[
            *(*service_names, "kubernetes.default.svc.cluster.local", "localhost", "127.0.0.1"),
            *(layout.node_address, layout.kubernetes_service),
        ],
    )
    authority.issue("apiserver-kubelet", "kube-apiserver-kubelet", groups=["system:masters"])
    users = {
        "admin": ("admin", ["system:masters"], []),
        "controller-manager": ("system:kube-controller-manager", [], ["127.0.0.1"]),
        "scheduler": ("system:kube-scheduler", [], ["127.0.0.1"]),
        "kube-proxy": ("system:kube-proxy", [], []),
        "kubelet": (f"system:node:{NODE}", ["system:nodes"], [NODE, layout.node_address]),
        "coredns": ("coredns", [], []),
    }
    for user, (common_name, groups, hosts) in users.items():
        authority.issue(user, common_name, groups=groups, hosts=hosts)
        path = layout.kubeconfig if user == "admin" else layout.pki / f"{user}.kubeconfig"
        pki.write_kubeconfig(
            path, pki=layout.pki, user=user, server=layout.server, context=layout.context
        )


def _node_ready(cluster: Cluster) -> bool:
    try:
        ready = '{.items[*].status.conditions[?(@.type=="Ready")].status}'
        return cluster.kubectl("get", "nodes", "-o", f"jsonpath={ready}", timeout=10) == "True"
    except (Problem, subprocess.TimeoutExpired):
        return False


def _await_node(cluster: Cluster) -> None:
    deadline = time.monotonic() + _NODE_READY_TIMEOUT
    while not _node_ready(cluster):
        if time.monotonic() > deadline:
            raise Problem(
                "The node did not become Ready: " + cluster.kubectl("describe", "nodes")[-1500:],
                remedy="run the same command again; it starts afresh.",
            )
        time.sleep(0.2)
