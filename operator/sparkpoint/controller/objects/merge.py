"""Laying one pod over another, as Kubernetes' own patches do: mappings by key, lists by name.

Knows nothing of Spark. What is laid over wins; what it does not mention stays, and a null in it
says nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["KEYED", "filled", "merge"]

_Identity = Callable[[Any], Any]


def _by(*fields: str) -> _Identity:
    def identity(item: Any) -> Any:
        if not isinstance(item, Mapping):
            return repr(item)
        return tuple(item.get(field) for field in fields)

    return identity


KEYED: Final[Mapping[str, _Identity]] = {
    "containers": _by("name"),
    "env": _by("name"),
    "envFrom": repr,
    "ephemeralContainers": _by("name"),
    "hostAliases": _by("ip"),
    "imagePullSecrets": _by("name"),
    "initContainers": _by("name"),
    "ports": _by("containerPort", "protocol"),
    "resourceClaims": _by("name"),
    "schedulingGates": _by("name"),
    "tolerations": repr,
    "topologySpreadConstraints": _by("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": _by("devicePath"),
    "volumeMounts": _by("mountPath"),
    "volumes": _by("name"),
}
"""Lists whose items have a name, or are the same if they are equal. All others are replaced."""

_DEEP: Final = ("containers", "initContainers", "ephemeralContainers")
"""Lists whose items are merged in turn. An item of any other is one thing, of one kind: half a
Secret and half a ConfigMap make no volume."""

_WHOLE: Final = (
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
)
"""Mappings that are one thing, too: an `httpGet` and an `exec` make no probe."""


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `over` laid over it; neither is changed.

    Containers of `over` come first, in its order. In all other lists they come last: a variable may
    then refer to those before it, and an init container finds what the others have prepared.
    """
    merged = {key: value for key, value in base.items() if value is not None}
    for key, value in over.items():
        if value is None:
            continue
        merged[key] = _laid_over(key, merged.get(key), value)
    return merged


def filled(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Without the lists that have nothing in them."""
    return {key: value for key, value in fields.items() if value != []}


def _laid_over(key: str, base: Any, over: Any) -> Any:
    if key in KEYED and isinstance(base, list) and isinstance(over, list):
        return _lists(key, base, over)
    if isinstance(over, Mapping):
        under = base if isinstance(base, Mapping) and key not in _WHOLE else {}
        return merge(under, over)
    return over


def _lists(key: str, base: list[Any], over: list[Any]) -> list[Any]:
    identity = KEYED[key]
    known = {identity(item): item for item in base}
    laid = [_item(key, known.get(identity(item)), item) for item in over]
    named = {identity(item) for item in over}
    rest = [item for item in base if identity(item) not in named]
    return laid + rest if key == "containers" else rest + laid


def _item(key: str, base: Any, over: Any) -> Any:
    if key in _DEEP and isinstance(base, Mapping) and isinstance(over, Mapping):
        return merge(base, over)
    return over
