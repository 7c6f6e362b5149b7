"""What the pods of a job have in common: who they run as, what they mount, what they may use."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from sparkpoint.api.job import JobSpec
from sparkpoint.api.pods import Driver, Executor
from sparkpoint.controller.objects.manifest import Manifest, Owner, manifest
from sparkpoint.controller.objects.merge import merge
from sparkpoint.controller.objects.places import LOCAL_DIRECTORY, WORK_DIRECTORY

__all__ = [
    "HARDENED",
    "build_pod",
    "default_spec",
    "image_fields",
    "overhead_mebibytes",
    "resources",
    "scratch_mounts",
    "scratch_volumes",
    "storage_mounts",
    "storage_volumes",
]

_USER: Final = 185
"""Of the runtime image."""
_LEAST_OVERHEAD: Final = 384
_OVERHEAD_FACTOR: Final = 0.4
"""As Spark reckons for Python, whose processes live outside of the heap."""

_SCRATCH: Final = {WORK_DIRECTORY: "sparkpoint-work", LOCAL_DIRECTORY: "sparkpoint-local"}

HARDENED: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
"""With the pod's part below, what the `restricted` level of pod security asks for."""


def default_spec(container: str) -> dict[str, Any]:
    """What a pod is unless its template says otherwise."""
    return {
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            # A volume with millions of state files is not walked through at every start.
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{"name": container, "securityContext": dict(HARDENED)}],
    }


def build_pod(
    owner: Owner,
    *layers: Mapping[str, Any],
    name: str,
    labels: Mapping[str, str],
) -> Manifest:
    """A pod from layers of metadata and spec, the later ones over the earlier ones."""
    pod: dict[str, Any] = {}
    for layer in (*layers, manifest(owner, "v1", "Pod", name=name, labels=labels)):
        pod = merge(pod, layer)
    # Of its own: whoever changes the pod changes neither the spec nor our constants.
    return copy.deepcopy({key: pod[key] for key in ("apiVersion", "kind", "metadata", "spec")})


def image_fields(spec: JobSpec) -> dict[str, Any]:
    """Which image a container runs."""
    return {"image": spec.image, "imagePullPolicy": spec.image_pull_policy.value}


def resources(role: Driver | Executor) -> dict[str, Any]:
    """What a pod of this role asks for; memory is a limit, too, as nothing good comes beyond it."""
    memory = f"{role.memory.mebibytes + overhead_mebibytes(role)}Mi"
    limits = {"memory": memory, **({"cpu": role.core_limit} if role.core_limit else {})}
    return {
        "requests": {"cpu": role.core_request or str(role.cores), "memory": memory},
        "limits": limits,
    }


def overhead_mebibytes(role: Driver | Executor) -> int:
    """Memory besides the heap."""
    if role.memory_overhead is not None:
        return role.memory_overhead.mebibytes
    return max(_LEAST_OVERHEAD, int(role.memory.mebibytes * _OVERHEAD_FACTOR))


def storage_volumes(spec: JobSpec) -> list[dict[str, Any]]:
    """The job's claims, each once."""
    return [
        {"name": name, "persistentVolumeClaim": {"claimName": claim}}
        for claim, name in _volume_names(spec).items()
    ]


def storage_mounts(spec: JobSpec) -> list[dict[str, Any]]:
    """Where the claims appear; at the same paths in every pod of the job."""
    names = _volume_names(spec)
    return [
        {
            "name": names[volume.claim_name],
            "mountPath": volume.mount_path,
            **({"subPath": volume.sub_path} if volume.sub_path else {}),
            **({"readOnly": True} if volume.read_only else {}),
        }
        for volume in spec.storage.volumes
    ]


def _volume_names(spec: JobSpec) -> dict[str, str]:
    """Claim -> volume; the claim's own name may be too long for a volume."""
    claims = dict.fromkeys(volume.claim_name for volume in spec.storage.volumes)
    return {claim: f"sparkpoint-data-{index}" for index, claim in enumerate(claims)}


def scratch_volumes(*directories: str) -> list[dict[str, Any]]:
    """Room to work in, gone with the pod."""
    return [{"name": _SCRATCH[directory], "emptyDir": {}} for directory in directories]


def scratch_mounts(*directories: str) -> list[dict[str, Any]]:
    """Where that room is."""
    return [{"name": _SCRATCH[directory], "mountPath": directory} for directory in directories]
