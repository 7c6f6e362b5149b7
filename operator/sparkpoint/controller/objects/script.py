"""How the user's script comes into a pod: with the image, from a ConfigMap, or from S3."""

from dataclasses import dataclass, field
from typing import Any, Final

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.objects.environment import environment, literal
from sparkpoint.controller.objects.places import SCRIPT_DIRECTORY, script_path
from sparkpoint.controller.objects.pods import HARDENED, image_fields, storage_mounts

__all__ = ["SCRIPT_KEY", "Delivery", "deliver"]

SCRIPT_KEY: Final = "script"
"""In the ConfigMap of an attempt: the script as it was when its revision was accepted."""

_VOLUME = "sparkpoint-script"
_FETCHER = "sparkpoint-fetch"
_FETCHER_RESOURCES: Final = {
    "requests": {"cpu": "50m", "memory": "64Mi"},
    "limits": {"memory": "256Mi"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What a pod needs to find the script at its place."""

    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    init_containers: list[dict[str, Any]] = field(default_factory=list)
    data: dict[str, str] = field(default_factory=dict)
    """For the ConfigMap of the attempt."""


def deliver(spec: JobSpec, text: str | None, *, config_map: str) -> Delivery:
    """The way to the script; `text` is its content, if that was kept with the revision.

    Without it, a script in a ConfigMap is taken as it is when the pod starts.
    """
    script = spec.application.script
    mount = {"name": _VOLUME, "mountPath": SCRIPT_DIRECTORY, "readOnly": True}
    if script.config_map is not None:
        kept = text is not None
        key = SCRIPT_KEY if kept else script.config_map.key
        source = {
            "name": config_map if kept else script.config_map.name,
            "items": [{"key": key, "path": script.config_map.key}],
        }
        return Delivery(
            volumes=[{"name": _VOLUME, "configMap": source}],
            mounts=[mount],
            data={SCRIPT_KEY: text} if text is not None else {},
        )
    if script.uri is not None:
        return Delivery(
            volumes=[{"name": _VOLUME, "emptyDir": {}}],
            mounts=[mount],
            init_containers=[_fetcher(spec, script.uri)],
        )
    return Delivery()


def _fetcher(spec: JobSpec, uri: str) -> dict[str, Any]:
    """Puts a script from S3 where the driver finds it, with the job's own credentials."""
    places = ("--uri", literal(uri), "--to", literal(script_path(spec)))
    return {
        "name": _FETCHER,
        **image_fields(spec),
        "args": ["python3", "-m", "sparkpoint.worker", "fetch", *places],
        **environment(spec, spec.driver),
        "resources": _FETCHER_RESOURCES,
        "securityContext": dict(HARDENED),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            *storage_mounts(spec),
            {"name": _VOLUME, "mountPath": SCRIPT_DIRECTORY},
        ],
    }
