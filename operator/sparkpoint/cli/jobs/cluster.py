"""The few verbs that commands have for Kubernetes, on plain JSON objects."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import quote

from sparkpoint.api.common import API_VERSION
from sparkpoint.cli.jobs.errors import ConflictError, NotFoundError, UnavailableError

__all__ = [
    "ATTEMPT",
    "CONFIG_MAPS",
    "EPOCH",
    "FIELD_MANAGER",
    "JOB",
    "JOBS",
    "PODS",
    "REVISIONS",
    "ROLE",
    "SAVEPOINTS",
    "Channel",
    "Cluster",
    "Kind",
    "Object",
    "Pieces",
    "Watch",
    "find",
]

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of Kubernetes object."""

    api_version: str
    kind: str
    plural: str


CONFIG_MAPS: Final = Kind("v1", "ConfigMap", "configmaps")
JOBS: Final = Kind(API_VERSION, "StatefulSparkJob", "statefulsparkjobs")
PODS: Final = Kind("v1", "Pod", "pods")
REVISIONS: Final = Kind("apps/v1", "ControllerRevision", "controllerrevisions")
SAVEPOINTS: Final = Kind(API_VERSION, "SparkSavepoint", "sparksavepoints")

JOB: Final = "sparkpoint.dev/job"
EPOCH: Final = "sparkpoint.dev/epoch"
ATTEMPT: Final = "sparkpoint.dev/attempt"
ROLE: Final = "sparkpoint.dev/role"
"""Labels that the operator puts on what it makes for a job."""

FIELD_MANAGER: Final = "sparkpoint-cli"
"""Whom the API server notes as the owner of the fields that we change."""

_PAGE: Final = "500"
_WATCH: Final = 240
"""Seconds after which the API server ends a watch, and another one is begun."""
_GRACE: Final = 30.0
"""A watch that has said nothing for so long after that has lost its connection."""
_SILENCE: Final = 60.0
"""Seconds between two pieces of an answer that is there already."""
_MERGE: Final = "application/merge-patch+json"
_TRIES: Final = 10


class Pieces(Protocol):
    """An answer that comes piece by piece."""

    def chunks(self) -> Iterator[bytes]: ...
    def lines(self) -> Iterator[bytes]: ...
    def close(self) -> None: ...


class Channel(Protocol):
    """How the API server is reached."""

    @property
    def namespace(self) -> str: ...
    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content: str = "application/json",
    ) -> Object: ...
    def stream(self, path: str, *, query: Mapping[str, str], silence: float | None) -> Pieces: ...


class Watch:
    """The changes of one object, from a version on."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def events(self) -> Iterator[tuple[str, Object]]:
        """What happened, and the object; until the API server ends the watch."""
        for line in self._pieces.lines():
            yield _event(line)

    def close(self) -> None:
        """End it, from whichever thread."""
        self._pieces.close()


def _event(line: bytes) -> tuple[str, Object]:
    try:
        event = json.loads(line)
        return str(event["type"]), event["object"]
    except (ValueError, KeyError, TypeError) as error:
        raise UnavailableError(
            f"The cluster answered a watch with what is no event: {line[:80]!r}. Check what is "
            "between here and its API server."
        ) from error


class Cluster:
    """One namespace of one cluster."""

    def __init__(self, channel: Channel, *, manager: str = FIELD_MANAGER) -> None:
        self._channel, self._manager = channel, manager
        self.namespace = channel.namespace

    def get(self, kind: Kind, name: str) -> Object:
        """The object as it is now."""
        return self._channel.ask("GET", self._path(kind, name))

    def list(
        self, kind: Kind, *, labels: Mapping[str, str] | None = None, everywhere: bool = False
    ) -> list[Object]:
        """All objects of the namespace, or of all namespaces, as they are now."""
        selector = ",".join(f"{name}={value}" for name, value in sorted((labels or {}).items()))
        query = {"limit": _PAGE} | ({"labelSelector": selector} if selector else {})
        found: list[Object] = []
        while True:
            page = self._channel.ask("GET", self._path(kind, everywhere=everywhere), query=query)
            found += page["items"]
            rest = (page.get("metadata") or {}).get("continue")
            if not rest:
                return found
            query["continue"] = rest

    def create(self, kind: Kind, body: Object, *, dry_run: bool = False) -> Object:
        """Make it; AlreadyExistsError if one of that name is there, whoever made it."""
        return self._channel.ask("POST", self._path(kind), query=self._writing(dry_run), body=body)

    def patch(self, kind: Kind, name: str, change: Object, *, dry_run: bool = False) -> Object:
        """Change these fields and no others (a JSON merge patch); null removes a field.

        With `metadata.resourceVersion` in it: ConflictError if the object changed since then.
        """
        path, query = self._path(kind, name), self._writing(dry_run)
        return self._channel.ask("PATCH", path, query=query, body=change, content=_MERGE)

    def patch_spec(
        self, kind: Kind, seen: Object, spec: Object, *, dry_run: bool = False
    ) -> Object:
        """The same for a spec that was looked at: only if it is still the one that was seen.

        The operator writes the status all the time, which makes another version of the object, but
        not of the spec; then it is tried again.
        """
        about = seen["metadata"]
        version = about["resourceVersion"]
        for _ in range(_TRIES):
            change = {"metadata": {"resourceVersion": version}, "spec": spec}
            try:
                return self.patch(kind, about["name"], change, dry_run=dry_run)
            except ConflictError:
                now = self.get(kind, about["name"])["metadata"]
            if (now["uid"], now["generation"]) != (about["uid"], about["generation"]):
                break
            version = now["resourceVersion"]
        raise ConflictError(
            f"{about['name']} was changed by somebody else just now. Nothing was done: look at it, "
            "and try again."
        )

    def delete(self, kind: Kind, name: str, *, uid: str, version: str | None = None) -> None:
        """Delete this very object, and with a version only in this very state; gone is as good.

        ConflictError if another one has its name, or it changed.
        """
        wanted = {"uid": uid} | ({"resourceVersion": version} if version else {})
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": wanted}
        try:
            self._channel.ask("DELETE", self._path(kind, name), body=options)
        except NotFoundError:
            return

    def watch(self, kind: Kind, name: str, version: str) -> Watch:
        """Its changes after this version."""
        query = {
            "watch": "true",
            "fieldSelector": f"metadata.name={name}",
            "resourceVersion": version,
            "timeoutSeconds": str(_WATCH),
        }
        return Watch(self._channel.stream(self._path(kind), query=query, silence=_WATCH + _GRACE))

    def log(self, pod: str, **query: str) -> Pieces:
        """What a pod has written, with the API server's own options."""
        # One that is followed may be silent for as long as the script is.
        silence = None if query.get("follow") == "true" else _SILENCE
        return self._channel.stream(f"{self._path(PODS, pod)}/log", query=query, silence=silence)

    def _writing(self, dry_run: bool) -> dict[str, str]:
        # Strict: a field that the API server does not know is refused and not dropped.
        query = {"fieldManager": self._manager, "fieldValidation": "Strict"}
        return query | ({"dryRun": "All"} if dry_run else {})

    def _path(self, kind: Kind, name: str | None = None, *, everywhere: bool = False) -> str:
        root = "/apis" if "/" in kind.api_version else "/api"
        within = "" if everywhere else f"/namespaces/{_quoted(self.namespace)}"
        item = f"/{_quoted(name)}" if name is not None else ""
        return f"{root}/{kind.api_version}{within}/{kind.plural}{item}"


def _quoted(name: str) -> str:
    if not name.strip("."):
        # Part of a path it would mean another one.
        raise NotFoundError(f"{name!r} is no name.")
    return quote(name, safe="")


def find(cluster: Cluster, kind: Kind, name: str) -> Object | None:
    """The object, or None if there is none."""
    try:
        return cluster.get(kind, name)
    except NotFoundError:
        return None
