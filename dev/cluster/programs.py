"""The programs of a node: Kubernetes from pinned Go modules, containerd and others from Debian.

Nothing is installed on the machine: Debian's packages are unpacked into the cache, because
installing containerd would replace the one of a Docker that is already there.
"""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from dev.cache import cached, digest_of, is_cached, require_free_space
from dev.console import Problem, run_program, step

__all__ = [
    "GO_REMEDY",
    "KUBERNETES_VERSION",
    "debian_tools",
    "has_kubernetes_binaries",
    "kubernetes_binaries",
    "tool_environment",
]

GO_REMEDY = "install Go 1.26 or newer (go.dev/dl), or name a cluster with --context."

_GO_MODULE = Path(__file__).parent.parent / "go"
_COMMANDS = (
    "k8s.io/kubernetes/cmd/kube-apiserver",
    "k8s.io/kubernetes/cmd/kube-controller-manager",
    "k8s.io/kubernetes/cmd/kube-scheduler",
    "k8s.io/kubernetes/cmd/kubelet",
    "k8s.io/kubernetes/cmd/kube-proxy",
    "k8s.io/kubernetes/cmd/kubectl",
    "./etcd",
    "./coredns",
    "./pause",
)
_PACKAGES = (
    "containerd",
    "runc",
    "containernetworking-plugins",
    "conntrack",
    "debootstrap",
    "iproute2",
    "iptables",
    "libbpf1",
    "libbsd0",
    "libcap2",
    "libelf1",
    "libip4tc2",
    "libip6tc2",
    "libmd0",
    "libmnl0",
    "libnetfilter-conntrack3",
    "libnfnetlink0",
    "libnftnl11",
    "libseccomp2",
    "libxtables12",
)


def _kubernetes_version() -> str:
    required = re.search(r"k8s\.io/kubernetes (v\S+)", (_GO_MODULE / "go.mod").read_text())
    if required is None:
        raise Problem(
            "dev/go/go.mod does not name k8s.io/kubernetes.", remedy="git checkout dev/go"
        )
    return required.group(1)


KUBERNETES_VERSION = _kubernetes_version()


def kubernetes_binaries() -> Path:
    """The folder with etcd, CoreDNS and Kubernetes' programs; built on the first call."""
    return cached("kubernetes", _kubernetes_key(), _build_kubernetes)


def has_kubernetes_binaries() -> bool:
    """Whether they were built before."""
    return is_cached("kubernetes", _kubernetes_key())


def _kubernetes_key() -> str:
    return f"{KUBERNETES_VERSION}-{platform.machine()}-{digest_of([_GO_MODULE])}"


def _build_kubernetes(folder: Path) -> None:
    if shutil.which("go") is None:
        raise Problem(
            "Go is not on PATH; the local Kubernetes is built from Go modules.",
            remedy=GO_REMEDY,
        )
    require_free_space(folder, gib=6, purpose="Building Kubernetes")
    version = "-X k8s.io/component-base/version.git{0} -X k8s.io/client-go/pkg/version.git{0}"
    flags = version.format(f"Version={KUBERNETES_VERSION}")
    command = ["go", "build", "-trimpath", "-buildvcs=false", f"-ldflags=-s -w {flags}"]
    with step(f"Building Kubernetes {KUBERNETES_VERSION}", usually="8 minutes on 2 cores, once"):
        run_program(
            [*command, "-o", f"{folder}/", *_COMMANDS],
            cwd=_GO_MODULE,
            env={**os.environ, "CGO_ENABLED": "0"},
            failed="Building Kubernetes failed",
            remedy="check that the Go module proxy is reachable, then run the same command again.",
        )


def debian_tools() -> Path:
    """The root of an unpacked set of Debian packages: containerd, runc, CNI plugins, iptables."""
    return cached("debian", f"{_release()}-{digest_of(_PACKAGES)}", _unpack_packages)


def _release() -> str:
    """Which distribution and architecture the packages are from."""
    names = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
    return f"{names.get('VERSION_CODENAME', 'unknown')}-{platform.machine()}"


def _unpack_packages(folder: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise Problem(
            "There is no apt-get here; the local cluster takes containerd from Debian's packages.",
            remedy="use a Debian or Ubuntu machine, or name an existing cluster with --context.",
        )
    downloads = folder / "downloads"
    downloads.mkdir()
    with step("Fetching containerd, runc, CNI plugins and iptables from Debian", usually="10 s"):
        _apt("update", "-qq", cwd=downloads)
        _apt("download", "-qq", *_PACKAGES, cwd=downloads)
        for package in sorted(downloads.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
    shutil.rmtree(downloads)
    for name in ("iptables", "iptables-save", "iptables-restore"):
        _link_iptables(folder, name)


def _link_iptables(folder: Path, name: str) -> None:
    """Do what Debian's alternatives would: the plain names run the nft variant."""
    for family in (name, name.replace("iptables", "ip6tables")):
        (folder / "usr/sbin" / family).symlink_to("xtables-nft-multi")


def _apt(*arguments: str, cwd: Path) -> None:
    run_program(
        ["apt-get", *arguments],
        cwd=cwd,
        failed=f"apt-get {arguments[0]} failed",
        remedy="check that Debian's mirror is reachable, then run the same command again.",
    )


def tool_environment() -> Mapping[str, str]:
    """Environment in which both sets of programs are found, with their libraries."""
    tools, binaries = debian_tools(), kubernetes_binaries()
    libraries = f"usr/lib/{platform.machine()}-linux-gnu"
    path = [binaries, tools / "usr/sbin", tools / "usr/bin", tools / "sbin", tools / "bin"]
    return {
        **os.environ,
        "PATH": ":".join(
            [*map(str, path), os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")]
        ),
        "LD_LIBRARY_PATH": ":".join(
            filter(
                None,
                [
                    str(tools / libraries),
                    str(tools / libraries.removeprefix("usr/")),
                    os.environ.get("LD_LIBRARY_PATH"),
                ],
            )
        ),
        # The node's addresses are on this machine; a proxy knows nothing of them.
        "NO_PROXY": "*",
        "no_proxy": "*",
        "XTABLES_LIBDIR": str(tools / libraries / "xtables"),
    }
