"""The ConfigMap of an attempt, or of a worker that runs Spark, and how its files are mounted."""

import json
from collections.abc import Mapping
from typing import Any

from sparkpoint.controller.objects.manifest import Manifest, Owner, manifest
from sparkpoint.controller.objects.places import CONF_FILE
from sparkpoint.controller.objects.properties import render_properties

__all__ = ["as_json", "conf_mounts", "conf_volume", "config_map", "file_name"]

_VOLUME = "sparkpoint-conf"


def config_map(
    owner: Owner,
    conf: Mapping[str, str],
    files: Mapping[str, str],
    *,
    name: str,
    labels: Mapping[str, str],
) -> Manifest:
    """Spark's configuration and further files; it never changes, as no pod would notice."""
    data = {file_name(CONF_FILE): render_properties(conf), **files}
    return manifest(owner, "v1", "ConfigMap", name=name, labels=labels, immutable=True, data=data)


def conf_volume(name: str) -> dict[str, Any]:
    """The volume with the files of a ConfigMap of this name."""
    return {"name": _VOLUME, "configMap": {"name": name}}


def conf_mounts(*paths: str) -> list[dict[str, Any]]:
    """Each file at its own path, so that what else is in that folder stays."""
    return [
        {"name": _VOLUME, "mountPath": path, "subPath": file_name(path), "readOnly": True}
        for path in paths
    ]


def file_name(path: str) -> str:
    """The key under which a file is kept."""
    return path.rpartition("/")[2]


def as_json(document: Manifest) -> str:
    """For people, too. Whoever reads YAML reads this."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
