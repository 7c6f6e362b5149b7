"""A small API server in this process, over real HTTP: objects, merge patches, watches, logs.

It counts versions and generations, refuses what our rules refuse, and checks resourceVersions as
Kubernetes does. `reacts` plays the operator: what it returns is written as the status.
"""

import copy
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sparkpoint.api.validation import validate_resource

__all__ = ["ApiServer", "Asked", "RefusalError", "served"]

Object = dict[str, Any]
Asked = tuple[str, str, Any]
_KINDS = {
    "statefulsparkjobs": ("sparkpoint.dev/v1alpha1", "StatefulSparkJob"),
    "sparksavepoints": ("sparkpoint.dev/v1alpha1", "SparkSavepoint"),
    "controllerrevisions": ("apps/v1", "ControllerRevision"),
    "configmaps": ("v1", "ConfigMap"),
    "pods": ("v1", "Pod"),
}
_PLURALS = {kind: plural for plural, (_, kind) in _KINDS.items()}
Key = tuple[str, str, str]


class RefusalError(Exception):
    """An answer with a Status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message


class ApiServer:
    """What it holds, and what it was asked."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.logs: dict[str, bytes] = {}
        self.asked: list[Asked] = []
        self.reacts: Callable[[Object], list[Object]] = lambda _: []
        self.before_patch: Callable[[Object], None] = lambda _: None
        self.on_watch: Callable[[], object] = lambda: None
        self.before_answer: Callable[[str, Object], None] = lambda _verb, _answer: None
        """What was asked for is done; whoever asked does not know it yet."""
        self.kinds = dict(_KINDS)
        self.token = "not-for-you"
        self._version = 100
        self._events: list[tuple[int, str, Key, Object]] = []
        self._changed = threading.Condition(threading.RLock())
        self.open = True
        self.holds_deleted = False
        """Whether a finalizer keeps what is deleted."""
        self.oldest = 0
        """Versions before that are forgotten: a watch from there is told 410."""
        self.dropped = 0
        """Raise it to break the watches that are open."""
        self.forbidden: set[str] = set()
        """Verbs that are refused."""
        self.page = 2
        """Objects in one answer to a list: few, so that whoever forgets the rest is found out."""

    def put(self, body: Object, *, what: str = "ADDED") -> Object:
        """Write an object as a whole, and tell whoever watches."""
        about = body["metadata"]
        key = (_PLURALS[body["kind"]], about.setdefault("namespace", "shop"), about["name"])
        with self._changed:
            self._version += 1
            about |= {"resourceVersion": str(self._version)}
            about.setdefault("uid", f"uid-of-{about['name']}")
            about.setdefault("generation", 1)
            about.setdefault("creationTimestamp", "2026-07-30T10:00:00Z")
            self.objects[key] = copy.deepcopy(body)
            self._events.append((self._version, what, key, copy.deepcopy(body)))
            self._changed.notify_all()
        return copy.deepcopy(body)

    def put_status(self, kind: str, name: str, status: Object, namespace: str = "shop") -> None:
        """What the operator writes."""
        with self._changed:
            body = copy.deepcopy(self.objects[_PLURALS[kind], namespace, name])
            body["status"] = {**body.get("status", {}), **status}
            body["status"] = {k: v for k, v in body["status"].items() if v is not None}
            self.put(body, what="MODIFIED")

    def delete(self, kind: str, name: str, namespace: str = "shop") -> None:
        """It is gone."""
        with self._changed:
            key = (_PLURALS[kind], namespace, name)
            body = self.objects.pop(key)
            self._version += 1
            self._events.append((self._version, "DELETED", key, body))
            self._changed.notify_all()

    def job(self, name: str = "visits", namespace: str = "shop") -> Object:
        """A job as it is."""
        return self.objects["statefulsparkjobs", namespace, name]

    def writes(self) -> list[Asked]:
        """All requests that could change something."""
        return [each for each in self.asked if each[0] != "GET" and "dryRun" not in each[1]]

    # What comes over HTTP.

    def answer(self, method: str, path: str, body: Any) -> Object:
        with self._changed:
            parts, query = _parsed(path)
            plural, namespace, name = self._target(parts)
            if method == "GET" and name is None:
                return self._list(plural, namespace, query)
            if method == "GET":
                return copy.deepcopy(self._find((plural, namespace or "", str(name))))
            dry = "dryRun" in query
            if method == "POST":
                return self._create(plural, str(namespace), body, dry=dry)
            if method == "DELETE":
                return self._delete((plural, str(namespace), str(name)), body)
            return self._patch((plural, str(namespace), str(name)), body, dry=dry)

    def _delete(self, key: Key, options: Object | None) -> Object:
        about = self._find(key)["metadata"]
        for field, wanted in ((options or {}).get("preconditions") or {}).items():
            if about[field] != wanted:
                raise RefusalError(409, "Conflict", f"Precondition failed: {field}")
        if self.holds_deleted:
            body = copy.deepcopy(self.objects[key])
            body["metadata"].setdefault("deletionTimestamp", "2026-07-30T12:00:00Z")
            self._react(self.put(body, what="MODIFIED"))
        else:
            self.delete(self.objects[key]["kind"], key[2], key[1])
        return {"kind": "Status", "status": "Success"}

    def _target(self, parts: list[str]) -> tuple[str, str | None, str | None]:
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = None
        if rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        if rest[0] not in self.kinds:
            raise RefusalError(404, "NotFound", "the server could not find the requested resource")
        return rest[0], namespace, rest[1] if len(rest) > 1 else None

    def _find(self, key: Key) -> Object:
        if key not in self.objects:
            raise RefusalError(404, "NotFound", f'{key[0]} "{key[2]}" not found')
        return self.objects[key]

    def _list(self, plural: str, namespace: str | None, query: dict[str, str]) -> Object:
        labels = dict(each.split("=") for each in query.get("labelSelector", "").split(",") if each)
        meant = query.get("fieldSelector", "").removeprefix("metadata.name=")
        found = [
            body
            for (kind, where, name), body in sorted(self.objects.items())
            if kind == plural
            and namespace in (None, where)
            and meant in ("", name)
            and labels.items() <= (body["metadata"].get("labels") or {}).items()
        ]
        begin = int(query.get("continue", "0"))
        end = begin + self.page
        rest = {"continue": str(end)} if len(found) > end else {}
        about = {"resourceVersion": str(self._version), **rest}
        return {"items": copy.deepcopy(found[begin:end]), "metadata": about}

    def _create(self, plural: str, namespace: str, body: Object, *, dry: bool) -> Object:
        self._judge(body, None)
        key = (plural, namespace, body["metadata"]["name"])
        if key in self.objects:
            raise RefusalError(409, "AlreadyExists", f'{plural} "{key[2]}" already exists')
        if dry:
            return body
        body["metadata"]["namespace"] = namespace
        made = self.put(body)
        self._react(made)
        return made

    def _patch(self, key: Key, change: Object, *, dry: bool) -> Object:
        self.before_patch(self._find(key))
        old = self._find(key)
        version = (change.get("metadata") or {}).get("resourceVersion")
        if version not in (None, old["metadata"]["resourceVersion"]):
            raise RefusalError(409, "Conflict", "the object has been modified")
        new: Object = _merge(copy.deepcopy(old), change)
        self._judge(new, old)
        if dry:
            return new
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        written = self.put(new, what="MODIFIED")
        self._react(written)
        return written

    def _judge(self, body: Object, old: Object | None) -> None:
        if "sparkpoint.dev" in body["apiVersion"]:
            errors = validate_resource(body, old=old)
            if errors:
                raise RefusalError(422, "Invalid", "; ".join(map(str, errors)))

    def _react(self, body: Object) -> None:
        for status in self.reacts(copy.deepcopy(body)):
            about = body["metadata"]
            self.put_status(body["kind"], about["name"], status, about["namespace"])

    def events(self, path: str) -> Iterator[bytes]:
        """A watch: what was after the version, and then what comes."""
        parts, query = _parsed(path)
        plural, namespace, _ = self._target(parts)
        name = query["fieldSelector"].removeprefix("metadata.name=")
        seen = int(query["resourceVersion"])
        dropped = self.dropped
        self.on_watch()
        if seen < self.oldest:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            yield json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n"
            return
        while self.open:
            if self.dropped != dropped:
                raise ConnectionResetError
            with self._changed:
                fresh = [each for each in self._events if each[0] > seen]
                if not fresh:
                    self._changed.wait(0.2)
            for version, what, key, body in fresh:
                seen = version
                if key == (plural, namespace, name):
                    yield json.dumps({"type": what, "object": body}).encode() + b"\n"


def _merge(target: Any, change: Any) -> Any:
    if not isinstance(change, dict):
        return change
    target = target if isinstance(target, dict) else {}
    for key, value in change.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = _merge(target.get(key), value)
    return target


def _parsed(path: str) -> tuple[list[str], dict[str, str]]:
    split = urlsplit(path)
    query = {name: values[-1] for name, values in parse_qs(split.query).items()}
    return split.path.strip("/").split("/"), query


def _handler(server: ApiServer) -> type[BaseHTTPRequestHandler]:  # noqa: C901
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            server.asked.append((self.command, self.path, copy.deepcopy(body)))
            try:
                self._dispatch(body)
            except RefusalError as error:
                status = {"kind": "Status", "reason": error.reason, "message": error.message}
                self._send(error.code, json.dumps(status).encode())
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _dispatch(self, body: Any) -> None:
            if self.headers.get("Authorization") != f"Bearer {server.token}":
                raise RefusalError(401, "Unauthorized", "Unauthorized")
            parts, query = _parsed(self.path)
            if ("WATCH" if "watch" in query else self.command) in server.forbidden:
                raise RefusalError(403, "Forbidden", f"{self.command} is not allowed")
            if parts[-1] == "log":
                if parts[-2] not in server.logs:
                    raise RefusalError(400, "BadRequest", "container is waiting to start")
                self._stream(iter([server.logs[parts[-2]]]))
            elif query.get("watch", "").lower() == "true":
                self._stream(server.events(self.path))
            else:
                content = server.answer(self.command, self.path, body)
                server.before_answer(self.command, content)
                self._send(200, json.dumps(content).encode())

        def _send(self, code: int, content: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _stream(self, pieces: Iterator[bytes]) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in pieces:
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PATCH = do_DELETE = _do  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    return Handler


@contextmanager
def served() -> Iterator[tuple[ApiServer, str]]:
    """The server, and its address."""
    api = ApiServer()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api))
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield api, f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        api.open = False
        http.shutdown()
        thread.join()
        http.server_close()
