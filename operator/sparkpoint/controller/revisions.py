"""Revisions: which part of a spec a change concerns, by digests of its parts.

Only what a driver is built from counts. A field that is as if it were left out does not: a new
field with a default must not restart every job of a cluster when the operator is upgraded.
"""

import hashlib
import json
from enum import Enum
from typing import Any, Final

from sparkpoint.api.job import JobSpec
from sparkpoint.api.policies import StateProvider
from sparkpoint.lifecycle.record import Revision

__all__ = ["Part", "effective", "part_of", "revision_of"]

_LENGTH: Final = 10
_Path = tuple[str, ...]
_PARTITIONS: Final = ("state", "partitions")


class Part(Enum):
    """What a field is part of."""

    CODE = "code"
    """The driver: an upgrade."""
    SIZE = "size"
    """The executors' number and place: a rescaling."""
    STATE = "state"
    """What a checkpoint has fixed."""
    NAME = "name"
    """Nothing but the name of the revision: a restart."""
    LIVE = "live"
    """No driver at all: it holds from the next decision on."""


_PARTS: Final[dict[_Path, Part]] = {
    (): Part.CODE,
    ("executor",): Part.SIZE,
    # Read by the user's own functions: not only how many they are, but what they do.
    ("executor", "env"): Part.CODE,
    ("executor", "envFrom"): Part.CODE,
    ("state", "provider"): Part.STATE,
    _PARTITIONS: Part.STATE,
    ("state", "formatVersion"): Part.STATE,
    ("restartNonce",): Part.NAME,
    ("checkpoint", "adopt"): Part.LIVE,
    ("checkpoint", "adoptAs"): Part.LIVE,
    ("checkpoint", "onDelete"): Part.LIVE,
    # A stop is told how long it may take when it is asked for.
    ("checkpoint", "timeout"): Part.LIVE,
    ("restart",): Part.LIVE,
    ("restoreFrom",): Part.LIVE,
    ("savepoints",): Part.LIVE,
    ("suspend",): Part.LIVE,
    ("upgrade",): Part.LIVE,
}
"""The longest path that a field begins with decides."""

_MEANT: Final[dict[_Path, object]] = {
    ("state", "provider"): StateProvider.ROCKSDB.value,
    _PARTITIONS: 200,
    ("state", "changelog"): True,
}
"""What leaving a field out means for a new job: saying it changes nothing."""


def part_of(path: _Path) -> Part:
    """What the field at this path of keys is part of."""
    known = [path[:length] for length in range(len(path), -1, -1)]
    return next(_PARTS[each] for each in known if each in _PARTS)


def revision_of(spec: JobSpec, *, script_digest: str | None) -> Revision:
    """What a driver of this spec is built from; the digest is of a script from a ConfigMap."""
    parts: dict[Part, list[tuple[_Path, object]]] = {part: [] for part in Part}
    for path, value in _fields(_said(spec), ()):
        if path not in _MEANT or value != _MEANT[path]:
            parts[part_of(path)].append((path, value))
    code = _digest(parts[Part.CODE], script_digest)
    size, state = _digest(parts[Part.SIZE]), _digest(parts[Part.STATE])
    fixed = _digest([each for each in parts[Part.STATE] if each[0] != _PARTITIONS])
    name = _digest(code, size, state, parts[Part.NAME])
    return Revision(
        name=name,
        code=code,
        size=size,
        state=state,
        fixed=fixed,
        partitions=spec.state.partitions,
        spark=spec.spark_version,
    )


def effective(stored: JobSpec, current: JobSpec) -> JobSpec:
    """A revision as it was kept, with those of today's fields that no revision holds.

    A repository or a timeout that was changed since is the one to use, also for an old revision.
    """
    kept, now = _whole(stored), _whole(current)
    live = [path for path, part in _PARTS.items() if part is Part.LIVE]
    for path in live:
        *above, key = path
        source, target = now, kept
        for step in above:
            source, target = source[step], target[step]
        target.pop(key, None)
        if key in source:
            target[key] = source[key]
    return JobSpec.model_validate(kept)


def _said(spec: JobSpec) -> dict[str, Any]:
    return spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _whole(spec: JobSpec) -> dict[str, Any]:
    return spec.model_dump(mode="json", by_alias=True, exclude_none=True)


def _fields(value: dict[str, Any], above: _Path) -> list[tuple[_Path, object]]:
    """Path and value, sorted, down to where a part is decided; what lies deeper is one value."""
    found: list[tuple[_Path, object]] = []
    for key, inner in sorted(value.items()):
        path = (*above, key)
        if isinstance(inner, dict) and any(known[: len(path)] == path for known in _PARTS):
            found += _fields(inner, path)
        else:
            found.append((path, inner))
    return found


def _digest(*content: object) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:_LENGTH]
