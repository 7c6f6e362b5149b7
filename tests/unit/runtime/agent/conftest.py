"""Agents on loopback ports, and clients of theirs; all are closed when the test ends."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkpoint.runtime.agent import Agent, CaptureSettings, start_agent
from sparkpoint.runtime.client import SyncAgentClient
from tests.unit.runtime.agent.fakes import TOKEN, FakeJob, pretended

StartAgent = Callable[[CaptureSettings], Agent]
Connect = Callable[[Agent], SyncAgentClient]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The epoch directory."""
    folder = tmp_path / "epoch-3"
    folder.mkdir()
    return folder


@pytest.fixture
def job(root: Path) -> FakeJob:
    return FakeJob(root)


@pytest.fixture
def start(
    job: FakeJob, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StartAgent]:
    """Starts agents; nothing that they log holds the token."""
    caplog.set_level(logging.DEBUG)
    # Behind the other tests on a busy machine a capture would wait for minutes.
    monkeypatch.setattr("sparkpoint.runtime.agent.child.stand_back", lambda pid: None)
    with contextlib.ExitStack() as stack:

        def start(settings: CaptureSettings) -> Agent:
            agent = start_agent(job, host="127.0.0.1", port=0, token=TOKEN, savepoints=settings)
            stack.callback(agent.close)
            return agent

        yield start
    assert TOKEN not in caplog.text


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes clients."""
    with contextlib.ExitStack() as stack:
        yield lambda agent: stack.enter_context(SyncAgentClient(agent.url, TOKEN))


@pytest.fixture
def agent(start: StartAgent, root: Path) -> Agent:
    """An agent whose captures are pretended."""
    return start(pretended(root))


@pytest.fixture
def client(agent: Agent, connect: Connect) -> SyncAgentClient:
    """A client of `agent`."""
    return connect(agent)
