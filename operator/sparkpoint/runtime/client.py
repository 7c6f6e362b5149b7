"""Talks to an agent: for the controller (async), and for the command line and tests (sync).

Nothing is tried again here: an operation has a name, so whoever asks may ask again.

AgentClientError
├── AgentUnreachableError     no answer, or none of an agent; asking again may help
└── AgentRefusedError         the agent answered with an error
"""

import asyncio
import json
import time
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
from pydantic import ValidationError
from yarl import URL

from sparkpoint.runtime.correlation import HEADER
from sparkpoint.runtime.model import (
    Document,
    GateInfo,
    OperationState,
    Progress,
    SavepointOperation,
    SavepointRequest,
    StopOperation,
    StopRequest,
)

__all__ = [
    "AgentClient",
    "AgentClientError",
    "AgentRefusedError",
    "AgentUnreachableError",
    "SyncAgentClient",
]

_POLL = 30.0
"""Seconds of one long poll: below what proxies and firewalls between us call idle."""
_ANSWER_LIMIT = 4 * 1024 * 1024

AnyDocument = TypeVar("AnyDocument", bound=Document)
AnyOperation = TypeVar("AnyOperation", SavepointOperation, StopOperation)
T = TypeVar("T")


class AgentClientError(Exception):
    """Base of this tree."""

    retry_helps = False


class AgentUnreachableError(AgentClientError):
    """The agent did not answer: not there yet, gone, or cut off."""

    retry_helps = True


class AgentRefusedError(AgentClientError):
    """The agent answered with an error; `kind` is its type, `remedy` the way out."""

    def __init__(
        self, status: int, message: str, *, kind: str = "", remedy: str | None = None
    ) -> None:
        super().__init__(message if remedy is None else f"{message} {remedy}")
        self.status, self.message, self.kind, self.remedy = status, message, kind, remedy
        self.retry_helps = status in (429, 503)


class AgentClient:
    """One agent. `session` lets many clients share connections; it is then not closed here.

    `correlation` is what its requests belong to: the agent logs it.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 10,
        session: aiohttp.ClientSession | None = None,
        correlation: str = "",
    ) -> None:
        self._url, self._token, self._timeout = URL(url), token, timeout
        self._correlation = {HEADER: correlation} if correlation else {}
        self._session, self._owned = session, session is None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, unless they are shared."""
        if self._session is not None and self._owned:
            await self._session.close()
            self._session = None

    async def healthy(self) -> bool:
        """Whether the agent's process and loop are alive."""
        try:
            await self._ask("GET", "/healthz")
        except AgentClientError:
            return False
        return True

    async def progress(self) -> Progress:
        """The queries as they are now."""
        return await self._read(Progress, "GET", "/v1/progress")

    async def metrics(self) -> str:
        """The page that Prometheus reads."""
        return (await self._ask("GET", "/metrics")).decode()

    async def savepoint(
        self, name: str, request: SavepointRequest, *, wait: float = 0
    ) -> SavepointOperation:
        """Ask for a savepoint, and wait so many seconds for its end; then as it is."""
        path = f"/v1/savepoints/{name}"
        return await self._operate(SavepointOperation, path, request, wait)

    async def get_savepoint(self, name: str, *, wait: float = 0) -> SavepointOperation:
        """How far a savepoint is."""
        return await self._follow(SavepointOperation, f"/v1/savepoints/{name}", wait)

    async def stop(
        self, operation: str, request: StopRequest | None = None, *, wait: float = 0
    ) -> StopOperation:
        """Ask for a stop at the boundary, and wait so many seconds for its end; then as it is.

        The driver ends soon after: when the agent is gone, the pod's termination message says how
        it went.
        """
        path = f"/v1/stop/{operation}"
        return await self._operate(StopOperation, path, request or StopRequest(), wait)

    async def get_stop(self, operation: str, *, wait: float = 0) -> StopOperation:
        """How far a stop is."""
        return await self._follow(StopOperation, f"/v1/stop/{operation}", wait)

    async def open_gate(self, epoch: int) -> GateInfo:
        """Let the queries of this epoch start."""
        return await self._read(GateInfo, "PUT", f"/v1/gate/{epoch}")

    async def _operate(
        self, model: type[AnyOperation], path: str, request: Document, wait: float
    ) -> AnyOperation:
        """Ask once, then only look: asking again would begin a failed operation anew."""
        until = time.monotonic() + wait
        found = await self._read(model, "PUT", path, body=request, wait=min(wait, _POLL))
        if found.state is not OperationState.RUNNING or time.monotonic() >= until:
            return found
        return await self._follow(model, path, until - time.monotonic())

    async def _follow(self, model: type[AnyOperation], path: str, wait: float) -> AnyOperation:
        until = time.monotonic() + wait
        while True:
            left = max(0.0, until - time.monotonic())
            found = await self._read(model, "GET", path, wait=min(left, _POLL))
            if found.state is not OperationState.RUNNING or left <= _POLL:
                return found

    async def _read(
        self,
        model: type[AnyDocument],
        method: str,
        path: str,
        *,
        body: Document | None = None,
        wait: float = 0,
    ) -> AnyDocument:
        data = await self._ask(method, path, body=body, wait=wait)
        try:
            return model.model_validate_json(data)
        except ValidationError as error:
            raise AgentUnreachableError(
                f"{self._url} answered {path} with something that is no {model.__name__}: another "
                "server, or another version of Sparkpoint."
            ) from error

    async def _ask(
        self, method: str, path: str, *, body: Document | None = None, wait: float = 0
    ) -> bytes:
        url = self._url.with_path(path).with_query({"wait": f"{wait:.3f}"} if wait > 0 else {})
        limit = aiohttp.ClientTimeout(total=self._timeout + wait)
        try:
            async with self._connections().request(
                method,
                url,
                data=None if body is None else body.model_dump_json().encode(),
                headers={"Authorization": f"Bearer {self._token}", **self._correlation},
                timeout=limit,
                # The token is for this server and no other.
                allow_redirects=False,
            ) as response:
                data = await response.content.read(_ANSWER_LIMIT)
                while chunk := await response.content.read(_ANSWER_LIMIT - len(data)):
                    data += chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = str(error) or f"no answer within {limit.total} s"
            raise AgentUnreachableError(f"No answer from {self._url}: {reason}.") from error
        if response.status not in (200, 202):
            raise _refused(response.status, data)
        return data

    def _connections(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        return self._session


def _refused(status: int, data: bytes) -> AgentRefusedError:
    try:
        error = json.loads(data)["error"]
        return AgentRefusedError(
            status, str(error["message"]), kind=str(error["type"]), remedy=error.get("remedy")
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return AgentRefusedError(status, f"The server answered with status {status}.")


class SyncAgentClient:
    """The same for code without an event loop; one thread at a time."""

    def __init__(self, url: str, token: str, *, timeout: float = 10) -> None:
        self._runner = asyncio.Runner()
        self._client = AgentClient(url, token, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._run(self._client.close())
        self._runner.close()

    def healthy(self) -> bool:
        """Whether the agent's process and loop are alive."""
        return self._run(self._client.healthy())

    def progress(self) -> Progress:
        """The queries as they are now."""
        return self._run(self._client.progress())

    def metrics(self) -> str:
        """The page that Prometheus reads."""
        return self._run(self._client.metrics())

    def savepoint(
        self, name: str, request: SavepointRequest, *, wait: float = 0
    ) -> SavepointOperation:
        """See AgentClient.savepoint."""
        return self._run(self._client.savepoint(name, request, wait=wait))

    def get_savepoint(self, name: str, *, wait: float = 0) -> SavepointOperation:
        """See AgentClient.get_savepoint."""
        return self._run(self._client.get_savepoint(name, wait=wait))

    def stop(
        self, operation: str, request: StopRequest | None = None, *, wait: float = 0
    ) -> StopOperation:
        """See AgentClient.stop."""
        return self._run(self._client.stop(operation, request, wait=wait))

    def get_stop(self, operation: str, *, wait: float = 0) -> StopOperation:
        """See AgentClient.get_stop."""
        return self._run(self._client.get_stop(operation, wait=wait))

    def open_gate(self, epoch: int) -> GateInfo:
        """See AgentClient.open_gate."""
        return self._run(self._client.open_gate(epoch))

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(call)
