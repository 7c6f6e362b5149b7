"""The client where there is no agent, or something else."""

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import aiohttp
import pytest

from sparkpoint.runtime.agent import Agent
from sparkpoint.runtime.client import (
    AgentClient,
    AgentRefusedError,
    AgentUnreachableError,
    SyncAgentClient,
)
from tests.support.ports import closed_port
from tests.unit.runtime.agent.fakes import TOKEN


class _Stranger(http.server.BaseHTTPRequestHandler):
    answer: ClassVar[tuple[int, bytes]] = (200, b"")
    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.seen.append(self.path)
        status, body = self.answer
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Silence."""


@contextmanager
def stranger(status: int, body: bytes) -> Iterator[SyncAgentClient]:
    """A client of a server that is no agent."""
    handler = type("Handler", (_Stranger,), {"answer": (status, body), "seen": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}"
            with SyncAgentClient(url, TOKEN) as client:
                yield client
            assert "/elsewhere" not in handler.seen  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join(20)


def test_nobody_there_is_unreachable() -> None:
    with (
        closed_port() as port,
        SyncAgentClient(f"http://127.0.0.1:{port}", TOKEN) as client,
    ):
        with pytest.raises(AgentUnreachableError, match=str(port)) as caught:
            client.progress()

        assert caught.value.retry_helps
        assert not client.healthy()


def test_no_answer_is_unreachable_within_the_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()
        with (
            SyncAgentClient(url, TOKEN, timeout=0.2) as client,
            pytest.raises(AgentUnreachableError, match=r"0\.2 s"),
        ):
            client.progress()

    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"job": 1}', b"\xff"])
def test_an_answer_of_something_else_is_unreachable(body: bytes) -> None:
    with (
        stranger(200, body) as client,
        pytest.raises(AgentUnreachableError, match="no Progress"),
    ):
        client.progress()


@pytest.mark.parametrize(("status", "body"), [(500, b"oops"), (302, b""), (404, b'{"error": 1}')])
def test_an_error_of_something_else_is_a_refusal(status: int, body: bytes) -> None:
    with (
        stranger(status, body) as client,
        pytest.raises(AgentRefusedError, match=f"status {status}") as caught,
    ):
        client.progress()

    assert caught.value.status == status
    assert not caught.value.retry_helps


def test_a_wrong_token_is_a_refusal_with_the_remedy(agent: Agent) -> None:
    with (
        SyncAgentClient(agent.url, "wrong") as client,
        pytest.raises(AgentRefusedError, match="Authorization: Bearer") as caught,
    ):
        client.progress()

    assert (caught.value.status, caught.value.kind) == (401, "Unauthorized")


async def _with_shared_session(agent: Agent) -> bool:
    async with aiohttp.ClientSession() as session:
        async with AgentClient(agent.url, TOKEN, session=session) as client:
            await client.progress()
        return session.closed


def test_a_shared_session_is_left_open(agent: Agent) -> None:
    import asyncio

    assert asyncio.run(_with_shared_session(agent)) is False
