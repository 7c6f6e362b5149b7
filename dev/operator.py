"""The operator in a cluster of the tests: our chart, with this checkout's image."""

import json
from pathlib import Path
from typing import Any

from dev.cache import digest_of
from dev.cluster.lifecycle import Cluster
from dev.helm import rendered

__all__ = ["NAMESPACE", "development_values", "install_operator", "operator_objects"]

NAMESPACE = "sparkpoint-system"
_ROOT = Path(__file__).parent.parent
_CRDS = _ROOT / "crds"
_RELEASE = "sparkpoint"
_NAME = f"{_RELEASE}-operator"

Objects = list[dict[str, Any]]


def development_values() -> dict[str, Any]:
    """What the chart is told here: the image that `make images` makes."""
    return {
        "image": {"repository": "sparkpoint.dev/operator", "tag": "dev"},
        # The image keeps its name when the code changes; the pod must not.
        "podAnnotations": {"sparkpoint.dev/code": digest_of([_ROOT / "operator" / "sparkpoint"])},
        "log": {"format": "console"},
    }


def operator_objects(arguments: list[str] | None = None) -> Objects:
    """Namespace, account, rights and Deployment; the CRDs are applied on their own."""
    values = {
        **development_values(),
        "crds": {"install": False},
        "extraArgs": arguments or [],
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    return [namespace, *rendered(_RELEASE, NAMESPACE, values)]


def install_operator(cluster: Cluster, arguments: list[str] | None = None) -> None:
    """CRDs first, then the operator, and wait until it runs.

    Rendered and applied, not installed as a release: a run that was killed half-way leaves no lock
    that a person must take away.
    """
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(_CRDS))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(_CRDS))
    manifest = {"apiVersion": "v1", "kind": "List", "items": operator_objects(arguments)}
    cluster.kubectl("apply", "-f", "-", text=json.dumps(manifest))
    status = ("rollout", "status", f"deployment/{_NAME}", "--timeout=120s")
    cluster.kubectl("-n", NAMESPACE, *status, timeout=150)
