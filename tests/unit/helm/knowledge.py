"""What Kubernetes knows of its own kinds: fields that do not exist would be dropped in silence."""

import re
from collections.abc import Iterator
from typing import Any

from kubernetes.client import models

__all__ = ["unknown_fields"]

_MODELS = {
    ("v1", "ConfigMap"): "V1ConfigMap",
    ("v1", "Pod"): "V1Pod",
    ("v1", "Service"): "V1Service",
    ("v1", "ServiceAccount"): "V1ServiceAccount",
    ("apps/v1", "Deployment"): "V1Deployment",
    ("policy/v1", "PodDisruptionBudget"): "V1PodDisruptionBudget",
    ("networking.k8s.io/v1", "NetworkPolicy"): "V1NetworkPolicy",
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): "V1ClusterRole",
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): "V1ClusterRoleBinding",
    ("rbac.authorization.k8s.io/v1", "Role"): "V1Role",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): "V1RoleBinding",
    # Its schemas hold names of their own, so that no model can know them.
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): None,
    ("monitoring.coreos.com/v1", "ServiceMonitor"): None,
    ("monitoring.coreos.com/v1", "PodMonitor"): None,
    ("monitoring.coreos.com/v1", "PrometheusRule"): None,
}
_PLAIN: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "object": (str, int, dict, list),
}


def unknown_fields(body: dict[str, Any]) -> list[str]:
    """Paths of what is no field of this kind, or of another type; KeyError for a kind of none."""
    model = _MODELS[body["apiVersion"], body["kind"]]
    return list(_strange(body, model, "")) if model else []


def _strange(value: Any, kind: str, path: str) -> Iterator[str]:
    inner = re.fullmatch(r"(List|Dict)\[(?:str, )?(.+)\]", kind)
    if inner and inner[1] == "List":
        if not isinstance(value, list):
            yield path
            return
        for index, item in enumerate(value):
            yield from _strange(item, inner[2], f"{path}[{index}]")
    elif inner:
        for name, item in value.items():
            yield from _strange(item, inner[2], f"{path}.{name}")
    elif kind in _PLAIN:
        if not isinstance(value, _PLAIN[kind]):
            yield path
    else:
        yield from _strange_parts(value, getattr(models, kind), path)


def _strange_parts(value: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    kinds = {model.attribute_map[name]: kind for name, kind in model.openapi_types.items()}
    for name, item in value.items():
        if name not in kinds:
            yield f"{path}.{name}"
        else:
            yield from _strange(item, kinds[name], f"{path}.{name}")
