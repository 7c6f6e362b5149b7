"""Helm, built from the pinned module of `dev/go-helm`, and our chart seen through it.

Apart from `dev/cluster/programs.py`: a change of one must not build the other anew.
"""

import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from dev.cache import cache_root, cached, digest_of, require_free_space
from dev.cluster.lifecycle import Cluster
from dev.console import Problem, run_command, run_program, step

__all__ = ["CHART", "HELM_VERSION", "helm", "helm_binary", "lint_chart", "rendered"]

CHART = Path(__file__).parent.parent / "helm" / "sparkpoint"
_GO_MODULE = Path(__file__).parent / "go-helm"
_COMMAND = "helm.sh/helm/v4/cmd/helm"


def _helm_version() -> str:
    required = re.search(r"helm\.sh/helm/v4 (v\S+)", (_GO_MODULE / "go.mod").read_text())
    if required is None:
        raise Problem("dev/go-helm/go.mod does not name Helm.", remedy="git checkout dev/go-helm")
    return required.group(1)


HELM_VERSION = _helm_version()


def helm_binary() -> Path:
    """Helm; built on the first call. Without Go, the one on PATH, whichever it is."""
    key = f"{HELM_VERSION}-{platform.machine()}-{digest_of([_GO_MODULE])}"
    if shutil.which("go") is None and not (cache_root() / "helm" / key).exists():
        return _installed()
    return cached("helm", key, _build) / "helm"


def _installed() -> Path:
    found = shutil.which("helm")
    if found is None:
        raise Problem(
            "Neither Go nor Helm is on PATH; the chart is rendered with Helm.",
            remedy="install Go 1.26 or newer (go.dev/dl), from which it is built, or Helm itself.",
        )
    return Path(found)


def _build(folder: Path) -> None:
    require_free_space(folder, gib=3, purpose="Building Helm")
    build = ("go", "build", "-trimpath", "-buildvcs=false")
    version = f"-X helm.sh/helm/v4/internal/version.version={HELM_VERSION}"
    with step(f"Building Helm {HELM_VERSION}", usually="3 minutes on 2 cores, once"):
        run_program(
            [*build, f"-ldflags=-s -w {version}", "-o", f"{folder}/helm", _COMMAND],
            cwd=_GO_MODULE,
            env={**os.environ, "CGO_ENABLED": "0"},
            failed="Building Helm failed",
            remedy="check that the Go module proxy is reachable, then run the same command again.",
        )


def helm(
    *arguments: str | Path,
    on: Cluster | None = None,
    text: str | None = None,
    timeout: float = 120,
) -> str:
    """Run Helm, on a cluster if one is named; Problem with its words if it fails."""
    return run_program(
        [helm_binary(), *arguments, *_flags(on)],
        env=_environment(on),
        text=text,
        timeout=timeout,
        failed=f"helm {arguments[0]} failed",
        remedy="mend what Helm says.",
    )


def _flags(cluster: Cluster | None) -> list[str]:
    if cluster is None:
        return []
    config = [f"--kubeconfig={cluster.kubeconfig}"] if cluster.kubeconfig else []
    return [*config, f"--kube-context={cluster.context}"]


def _environment(cluster: Cluster | None) -> Mapping[str, str]:
    """Without the person's own plugins, repositories and settings."""
    home = cache_root() / "tools" / "helm-home"
    own = {f"HELM_{part}_HOME": str(home / part.lower()) for part in ("CACHE", "CONFIG", "DATA")}
    if cluster is not None and cluster.layout is not None:
        # The node's addresses are on this machine; a proxy knows nothing of them.
        own |= {"NO_PROXY": "*", "no_proxy": "*"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HELM_")}
    return {**kept, **own}


def rendered(release: str, namespace: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The chart's objects with these values, without what Helm runs at certain events."""
    named = ("template", release, CHART, "--namespace", namespace, "--no-hooks")
    text = helm(*named, "--values", "-", text=yaml.safe_dump(dict(values)))
    return [body for body in yaml.safe_load_all(text) if body]


def lint_chart() -> None:
    """What Helm itself finds wrong with the chart."""
    helm("lint", "--strict", "--quiet", CHART)


if __name__ == "__main__":
    # `python -m dev.helm ARGUMENTS`: the pinned Helm; without arguments, it lints the chart.
    run_command(lambda: print(helm(*sys.argv[1:])) if sys.argv[1:] else lint_chart())
