"""The API server without kubectl, of which a start costs more than what it asks."""

import http.client
import json
import ssl
import threading
import time
from typing import Any
from urllib.parse import quote

from dev.cluster.layout import Layout

__all__ = ["Api", "ApiError"]

_TIMEOUT = 5.0
_PAUSE = 1.0


class ApiError(Exception):
    """It does not answer, or refuses."""


class Api:
    """One namespace of it; each thread has a connection of its own."""

    def __init__(
        self, layout: Layout, namespace: str, *, tries: int = 10, timeout: float = _TIMEOUT
    ) -> None:
        self._address = layout.node_address
        self._tries, self._timeout = tries, timeout
        self._namespace = namespace
        self._local, self._connections = threading.local(), list[http.client.HTTPSConnection]()
        self._context = ssl.create_default_context(cafile=str(layout.pki / "ca.crt"))
        self._context.load_cert_chain(layout.pki / "admin.crt", layout.pki / "admin.key")

    def find(self, path: str) -> dict[str, Any] | None:
        """What is there; None if there is nothing of that name."""
        for _ in range(self._tries - 1):
            try:
                return self._find(path)
            except ApiError:
                time.sleep(_PAUSE)
        return self._find(path)

    def _find(self, path: str) -> dict[str, Any] | None:
        connection = self._connection()
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            # The next call connects anew.
            connection.close()
            raise ApiError(f"GET {path}: {error}") from error
        if answer.status == http.HTTPStatus.NOT_FOUND:
            return None
        if answer.status != http.HTTPStatus.OK:
            raise ApiError(f"GET {path}: {answer.status} {data[:300].decode(errors='replace')}")
        found: dict[str, Any] = json.loads(data)
        return found

    def _connection(self) -> http.client.HTTPSConnection:
        found: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if found is None:
            found = http.client.HTTPSConnection(
                self._address, 6443, timeout=self._timeout, context=self._context
            )
            self._local.connection = found
            self._connections.append(found)
        return found

    def close(self) -> None:
        """Close the connections of all threads."""
        for connection in self._connections:
            connection.close()

    def job(self, name: str) -> dict[str, Any] | None:
        """A StatefulSparkJob."""
        return self.find(
            f"/apis/sparkpoint.dev/v1alpha1/namespaces/{self._namespace}/statefulsparkjobs/{name}"
        )

    def savepoints(self) -> list[dict[str, Any]]:
        """All SparkSavepoints."""
        return self._items(
            f"/apis/sparkpoint.dev/v1alpha1/namespaces/{self._namespace}/sparksavepoints"
        )

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """With these labels."""
        path = f"/api/v1/namespaces/{self._namespace}/pods?labelSelector={quote(selector)}"
        return self._items(path)

    def secret(self, name: str) -> dict[str, Any] | None:
        """By its name."""
        return self.find(f"/api/v1/namespaces/{self._namespace}/secrets/{name}")

    def _items(self, path: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (self.find(path) or {"items": []})["items"]
        return items
