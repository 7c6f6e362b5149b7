"""The API server for whoever plays the rest of a cluster: plain JSON, watches, many requests."""

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from dev.cluster.layout import Layout

__all__ = ["Api", "ApiError", "Object", "connected"]

Object = dict[str, Any]
logger = logging.getLogger(__name__)

_PAGE = 500
_PAUSE = 0.3
_LINE_LIMIT = 4 * 1024 * 1024
_MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """The API server refused; `status` says how."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """Paths in, objects out."""

    def __init__(self, session: aiohttp.ClientSession, server: str) -> None:
        self._session, self._server = session, server

    async def get(self, path: str) -> Object:
        """One object, or one page."""
        return await self._ask("GET", path)

    async def create(self, path: str, body: Object) -> Object:
        """POST."""
        return await self._ask("POST", path, body)

    async def merge(self, path: str, body: Object) -> Object:
        """A merge patch."""
        return await self._ask("PATCH", path, body, kind=_MERGE)

    async def delete(self, path: str, **options: Any) -> None:
        """One that is gone is success."""
        try:
            await self._ask("DELETE", path, options)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    async def list(self, path: str, query: str = "") -> tuple[list[Object], str]:
        """All items, and the version from which a watch goes on."""
        found: list[Object] = []
        rest = ""
        while True:
            page = await self.get(f"{path}?limit={_PAGE}&continue={rest}&{query}")
            found += page["items"]
            rest = page["metadata"].get("continue", "")
            if not rest:
                return found, page["metadata"]["resourceVersion"]

    async def follow(self, path: str, query: str = "") -> AsyncIterator[tuple[str, Object]]:
        """What is there as ADDED, and all that happens to it, for ever.

        The API server ends watches as it likes, and refuses them while definitions are new.
        """
        while True:
            try:
                found, version = await self.list(path, query)
                for body in found:
                    yield "ADDED", body
                async for kind, body in self._watch(path, version, query):
                    yield kind, body
            except (ApiError, aiohttp.ClientError, TimeoutError) as error:
                logger.warning("%s: %r", path, error)
                await asyncio.sleep(_PAUSE)

    async def _watch(
        self, path: str, version: str, query: str
    ) -> AsyncIterator[tuple[str, Object]]:
        url = f"{self._server}{path}?watch=1&resourceVersion={version}&{query}"
        endless = aiohttp.ClientTimeout(total=None, sock_connect=10)
        async with self._session.get(url, timeout=endless) as response:
            if response.status >= 400:
                raise ApiError(response.status, (await response.text())[:500])
            async for line in response.content:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                yield event["type"], event["object"]

    async def _ask(
        self, method: str, path: str, body: Object | None = None, kind: str = "application/json"
    ) -> Object:
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": kind}
        url = f"{self._server}{path}"
        async with self._session.request(method, url, data=data, headers=headers) as response:
            text = await response.read()
            if response.status >= 400:
                raise ApiError(response.status, text[:500].decode(errors="replace"))
            found: Object = json.loads(text)
            return found


@asynccontextmanager
async def connected(layout: Layout) -> AsyncIterator[Api]:
    """As the cluster's administrator."""
    trust = ssl.create_default_context(cafile=str(layout.pki / "ca.crt"))
    trust.load_cert_chain(layout.pki / "admin.crt", layout.pki / "admin.key")
    connector = aiohttp.TCPConnector(ssl=trust, limit=32)
    async with aiohttp.ClientSession(connector=connector, read_bufsize=_LINE_LIMIT) as session:
        yield Api(session, layout.server)
        await asyncio.sleep(0)
