"""The cluster behind the official client's connection: its login and its HTTP, our plain JSON.

The client's typed models cost ten times the processor time of the JSON itself, and drop fields that
are newer than they are.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import quote, urlencode
from urllib.request import getproxies

import aiohttp
import yaml
from kubernetes.aio import client, config

from sparkpoint.controller.cluster import Kind, Object, kind_of, metadata
from sparkpoint.controller.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ThrottledError,
    UnavailableError,
    UnfitError,
    UnprocessableError,
)
from sparkpoint.controller.permissions import Question

__all__ = ["ApiServer"]

Asked = Callable[[str, str, str], None]
"""Told of every request: its verb, the resource with its part, and the status of the answer."""
Hear = Callable[[str | None, float], None]
"""Told of every answer: when it was given, by the API server's clock, and how long it took."""

_NO_ANSWER = "0"
_REVIEWS = "authorization.k8s.io/v1"

_PAGE = 500
_CONNECTIONS = 24
_METHODS = {
    "get": "GET",
    "list": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}
_JSON = "application/json"
_MERGE = "application/merge-patch+json"
_REFUSED: dict[int, type[ClusterError]] = {
    HTTPStatus.BAD_REQUEST: UnprocessableError,
    HTTPStatus.FORBIDDEN: ForbiddenError,
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: UnprocessableError,
    HTTPStatus.UNPROCESSABLE_ENTITY: UnprocessableError,
}


class ApiServer:
    """Kubernetes itself."""

    def __init__(
        self,
        connection: client.ApiClient,
        *,
        timeout: float = 30,
        asked: Asked = lambda *_: None,
        hear: Hear = lambda *_: None,
    ) -> None:
        self._connection = connection
        self._asked, self._hear = asked, hear
        self._timeout = aiohttp.ClientTimeout(total=timeout, connect=min(10.0, timeout))

    @classmethod
    async def connect(cls, context: str | None, *, asked: Asked, hear: Hear) -> Self:
        """As the pod's service account; outside of a cluster as kubectl would, with its context."""
        settings = client.Configuration(
            # Each connection with TLS has a quarter of a megabyte of buffers.
            connection_pool_maxsize=_CONNECTIONS,
            # For proxies; it also has a thread look into ~/.netrc before every request.
            client_session_kwargs={"trust_env": bool(getproxies())},
        )
        try:
            # The client's own code has no types.
            config.load_incluster_config(settings)  # type: ignore[no-untyped-call]
        except config.ConfigException:
            await _load_kubeconfig(settings, context)
        return cls(client.ApiClient(settings), asked=asked, hear=hear)

    async def credentials(self) -> dict[str, Any]:
        """What another client needs to connect as we do, in the words of kopf."""
        settings = self._connection.configuration
        # Asking for it renews a token that is about to expire.
        header = (await settings.auth_settings()).get("BearerToken", {}).get("value") or ""
        return {
            "server": settings.host,
            "ca_path": settings.ssl_ca_cert,
            "insecure": not settings.verify_ssl,
            "certificate_path": settings.cert_file,
            "private_key_path": settings.key_file,
            "token": header.split(" ", 1)[-1] or None,
        }

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()  # type: ignore[no-untyped-call]

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object:
        """See Cluster."""
        return await self._ask("get", kind.plural, _path(kind, namespace, name))

    async def list(
        self, kind: Kind, namespace: str, *, labels: Mapping[str, str]
    ) -> Sequence[Object]:
        """See Cluster. Without a resourceVersion, so never older than the call."""
        selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
        query = {"labelSelector": selector, "limit": str(_PAGE)}
        found: list[Object] = []
        while True:
            page = await self._ask("list", kind.plural, _path(kind, namespace), query=query)
            # The API server leaves out what all items of a list have in common.
            same = {"apiVersion": kind.api_version, "kind": kind.kind}
            found += [{**item, **same} for item in page["items"]]
            rest = metadata(page).get("continue")
            if not rest:
                return found
            query["continue"] = rest

    async def create(self, body: Object) -> Object:
        """See Cluster."""
        return await self._ask("create", kind_of(body).plural, _collection(body), body=body)

    async def replace(self, body: Object) -> Object:
        """See Cluster."""
        return await self._ask("update", kind_of(body).plural, _own_path(body), body=body)

    async def replace_status(self, body: Object) -> Object:
        """See Cluster."""
        resource = f"{kind_of(body).plural}/status"
        return await self._ask("update", resource, f"{_own_path(body)}/status", body=body)

    async def set_finalizers(self, body: Object, finalizers: Sequence[str]) -> Object:
        """See Cluster."""
        version = metadata(body)["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version, "finalizers": list(finalizers)}}
        return await self._ask("patch", kind_of(body).plural, _own_path(body), body=patch)

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """See Cluster."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            path = _path(kind, namespace, name)
            await self._ask("delete", kind.plural, path, body=options)
        except (NotFoundError, ConflictError):
            return

    async def published(self, api_version: str) -> Object:
        """See Publisher."""
        return await self._ask("get", "openapi", f"/openapi/v3/apis/{api_version}")

    async def allows(self, question: Question) -> bool:
        """See Judge."""
        resource, _, part = question.resource.partition("/")
        attributes = {
            "verb": question.verb,
            "group": question.group,
            "resource": resource,
            "subresource": part,
            "namespace": question.namespace,
            "name": question.name,
        }
        kind = "SelfSubjectAccessReview"
        review = {"apiVersion": _REVIEWS, "kind": kind, "spec": {"resourceAttributes": attributes}}
        plural = f"{kind.lower()}s"
        answer = await self._ask("create", plural, f"/apis/{_REVIEWS}/{plural}", body=review)
        return bool((answer.get("status") or {}).get("allowed"))

    async def _ask(
        self,
        verb: str,
        resource: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
    ) -> Object:
        method = _METHODS[verb]
        headers = {"Accept": _JSON, "Content-Type": _MERGE if verb == "patch" else _JSON}
        connection = self._connection
        await connection.update_params_for_auth(headers, None, ["BearerToken"], path, method, body)
        url = f"{connection.configuration.host}{path}"
        begun = time.monotonic()
        try:
            response = await connection.call_api(
                method,
                f"{url}?{urlencode(query)}" if query else url,
                header_params=headers,
                body=body,
                _request_timeout=self._timeout,
            )
            data = await response.read()  # type: ignore[no-untyped-call]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._asked(verb, resource, _NO_ANSWER)
            reason = str(error) or type(error).__name__
            raise UnavailableError(f"{method} {path}: no answer: {reason}") from error
        self._asked(verb, resource, str(response.status))
        self._hear(response.headers.get("Date"), time.monotonic() - begun)
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise _error(f"{method} {path}", response.status, data, response.headers)
        found: Object = json.loads(data)
        for each in (found, *found.get("items", ())):
            # Who wrote which field: half of an object, and nobody here asks.
            metadata(each).pop("managedFields", None)
        return found


async def _load_kubeconfig(settings: client.Configuration, context: str | None) -> None:
    try:
        await config.load_kube_config(  # type: ignore[no-untyped-call]
            context=context, client_configuration=settings
        )
    # The client takes a file for what it should be, and stumbles over what it is not.
    except (config.ConfigException, yaml.YAMLError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise UnfitError(
            f"No kubeconfig says where the API server is: {reason}. Run the operator in a pod with "
            "a service account, or with a kubeconfig that kubectl can use (KUBECONFIG, --context)."
        ) from error


def _path(kind: Kind, namespace: str | None, name: str | None = None) -> str:
    root = "/api" if "/" not in kind.api_version else "/apis"
    within = f"/namespaces/{_segment(namespace)}" if namespace is not None else ""
    item = f"/{_segment(name)}" if name is not None else ""
    return f"{root}/{kind.api_version}{within}/{kind.plural}{item}"


def _segment(name: str) -> str:
    """One part of a path, and no more, whatever was written into a status: a `/` or `..` in it
    would lead to another object, perhaps of another namespace, with the operator's rights. The API
    server splits a path after it has decoded it, and lets no object have such a name."""
    if name in ("", ".", "..") or "/" in name or "%" in name:
        raise NotFoundError(f"{name!r} is no name of an object")
    return quote(name, safe="")


def _collection(body: Object) -> str:
    return _path(kind_of(body), metadata(body).get("namespace"))


def _own_path(body: Object) -> str:
    about = metadata(body)
    return _path(kind_of(body), about.get("namespace"), about["name"])


def _error(call: str, status: int, data: bytes, headers: Mapping[str, str]) -> ClusterError:
    answer = _answer(data)
    message = f"{call}: {status}: {answer.get('message', answer)}"
    if answer.get("reason") == "AlreadyExists":
        return AlreadyExistsError(message)
    known = _REFUSED.get(status)
    if known is not None:
        return known(message)
    # Among them an expired token, which the next call renews.
    kind = ThrottledError if status == HTTPStatus.TOO_MANY_REQUESTS else UnavailableError
    return kind(message, retry_after=_seconds(headers.get("Retry-After")))


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() else None


def _answer(data: bytes) -> dict[str, Any]:
    try:
        answer: Any = json.loads(data)
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"message": data[:200].decode(errors="replace")}
