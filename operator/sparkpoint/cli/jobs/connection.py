"""The way to the API server: the official client's login and HTTP, and plain JSON.

The only module that imports the Kubernetes client. It finds the cluster as kubectl does: by
`KUBECONFIG` or `~/.kube/config`, and in a pod by its service account.
"""

import json
import os
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from sparkpoint.cli.jobs.errors import (
    AlreadyExistsError,
    ClientMissingError,
    ClusterError,
    ConflictError,
    DeniedError,
    NoClusterError,
    NotFoundError,
    RefusedError,
    UnavailableError,
)

try:
    import urllib3
    import yaml
    from kubernetes import client, config
except ModuleNotFoundError as error:
    raise ClientMissingError from error

__all__ = ["Connection", "Stream", "connect"]

Object = dict[str, Any]

_CONNECT, _READ = 10.0, 60.0
"""Seconds that an answer may take."""
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_REFUSED: dict[int, type[ClusterError]] = {
    HTTPStatus.UNAUTHORIZED: DeniedError,
    HTTPStatus.FORBIDDEN: DeniedError,
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.BAD_REQUEST: RefusedError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: RefusedError,
    HTTPStatus.UNPROCESSABLE_ENTITY: RefusedError,
}


class Stream:
    """An answer that comes piece by piece; `close` may be called from another thread."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def chunks(self) -> Iterator[bytes]:
        """Whatever has arrived, as it arrives; UnavailableError if it is cut off."""
        try:
            yield from self._response.stream(amt=None)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise UnavailableError(f"The answer of the cluster was cut off: {error}.") from error

    def lines(self) -> Iterator[bytes]:
        """Line by line. A connection that breaks is the end of it; half a line is left out."""
        rest = b""
        try:
            for chunk in self.chunks():
                *whole, rest = (rest + chunk).split(b"\n")
                yield from whole
        except UnavailableError:
            return

    def close(self) -> None:
        """End it: whoever reads it gets no more."""
        try:
            self._response.shutdown()
        except (RuntimeError, ValueError, OSError):
            # It has ended already, or cannot be ended from outside; then its own time limit will.
            return


class Connection:
    """One cluster, as one user, with the namespace that commands mean if they name none."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self._api = api
        self.namespace = namespace

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content: str = "application/json",
    ) -> Object:
        """The JSON that the API server answers with."""
        response = self._send(method, path, query, body, content, read=_READ, whole=True)
        try:
            found: Object = json.loads(response.data)
        except ValueError as error:
            raise UnavailableError(
                f"{self._api.configuration.host} answered with what is no JSON: "
                f"{response.data[:80]!r}. Check that it is a cluster's API server (--context)."
            ) from error
        return found

    def stream(self, path: str, *, query: Mapping[str, str], silence: float | None) -> Stream:
        """An answer that may take as long as it wants, but is cut off after so many seconds in
        which nothing comes: whoever is at the other end may be gone without a word."""
        return Stream(
            self._send("GET", path, query, None, "application/json", read=silence, whole=False)
        )

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Object | None,
        content: str,
        *,
        read: float | None,
        whole: bool,
    ) -> urllib3.BaseHTTPResponse:
        settings = self._api.configuration
        headers = {"Accept": "application/json, */*", "Content-Type": content}
        # Asking for it renews a token that is about to expire.
        token = settings.auth_settings().get("BearerToken")
        if token is not None:
            headers[token["key"]] = str(token["value"])
        pool: urllib3.PoolManager = self._api.rest_client.pool_manager
        try:
            response = pool.request(
                method,
                f"{settings.host}{path}" + (f"?{urlencode(query)}" if query else ""),
                headers=headers,
                body=None if body is None else json.dumps(body),
                preload_content=whole,
                timeout=urllib3.Timeout(connect=_CONNECT, read=read),
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise UnavailableError(
                f"No answer from the cluster at {settings.host}: {error}. Check that it runs and "
                "that it is the one you mean (--context)."
            ) from error
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise _error(response.status, response.data)
        return response


def connect(context: str | None, namespace: str | None) -> Connection:
    """Log in as kubectl would."""
    path = os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    settings = client.Configuration()
    in_a_pod = context is None and _POD_NAMESPACE.exists() and not Path(path).exists()
    try:
        if in_a_pod:
            # The client's own code has no types.
            config.load_incluster_config(settings)  # type: ignore[no-untyped-call]
            own = _POD_NAMESPACE.read_text().strip()
        else:
            own = _namespace_of(path, context)
            config.load_kube_config(  # type: ignore[no-untyped-call]
                path, context=context, client_configuration=settings
            )
    except (config.ConfigException, yaml.YAMLError, OSError) as error:
        which = f"context {context} of " if context else ""
        raise NoClusterError(
            f"No cluster: {which}{path} cannot be used: {error}. Name another file with "
            "KUBECONFIG, or another context with --context."
        ) from error
    return Connection(client.ApiClient(settings), namespace or own)


def _namespace_of(path: str, context: str | None) -> str:
    contexts, current = config.list_kube_config_contexts(path)  # type: ignore[no-untyped-call]
    meant = current if context is None else next((c for c in contexts if c["name"] == context), {})
    return str(meant.get("context", {}).get("namespace") or "default")


def _error(status: int, data: bytes) -> ClusterError:
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    known = answer if isinstance(answer, dict) else {}
    message = str(known.get("message") or data[:200].decode(errors="replace") or "no reason given")
    if known.get("reason") == "AlreadyExists":
        return AlreadyExistsError(message)
    kind = _REFUSED.get(status, UnavailableError)
    if status == HTTPStatus.UNAUTHORIZED:
        message = f"The cluster does not know who you are ({message}). Log in again."
    return kind(message)
