"""Kubernetes in memory, as strict as the real one in what the operator relies on.

Versions, uids, generations, finalizers, preconditions, rights and the status as a subresource are
real; nothing else happens by itself: pods run and end as the kubelet of the tests says.
"""

import json
import marshal
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from sparkpoint.controller.cluster import Kind, Object, kind_of, metadata
from sparkpoint.controller.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    NotFoundError,
)
from sparkpoint.controller.rights import ANYWHERE, OWN_NAMESPACE, SERVED_NAMESPACES, group_of

_RIGHTS = {**SERVED_NAMESPACES, **OWN_NAMESPACE, **ANYWHERE}
_VERBS = {"replace": "update", "status": "update"}
_READS = ("get", "list", "ask")
T = TypeVar("T")


class CrashError(BaseException):
    """The operator dies here; no `except Exception` may hold it."""


class NoRightError(BaseException):
    """Nobody may answer this one: the operator asks for what it has no right to."""


class FakeCluster:
    """One API server."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._version = 0
        self._objects: dict[tuple[str, str | None, str], Object] = {}
        self.gone: dict[tuple[str, str], Object] = {}
        """What went with its last finalizer, as it was then, by kind and name."""
        self.calls: list[tuple[str, str, str]] = []
        """Verb, kind and name of every call, in order."""
        self.crash: tuple[int, bool] | None = None
        """Die at the call of this number: before its effect, or after it."""
        self.refuse: Callable[[str, Object | str], ClusterError | None] = lambda verb, what: None
        """Errors that the API server gives, by verb and body or name."""

    @property
    def writes(self) -> Sequence[tuple[str, str, str]]:
        """Calls that change something."""
        return [call for call in self.calls if call[0] not in _READS]

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object:
        """See Cluster."""
        return self._one("get", kind, name, lambda: self._found(kind, namespace, name))

    async def list(
        self, kind: Kind, namespace: str, *, labels: Mapping[str, str]
    ) -> Sequence[Object]:
        """See Cluster."""
        found: Sequence[Object] = self._call(
            "list", kind, "", lambda: self.present(kind, namespace, labels)
        )
        return found

    async def create(self, body: Object) -> Object:
        """See Cluster."""
        return self._one("create", kind_of(body), _name(body), lambda: self.add(body), body)

    async def replace(self, body: Object) -> Object:
        """See Cluster."""
        kind = kind_of(body)
        return self._one("replace", kind, _name(body), lambda: self._replaced(body), body)

    async def replace_status(self, body: Object) -> Object:
        """See Cluster."""
        kind = kind_of(body)
        return self._one("status", kind, _name(body), lambda: self._with_status(body), body)

    async def set_finalizers(self, body: Object, finalizers: Sequence[str]) -> Object:
        """See Cluster."""
        kind = kind_of(body)
        return self._one(
            "patch", kind, _name(body), lambda: self._with_finalizers(body, finalizers), body
        )

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """See Cluster."""
        self._call("delete", kind, name, lambda: self._deleted(kind, namespace, name, uid))

    def _one(
        self,
        verb: str,
        kind: Kind,
        name: str,
        do: Callable[[], Object],
        body: Object | None = None,
    ) -> Object:
        found: Object = self._call(verb, kind, name, do, body)
        return found

    def _call(
        self, verb: str, kind: Kind, name: str, do: Callable[[], Any], body: Object | None = None
    ) -> Any:
        _check_right(verb, kind)
        what = body if body is not None else f"{kind.kind}/{name}"
        return copied(self.count(verb, kind.kind, name, lambda: self._judged(verb, what, do)))

    def _judged(self, verb: str, what: Object | str, do: Callable[[], Any]) -> Any:
        error = self.refuse(verb, what)
        if error is not None:
            raise error
        return do()

    def count(self, verb: str, kind: str, name: str, do: Callable[[], T]) -> T:
        """Do it, if the operator lives to; calls of agents are counted, too."""
        number, after = len(self.calls), self.crash is not None and self.crash[1]
        self.calls.append((verb, kind, name))
        dies = self.crash is not None and self.crash[0] == number
        if dies and not after:
            raise CrashError
        try:
            return do()
        finally:
            # Also where the answer would have been an error: the operator never heard it.
            if dies:
                raise CrashError

    def all(
        self, kind: Kind, namespace: str, labels: Mapping[str, str] | None = None
    ) -> Sequence[Object]:
        """What is there."""
        return [copied(body) for body in self.present(kind, namespace, labels)]

    def present(
        self, kind: Kind, namespace: str, labels: Mapping[str, str] | None = None
    ) -> Sequence[Object]:
        """The very objects: to look at, and not to change or keep."""
        wanted = (labels or {}).items()
        keys = sorted(key for key in self._objects if key[:2] == (kind.kind, namespace))
        found = [self._objects[key] for key in keys]
        return [body for body in found if wanted <= (metadata(body).get("labels") or {}).items()]

    def find(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """The object, without a call of the operator's."""
        found = self._objects.get((kind.kind, namespace, name))
        return copied(found) if found is not None else None

    def _found(self, kind: Kind, namespace: str | None, name: str) -> Object:
        found = self._objects.get((kind.kind, namespace, name))
        if found is None:
            raise NotFoundError(f"{kind.kind} {name} not found")
        return found

    def add(self, body: Object) -> Object:
        """Create it."""
        _check_json(body)
        about = metadata(body)
        key = (body["kind"], about.get("namespace"), about["name"])
        if key in self._objects:
            raise AlreadyExistsError(f"{body['kind']} {about['name']} already exists")
        made = copied(body)
        made["metadata"] |= {
            "uid": f"uid-{self._next()}",
            "generation": 1,
            "creationTimestamp": _text(self._clock()),
        }
        if body["kind"] in ("StatefulSparkJob", "SparkSavepoint"):
            made.pop("status", None)
        self._objects[key] = made
        return self._touch(made)

    def _replaced(self, body: Object) -> Object:
        known = self._checked(body)
        fresh = copied(body)
        fresh["metadata"] = {**fresh["metadata"], "uid": known["metadata"]["uid"]}
        if "status" in known:
            fresh["status"] = known["status"]
        known.clear()
        known.update(fresh)
        return self._touch(known)

    def _with_status(self, body: Object) -> Object:
        _check_json(body)
        known = self._checked(body)
        known["status"] = copied(body.get("status") or {})
        return self._touch(known)

    def _with_finalizers(self, body: Object, finalizers: Sequence[str]) -> Object:
        known = self._checked(body)
        added = set(finalizers) - set(known["metadata"].get("finalizers") or [])
        assert not added or "deletionTimestamp" not in known["metadata"]
        known["metadata"]["finalizers"] = list(finalizers)
        self._touch(known)
        if not finalizers and "deletionTimestamp" in known["metadata"]:
            self.gone[kind_of(known).kind, known["metadata"]["name"]] = known
            self.erase(kind_of(known), known["metadata"].get("namespace"), _name(known))
        return known

    def _checked(self, body: Object) -> Object:
        about = metadata(body)
        known = self._found(kind_of(body), about.get("namespace"), about["name"])
        if about.get("resourceVersion") != known["metadata"]["resourceVersion"]:
            raise ConflictError(f"{about['name']} has been modified")
        return known

    def _deleted(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        known = self._objects.get((kind.kind, namespace, name))
        if known is not None and known["metadata"]["uid"] == uid:
            self.remove(kind, namespace, name)

    def remove(self, kind: Kind, namespace: str | None, name: str) -> None:
        """As `kubectl delete`: what has a finalizer, and every pod, is marked first."""
        known = self._found(kind, namespace, name)
        if known["metadata"].get("finalizers") or kind.kind == "Pod":
            if "deletionTimestamp" not in known["metadata"]:
                grace = (known.get("spec") or {}).get("terminationGracePeriodSeconds", 30)
                moment = self._clock().timestamp() + (grace if kind.kind == "Pod" else 0)
                known["metadata"]["deletionTimestamp"] = _text(datetime.fromtimestamp(moment, UTC))
                self._touch(known)
            return
        self.erase(kind, namespace, name)

    def erase(self, kind: Kind, namespace: str | None, name: str) -> None:
        """It is gone."""
        del self._objects[kind.kind, namespace, name]
        self._next()

    def edit(
        self, kind: Kind, namespace: str | None, name: str, change: Callable[[Object], None]
    ) -> Object:
        """As a user, or the kubelet: change an object; a changed spec is a new generation."""
        known = self._found(kind, namespace, name)
        # As JSON: to Python 1 and True are equal.
        spec = json.dumps(known.get("spec"), sort_keys=True)
        change(known)
        if json.dumps(known.get("spec"), sort_keys=True) != spec:
            known["metadata"]["generation"] += 1
        changed: Object = copied(self._touch(known))
        return changed

    def _touch(self, body: Object) -> Object:
        body["metadata"]["resourceVersion"] = str(self._next())
        return body

    def _next(self) -> int:
        self._version += 1
        return self._version


def copied(body: Any) -> Any:
    """What is JSON, copied ten times as fast as `copy.deepcopy` does it."""
    return marshal.loads(marshal.dumps(body))


def _check_right(verb: str, kind: Kind) -> None:
    resource = f"{kind.plural}/status" if verb == "status" else kind.plural
    needed, held = _VERBS.get(verb, verb), _RIGHTS.get((group_of(kind), resource), frozenset())
    if needed not in held:
        raise NoRightError(f"controller/rights.py has no {needed} on {resource}")


def _name(body: Object) -> str:
    return str(metadata(body)["name"])


def _check_json(body: Object) -> None:
    """What cannot be JSON cannot be sent."""
    json.dumps(body, allow_nan=False)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
