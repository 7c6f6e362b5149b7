"""Objects as the watches showed them last, by the job that they belong to.

A cache is never proof that something is not there: who needs that asks the API server. Own writes
are put in as well, so that a watch that lags behind does not bring an older version back.
"""

from collections.abc import Iterator
from sys import intern
from typing import Any, Final

from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import Key

__all__ = ["ObjectCache"]

_WORD: Final = 100
"""Characters: what is longer is nobody else's word."""
_UNIQUE: Final = frozenset({"resourceVersion", "uid", "containerID", "time"})
_MOMENTS: Final = ("At", "Time", "Timestamp")
"""How the names of fields end that hold a time. What such fields say is new at every change: early
CPython 3.12 never lets go of a word (python/cpython#113993), and days of changes would add up."""


class ObjectCache:
    """The newest version of each object, by owner and name."""

    def __init__(self) -> None:
        self._objects: dict[Key, dict[str, Object]] = {}
        self._together: dict[Key, tuple[Object, ...]] = {}

    def put(self, owner: Key, body: Object) -> bool:
        """Keep it, unless this version or a newer one is known; whether it was kept."""
        name = metadata(body)["name"]
        known = self.get(owner, name)
        if known is not None and _version(known) >= _version(body) > 0:
            return False
        self._objects.setdefault(owner, {})[name] = _lean(body)
        self._together.pop(owner, None)
        return True

    def remove(self, owner: Key, body: Object) -> None:
        """Forget it, unless another object of that name has taken its place."""
        known = self.get(owner, metadata(body)["name"])
        if known is not None and metadata(known).get("uid") == metadata(body).get("uid"):
            self.drop(owner, metadata(body)["name"])

    def drop(self, owner: Key, name: str) -> None:
        """Forget what is known under this name, because it turned out to be old."""
        known = self._objects.get(owner, {})
        known.pop(name, None)
        self._together.pop(owner, None)
        if not known:
            self._objects.pop(owner, None)

    def get(self, owner: Key, name: str) -> Object | None:
        """What is known under this name."""
        return self._objects.get(owner, {}).get(name)

    def of(self, owner: Key) -> tuple[Object, ...]:
        """All that is known of this owner; the very same tuple until one of them changes."""
        if owner not in self._objects:
            return ()
        if owner not in self._together:
            self._together[owner] = tuple(self._objects[owner].values())
        return self._together[owner]

    def __len__(self) -> int:
        """How many owners are known."""
        return len(self._objects)

    def owners(self) -> Iterator[Key]:
        """Whose objects are known."""
        return iter(tuple(self._objects))


def _lean(value: Any) -> Any:
    """The same with one copy of each word: names of fields, and what thousands of objects say alike
    in them, are two thirds of parsed JSON."""
    if isinstance(value, str):
        return intern(value) if len(value) <= _WORD else value
    if isinstance(value, dict):
        return {intern(name): _lean_field(name, each) for name, each in value.items()}
    if isinstance(value, list):
        return [_lean(each) for each in value]
    return value


def _lean_field(name: str, value: Any) -> Any:
    unique = isinstance(value, str) and (name in _UNIQUE or name.endswith(_MOMENTS))
    return value if unique else _lean(value)


def _version(body: Object) -> int:
    """Versions grow; Kubernetes lets them be compared as numbers since 1.35, and always did so."""
    text = str(metadata(body).get("resourceVersion") or "0")
    return int(text) if text.isdecimal() else 0
