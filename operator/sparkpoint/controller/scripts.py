"""What a job's script is, as far as it can be told from here: it decides whether code changed."""

import hashlib
from dataclasses import dataclass
from sys import intern

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.cluster import CONFIG_MAPS, Cluster, find

__all__ = ["ScriptSight", "look_at_script"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSight:
    """The script's digest, or why it cannot be had."""

    text: str | None = None
    """None: it is part of the image, or in a place that only the job can read."""
    problem: str = ""

    @property
    def digest(self) -> str | None:
        """The same text has the same digest."""
        return hashlib.sha256(self.text.encode()).hexdigest() if self.text is not None else None


async def look_at_script(cluster: Cluster, namespace: str, spec: JobSpec) -> ScriptSight:
    """Look, if it is in a ConfigMap: that can change without the spec."""
    wanted = spec.application.script.config_map
    if wanted is None:
        return ScriptSight()
    body = await find(cluster, CONFIG_MAPS, namespace, wanted.name)
    if body is None:
        return ScriptSight(
            problem=f"spec.application.script.configMap.name: there is no ConfigMap {wanted.name} "
            f"in namespace {namespace}: make it, or correct the name"
        )
    text = (body.get("data") or {}).get(wanted.key)
    if text is None:
        return ScriptSight(
            problem=f"spec.application.script.configMap.key: ConfigMap {wanted.name} has no key "
            f"{wanted.key}: add it, or correct the key"
        )
    # Many jobs may have the same script, and each its revisions of it.
    return ScriptSight(text=intern(str(text)))
