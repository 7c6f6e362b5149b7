"""Names, addresses and folders of one cluster; everything else derives from its name and number."""

import contextlib
import ipaddress
import json
import re
from dataclasses import dataclass
from pathlib import Path

from dev.cache import cache_root, exclusive
from dev.console import Problem

__all__ = [
    "NODE",
    "PRIVATE_FOLDERS",
    "PROVISIONED",
    "Layout",
    "all_layouts",
    "clusters_folder",
    "find_layout",
    "take_layout",
]

NODE = "node-1"
PROVISIONED = Path("/tmp/hostpath_pv")
"""Where Kubernetes' host-path provisioner makes volumes; it cannot be told another place."""
PRIVATE_FOLDERS = (
    PROVISIONED,
    Path("/var/log"),
    # A kubelet or CNI of the machine itself keeps its sockets and addresses there.
    Path("/var/lib/kubelet"),
    Path("/var/lib/cni"),
)
"""Folders of which a node has its own, whatever the machine has there."""
_MAX_CLUSTERS = 200
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where one cluster lives."""

    name: str
    number: int
    nodeless: bool = False
    """Nothing runs pods: for objects alone, or pods that something else plays."""

    @property
    def folder(self) -> Path:
        return clusters_folder() / self.name

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def context(self) -> str:
        return f"sparkpoint-{self.name}"

    @property
    def images(self) -> Path:
        """containerd's content: survives `down`, so that images are not loaded again."""
        return self.folder / "containerd"

    @property
    def volatile(self) -> Path:
        """Everything else a running node writes; removed by `down`."""
        return self.folder / "node"

    @property
    def socket(self) -> Path:
        return self.volatile / "containerd.sock"

    @property
    def logs(self) -> Path:
        return self.volatile / "logs"

    @property
    def link(self) -> str:
        """The host's end of the link to the node."""
        return f"sparkpoint{self.number}"

    @property
    def host_address(self) -> str:
        return f"10.231.{self.number}.1"

    @property
    def node_address(self) -> str:
        return f"10.231.{self.number}.2"

    @property
    def pod_range(self) -> str:
        return f"10.232.{self.number}.0/24"

    @property
    def service_range(self) -> str:
        return f"10.233.{self.number}.0/24"

    @property
    def ranges(self) -> tuple[str, str, str]:
        """Every network of the cluster."""
        return (f"10.231.{self.number}.0/24", self.pod_range, self.service_range)

    @property
    def kubernetes_service(self) -> str:
        return f"10.233.{self.number}.1"

    @property
    def cgroup(self) -> str:
        return f"sparkpoint-{self.name}"

    @property
    def server(self) -> str:
        return f"https://{self.node_address}:6443"


def clusters_folder() -> Path:
    """The folder of all clusters of this person on this machine."""
    return cache_root() / "clusters"


def all_layouts() -> list[Layout]:
    """Every cluster that has a folder, running or not."""
    found = []
    for file in sorted(clusters_folder().glob("*/cluster.json")):
        # One that is being deleted is no cluster any more.
        with contextlib.suppress(FileNotFoundError, ValueError):
            record = json.loads(file.read_text())
            nodeless = record.get("nodeless", False)
            found.append(Layout(file.parent.name, record["number"], nodeless))
    return found


def find_layout(name: str) -> Layout | None:
    """The cluster of that name, if it was ever raised."""
    return next((layout for layout in all_layouts() if layout.name == name), None)


def _free_number() -> int:
    """The lowest number whose networks neither a cluster nor the machine uses."""
    taken = {layout.number for layout in all_layouts()}
    routes = Path("/proc/net/route").read_text().splitlines()[1:]
    used = {
        ipaddress.IPv4Address(int(line.split()[1], 16).to_bytes(4, "little")) for line in routes
    }
    for number in range(_MAX_CLUSTERS):
        ranges = [ipaddress.IPv4Network(r) for r in Layout("", number).ranges]
        if number not in taken and not any(address in r for address in used for r in ranges):
            return number
    raise Problem(
        f"No addresses are left for another cluster: {_MAX_CLUSTERS} are taken.",
        remedy="make clean removes all clusters.",
    )


def take_layout(name: str, *, nodeless: bool = False) -> Layout:
    """The cluster of that name; a new one gets the lowest free number."""
    if not _NAME.fullmatch(name):
        raise Problem(
            f"{name!r} cannot be a cluster's name.",
            remedy="use up to 40 letters, digits and dashes.",
        )
    with exclusive("clusters"):
        if found := find_layout(name):
            return _as_wanted(found, nodeless=nodeless)
        layout = Layout(name, _free_number(), nodeless)
        layout.folder.mkdir(parents=True, exist_ok=True)
        record = layout.folder / ".cluster.json"
        record.write_text(json.dumps({"number": layout.number, "nodeless": nodeless}))
        record.rename(layout.folder / "cluster.json")
        return layout


def _as_wanted(found: Layout, *, nodeless: bool) -> Layout:
    if found.nodeless != nodeless:
        raise Problem(
            f"The cluster {found.name} has {'no' if found.nodeless else 'a'} node.",
            remedy=f"take another name, or python -m dev.cluster delete --name {found.name}",
        )
    return found
