"""The programs of a node as data: what runs, in which order, and how one sees that it is well."""

import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dev.cluster.layout import NODE, Layout

__all__ = ["PAUSE_IMAGE", "Component", "components", "write_configuration"]

PAUSE_IMAGE = "sparkpoint.dev/pause:1"


@dataclass(frozen=True, slots=True)
class Component:
    """One program of the node."""

    name: str
    command: tuple[str, ...]
    healthy: Callable[[], bool]


def components(layout: Layout) -> tuple[Component, ...]:
    """All programs, in the order in which they need one another."""
    plane = _control_plane(layout)
    return plane if layout.nodeless else (*plane, *_node(layout))


def _control_plane(layout: Layout) -> tuple[Component, ...]:
    return (
        Component("etcd", _etcd(layout), _answers("http://127.0.0.1:2379/health")),
        Component("kube-apiserver", _apiserver(layout), _ready(layout)),
        Component(
            "kube-controller-manager",
            _controller_manager(layout),
            _serves(layout, "https://127.0.0.1:10257/healthz"),
        ),
    )


def _node(layout: Layout) -> tuple[Component, ...]:
    return (
        Component(
            "kube-scheduler", _scheduler(layout), _serves(layout, "https://127.0.0.1:10259/healthz")
        ),
        Component(
            "containerd",
            ("containerd", "--config", str(layout.volatile / "containerd.toml")),
            _connects(layout.socket),
        ),
        Component(
            "coredns",
            ("coredns", "-conf", str(layout.volatile / "Corefile")),
            _answers("http://127.0.0.1:8181/ready"),
        ),
        # Before kube-proxy, which is healthy only once its node object exists.
        Component("kubelet", _kubelet(layout), _answers("http://127.0.0.1:10248/healthz")),
        Component(
            "kube-proxy",
            ("kube-proxy", f"--config={layout.volatile}/kube-proxy.json", "-v=1"),
            _answers("http://127.0.0.1:10256/healthz"),
        ),
    )


def _etcd(layout: Layout) -> tuple[str, ...]:
    # No fsync: the data of a development cluster need not survive the machine.
    return ("etcd", f"--data-dir={layout.volatile}/etcd", "--unsafe-no-fsync", "--log-level=warn")


_MANY_SERVICES = "198.18.0.0/15"
"""Addresses for benchmarks (RFC 2544): no packet goes there, and there are enough of them."""


def _apiserver(layout: Layout) -> tuple[str, ...]:
    pki = layout.pki
    return (
        "kube-apiserver",
        "--etcd-servers=http://127.0.0.1:2379",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        f"--advertise-address={layout.node_address}",
        "--secure-port=6443",
        f"--service-cluster-ip-range={_MANY_SERVICES if layout.nodeless else layout.service_range}",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        f"--kubelet-client-certificate={pki}/apiserver-kubelet.crt",
        f"--kubelet-client-key={pki}/apiserver-kubelet.key",
        # Otherwise `kubectl logs` would try to resolve the node's name.
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-key-file={pki}/service-accounts.pub",
        f"--service-account-signing-key-file={pki}/service-accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--max-requests-inflight=800",
    )


_WITHOUT_NODES = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
)
"""What objects need that nothing runs: the others look after nodes, pods and their network."""


def _controller_manager(layout: Layout) -> tuple[str, ...]:
    pki = layout.pki
    chosen = (f"--controllers={','.join(_WITHOUT_NODES)}",) if layout.nodeless else ()
    return (
        "kube-controller-manager",
        f"--kubeconfig={pki}/controller-manager.kubeconfig",
        f"--authentication-kubeconfig={pki}/controller-manager.kubeconfig",
        f"--authorization-kubeconfig={pki}/controller-manager.kubeconfig",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={pki}/service-accounts.key",
        f"--root-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/controller-manager.crt",
        f"--tls-private-key-file={pki}/controller-manager.key",
        "--leader-elect=false",
        f"--flex-volume-plugin-dir={layout.volatile}/plugins",
        # Kubernetes' own provisioner for one-node clusters: it makes our default StorageClass work.
        "--enable-hostpath-provisioner=true",
        # A lost pod should be noticed at the pace of tests, not of data centres.
        "--node-monitor-grace-period=20s",
        *chosen,
    )


def _scheduler(layout: Layout) -> tuple[str, ...]:
    pki = layout.pki
    return (
        "kube-scheduler",
        f"--kubeconfig={pki}/scheduler.kubeconfig",
        f"--authentication-kubeconfig={pki}/scheduler.kubeconfig",
        f"--authorization-kubeconfig={pki}/scheduler.kubeconfig",
        f"--tls-cert-file={pki}/scheduler.crt",
        f"--tls-private-key-file={pki}/scheduler.key",
        "--leader-elect=false",
    )


def _kubelet(layout: Layout) -> tuple[str, ...]:
    return (
        "kubelet",
        f"--config={layout.volatile}/kubelet.json",
        f"--kubeconfig={layout.pki}/kubelet.kubeconfig",
        f"--root-dir={layout.volatile}/kubelet",
        f"--hostname-override={NODE}",
        f"--node-ip={layout.node_address}",
    )


def write_configuration(layout: Layout, *, tools: Path) -> None:
    """Write the configuration files of the components."""
    folder = layout.volatile
    _write_json(folder / "kubelet.json", _kubelet_configuration(layout))
    _write_json(folder / "kube-proxy.json", _proxy_configuration(layout))
    (folder / "containerd.toml").write_text(_containerd_configuration(layout, tools))
    (folder / "Corefile").write_text(_corefile(layout))
    (folder / "cni").mkdir(exist_ok=True)
    _write_json(folder / "cni" / "10-pods.conflist", _pod_network(layout))


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1))


def _kubelet_configuration(layout: Layout) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{layout.socket}",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(layout.pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(layout.pki / "kubelet.key"),
        "clusterDNS": [layout.node_address],
        "clusterDomain": "cluster.local",
        # The machine's may be a link into /run, of which a node has its own.
        "resolvConf": "",
        "volumePluginDir": str(layout.volatile / "plugins"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "enforceNodeAllocatable": [],
        # A full disk of the developer must not evict pods, nor garbage-collect our images, which
        # no registry could give back.
        "evictionHard": {"memory.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "maxPods": 200,
        "serializeImagePulls": False,
    }


def _proxy_configuration(layout: Layout) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(layout.pki / "kube-proxy.kubeconfig")},
        "clusterCIDR": layout.pod_range,
        "hostnameOverride": NODE,
        "mode": "iptables",
        # The machine's conntrack table is not ours to resize.
        "conntrack": {"maxPerCore": 0, "min": 0},
    }


def _containerd_configuration(layout: Layout, tools: Path) -> str:
    return f"""version = 2
root = "{layout.images}"
state = "/run/containerd"
oom_score = 0
[grpc]
  address = "{layout.socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{layout.volatile}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  # Machines without CAP_SYS_RESOURCE may not lower a process's OOM score.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{tools}/usr/lib/cni"
    conf_dir = "{layout.volatile}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""


def _corefile(layout: Layout) -> str:
    return f""".:53 {{
  bind {layout.node_address}
  errors
  health 127.0.0.1:8080
  ready 127.0.0.1:8181
  cache 5
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {layout.pki}/coredns.kubeconfig {layout.context}
    pods insecure
  }}
}}
"""


def _pod_network(layout: Layout) -> dict[str, Any]:
    # Point to point, not a bridge: every packet is routed, so a service's answer always passes
    # conntrack, also on kernels without br_netfilter.
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni",
                    "ranges": [[{"subnet": layout.pod_range}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def _connects(socket_path: Path) -> Callable[[], bool]:
    def check() -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(socket_path)) == 0

    return check


def _answers(url: str) -> Callable[[], bool]:
    return lambda: _get(url, None)


def _serves(layout: Layout, url: str) -> Callable[[], bool]:
    return lambda: _get(url, ssl.create_default_context(cafile=str(layout.pki / "ca.crt")))


def _ready(layout: Layout) -> Callable[[], bool]:
    def check() -> bool:
        context = ssl.create_default_context(cafile=str(layout.pki / "ca.crt"))
        context.load_cert_chain(layout.pki / "admin.crt", layout.pki / "admin.key")
        return _get(f"{layout.server}/readyz", context)

    return check


def _get(url: str, context: ssl.SSLContext | None) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2, context=context) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
