"""Specs as data: what differs between two, and the patch that makes one into the other. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sparkpoint.api.validation import parse_spec

__all__ = [
    "LIVE",
    "AssignmentError",
    "Difference",
    "differences",
    "differences_as_written",
    "merged",
    "patch_between",
    "put",
    "revised",
    "without_secrets",
]

Document = dict[str, Any]

LIVE: Final[tuple[tuple[str, ...], ...]] = (
    ("checkpoint", "adopt"),
    ("checkpoint", "adoptAs"),
    ("checkpoint", "onDelete"),
    ("checkpoint", "timeout"),
    ("restart",),
    ("restoreFrom",),
    ("savepoints",),
    ("suspend",),
    ("upgrade",),
)
"""Fields that belong to no revision: a rollback leaves them as they are."""

_WORDS: Final = r"secret|password|passwd|token|credential|access[._-]?key"
_SENSITIVE: Final = re.compile(rf"(?i:{_WORDS})")
_ASSIGNED: Final = re.compile(rf"(?i:{_WORDS})[^\s=]*\s*=")
"""`--password=…`, `jdbc:…?password=…`, `-Dstore.token=…`: a secret within a text."""
_FIELD: Final = re.compile(r"[^.\[\]]+(\.[^.\[\]]+|\[[^\]]+\])*")
_STEPS: Final = re.compile(r"([^.\[\]]+)|\[([^\]]+)\]")
_HIDDEN: Final = "(hidden)"
_LONGEST: Final = 100
_NAMING: Final = ("secretName", "imagePullSecrets", "secretRef", "secretKeyRef")
"""Fields that hold the name of a Secret, which is none."""


class AssignmentError(Exception):
    """A `--set` that names no field of a spec."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that changes."""

    path: str
    key: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.path}: {self._text(self.old)} -> {self._text(self.new)}"

    def document(self) -> Document:
        """The same for programs; as little of a secret."""
        return {"path": self.path, "old": self._safe(self.old), "new": self._safe(self.new)}

    def _safe(self, value: Any) -> Any:
        return without_secrets(value, "" if self.key in _NAMING else self.key)

    def _text(self, value: Any) -> str:
        if value is None:
            return "(not set)"
        text = json.dumps(self._safe(value), ensure_ascii=False)
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def without_secrets(value: Any, name: str) -> Any:
    """With what looks like a secret by the name of its key, or by what is before it, hidden."""
    if isinstance(value, Mapping):
        # An environment variable is named by the field next to its value.
        label = str(value.get("name", "")) if "value" in value else ""
        return {
            key: inner if key in _NAMING else without_secrets(inner, f"{label} {key}")
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        before = ["", *value]
        return [
            _HIDDEN if _announces_a_secret(former) else without_secrets(inner, name)
            for former, inner in zip(before, value, strict=False)
        ]
    if isinstance(value, str) and (_SENSITIVE.search(name) or _ASSIGNED.search(value)):
        return _HIDDEN
    return value


def _announces_a_secret(item: object) -> bool:
    """`--password`, whose value is the next item."""
    return (
        isinstance(item, str)
        and item.startswith("-")
        and "=" not in item
        and _SENSITIVE.search(item) is not None
    )


def revised(stored: Document, current: Document) -> Document:
    """The spec of a revision, with those of today's fields that belong to no revision.

    Both as a whole, with all defaults said, so that they can be compared.
    """
    target, now = _whole(stored), _whole(current)
    for path in LIVE:
        source: Any = now
        for key in path:
            source = source.get(key) if isinstance(source, Mapping) else None
        _set(target, path, source)
    return target


def _set(target: Document, path: Sequence[str], value: Any) -> None:
    *above, key = path
    for step in above:
        target = target.setdefault(step, {})
    target.pop(key, None)
    if value is not None:
        target[key] = value


def _whole(spec: Document) -> Document:
    """With all defaults said; InvalidResourceError if it has what this version does not know."""
    return parse_spec(spec).model_dump(mode="json", by_alias=True, exclude_none=True)


def patch_between(current: Document, wanted: Document) -> Document:
    """The merge patch that makes the one into the other: only what differs."""
    return _patch(_whole(current), _whole(wanted))


def _patch(old: Document, new: Document) -> Document:
    patch: Document = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            inner = _patch(dict(before), dict(value))
            if inner:
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch


def merged(spec: Document, patch: Document) -> Document:
    """What the API server makes of a merge patch."""
    after = dict(spec)
    for key, value in patch.items():
        if value is None:
            after.pop(key, None)
        elif isinstance(value, Mapping):
            before = after.get(key)
            after[key] = merged(before if isinstance(before, dict) else {}, dict(value))
        else:
            after[key] = value
    return after


def differences(current: Document, patch: Document) -> list[Difference]:
    """What a patch changes, field by field, for people."""
    return _differences(_whole(current), patch, "spec")


def differences_as_written(current: Document, wanted: Document) -> list[Difference]:
    """The same of specs that this version may not know; a default counts if only one says it."""
    return _differences(current, _patch(current, wanted), "spec")


def _differences(old: Any, patch: Document, above: str) -> list[Difference]:
    found: list[Difference] = []
    for key, value in sorted(patch.items()):
        path = f"{above}[{key}]" if "." in key or "/" in key else f"{above}.{key}"
        before = old.get(key) if isinstance(old, Mapping) else None
        if isinstance(value, Mapping):
            found += _differences(before, dict(value), path)
        else:
            found.append(Difference(path, key, before, value))
    return found


def put(spec: Document, assignment: str) -> Document:
    """The spec with one field set: `executor.instances=2`, `args[1]=--output=/b`.

    What is in brackets is the place in a list, or a key with dots in it; what is set by brackets is
    a text. Elsewhere the value is JSON, else a text. AssignmentError says what is wrong.
    """
    field, equals, text = assignment.partition("=")
    path = field.strip().removeprefix("spec.")
    if not equals or not _FIELD.fullmatch(path):
        raise AssignmentError(f"{assignment!r} is not FIELD=VALUE, such as executor.instances=2")
    steps: list[tuple[str, str]] = _STEPS.findall(path)
    keys = [(name or key) for name, key in steps]
    value: Any = text
    if steps[-1][0]:
        try:
            value = json.loads(text)
        except ValueError:
            value = text
    copy: Document = json.loads(json.dumps(spec))
    _assign(copy, keys, value, path)
    return copy


def _assign(target: Any, keys: Sequence[str], value: Any, path: str) -> None:
    for key in keys[:-1]:
        target = _step(target, key, path)
    last = keys[-1]
    if isinstance(target, list):
        place = _place(target, last, path)
        target[place : place + 1] = [value]
    elif isinstance(target, dict):
        target[last] = value
    else:
        raise AssignmentError(f"{path}: there is nothing that could have a field {last}")


def _step(target: Any, key: str, path: str) -> Any:
    if isinstance(target, list):
        place = _place(target, key, path)
        if place == len(target):
            target.append({})
        return target[place]
    if isinstance(target, dict):
        return target.setdefault(key, {})
    raise AssignmentError(f"{path}: there is nothing that could have a field {key}")


def _place(items: list[Any], key: str, path: str) -> int:
    """An item of the list, or the place after the last one."""
    if not key.isdecimal() or int(key) > len(items):
        raise AssignmentError(f"{path}: {key!r} is no place in a list of {len(items)}, from 0")
    return int(key)
