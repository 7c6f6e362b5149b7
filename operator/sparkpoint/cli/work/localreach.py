"""Reaching the agent of a local run.

Whether anything runs, the home's lock says: the agent is spoken to, and shown its token, only if
the process that wrote agent.json still holds it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from sparkpoint.cli.work import localtext
from sparkpoint.cli.work.localerrors import AgentFailedError, LackingError, NotRunningError
from sparkpoint.cli.work.localhome import AgentNote, Home, usable
from sparkpoint.cli.work.locallock import holder
from sparkpoint.runtime.model import Termination

try:
    from sparkpoint.runtime.client import (
        AgentRefusedError,
        AgentUnreachableError,
        SyncAgentClient,
    )
except ModuleNotFoundError as error:
    if error.name != "aiohttp":
        raise
    raise LackingError(
        "Talking to a local run needs aiohttp, which this Python does not have. Install: "
        "pip install 'sparkpoint[runtime]'"
    ) from error

__all__ = ["AgentUnreachableError", "Run", "await_end", "last_word", "reached", "termination"]

_START_SECONDS = 30.0
"""How long a run may take until its agent listens: Python loads Spark before."""
_END_SECONDS = 30.0
"""How long it may take to dismiss Spark once its queries stand."""
_PAUSE = 0.1


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is under way."""

    home: Home
    note: AgentNote
    client: SyncAgentClient


@contextmanager
def reached(home: Home) -> Iterator[Run]:
    """The run of this home, once its agent answers; whatever it refuses is an error of ours."""
    with usable(home):
        note = _await_note(home)
        token = Path(note.token_file).read_text().strip()
    with SyncAgentClient(note.url, token) as client:
        _await_agent(home, client, note)
        try:
            yield Run(home, note, client)
        except AgentRefusedError as error:
            raise AgentFailedError(
                str(error), kind=error.kind, retry_helps=error.retry_helps
            ) from error
        except AgentUnreachableError as error:
            raise AgentFailedError(
                f"{error} {last_word(home)}".rstrip(), retry_helps=True
            ) from error


def _await_note(home: Home) -> AgentNote:
    """agent.json of the process that holds the lock; there may be a moment between the two."""
    deadline = time.monotonic() + _START_SECONDS
    while (pid := holder(home)) is not None:
        note = _note(home)
        if note is not None and note.pid == pid:
            return note
        if time.monotonic() > deadline:
            # A long restore comes before it, and may well take longer than this.
            raise AgentFailedError(
                f"Process {pid} prepares a run in {home.root} and has not begun it yet. Ask again "
                "when it has.",
                retry_helps=True,
            )
        time.sleep(_PAUSE)
    raise NotRunningError(
        f"Nothing runs in {home.root}. {last_word(home)} Start it with `sparkpoint run --local`."
    )


def _note(home: Home) -> AgentNote | None:
    try:
        return AgentNote.model_validate_json(home.agent.read_bytes())
    except (FileNotFoundError, ValidationError):
        # Not yet, or left by another version.
        return None


def _await_agent(home: Home, client: SyncAgentClient, note: AgentNote) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not client.healthy():
        if holder(home) != note.pid:
            raise NotRunningError(f"The run in {home.root} has just ended. {last_word(home)}")
        if time.monotonic() > deadline:
            raise AgentFailedError(
                f"Process {note.pid} runs in {home.root}, but its agent at {note.url} does not "
                "answer. Look at what the run has printed.",
                retry_helps=True,
            )
        time.sleep(_PAUSE)


def await_end(home: Home) -> bool:
    """Whether the process has ended, in time."""
    deadline = time.monotonic() + _END_SECONDS
    while holder(home) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE)
    return True


def last_word(home: Home) -> str:
    """How the last run ended, in a sentence."""
    word = termination(home)
    if word is not None:
        return localtext.ending_text(word, home.termination.stat().st_mtime, datetime.now(UTC))
    if home.agent.exists():
        return "The last run left no word: it was killed."
    return "Nothing was ever started."


def termination(home: Home) -> Termination | None:
    """What the last run wrote down at its end; None if it did not get to that."""
    try:
        return Termination.model_validate_json(home.termination.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
