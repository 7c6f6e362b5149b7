"""The operator as plain Kubernetes objects, for the demo and the tests."""

import json
from pathlib import Path
from typing import Any

from dev.cache import digest_of
from dev.cluster.lifecycle import Cluster

__all__ = ["NAMESPACE", "install_operator", "operator_objects"]

NAMESPACE = "sparkpoint-system"
_CRDS = Path(__file__).parent.parent / "crds"
_IMAGE = "sparkpoint.dev/operator:dev"
_NAME = "sparkpoint-operator"

Objects = list[dict[str, Any]]

_ALL = ["get", "list", "watch", "create", "patch", "update", "delete"]
_RULES = [
    {"apiGroups": ["sparkpoint.dev"], "resources": ["*"], "verbs": _ALL},
    {
        "apiGroups": [""],
        "resources": ["pods", "configmaps", "secrets", "services"],
        "verbs": _ALL,
    },
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": _ALL},
    {"apiGroups": ["apps"], "resources": ["controllerrevisions"], "verbs": _ALL},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": _ALL},
]


def operator_objects(arguments: list[str] | None = None) -> Objects:
    """Account, rights and Deployment; the CRDs are applied on their own."""
    account = {"kind": "ServiceAccount", "name": _NAME, "namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": _NAME, "namespace": NAMESPACE},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": _NAME},
            "rules": _RULES,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": _NAME},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": _NAME,
            },
            "subjects": [account],
        },
        _deployment(arguments or []),
    ]


def _deployment(arguments: list[str]) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": _NAME}
    container = {
        "name": "operator",
        "image": _IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": ["python3", "-m", "sparkpoint.controller", *arguments],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": _NAME, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                # The image keeps its name when the code changes; the pod must not.
                "metadata": {"labels": labels, "annotations": {"sparkpoint.dev/code": _code()}},
                "spec": {
                    "serviceAccountName": _NAME,
                    "enableServiceLinks": False,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container],
                },
            },
        },
    }


def _code() -> str:
    return digest_of([Path(__file__).parent.parent / "operator" / "sparkpoint"])


def install_operator(cluster: Cluster, arguments: list[str] | None = None) -> None:
    """CRDs first, then the operator, and wait until it runs."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(_CRDS))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(_CRDS))
    manifest = {"apiVersion": "v1", "kind": "List", "items": operator_objects(arguments)}
    cluster.kubectl("apply", "-f", "-", text=json.dumps(manifest))
    status = ("rollout", "status", f"deployment/{_NAME}", "--timeout=120s")
    cluster.kubectl("-n", NAMESPACE, *status, timeout=150)
