"""Processes of the tests."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["alive", "await_end", "end_session", "session_of"]


def alive(process: int) -> bool:
    """Whether it runs; one that has ended and waits for its parent does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def await_end(process: int, *, seconds: float = 10) -> None:
    """Wait until it does not run any more: a signal takes a moment on a busy machine."""
    deadline = time.monotonic() + seconds
    while alive(process):
        assert time.monotonic() < deadline, f"process {process} still runs after {seconds} s"
        time.sleep(0.05)


def end_session(leader: int) -> None:
    """Kill a process that began a session, and all that it started, in whatever groups they are."""
    deadline = time.monotonic() + 60
    while members := session_of(leader):
        assert time.monotonic() < deadline, f"processes {members} cannot be killed"
        for member in members:
            with suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        time.sleep(0.05)


def session_of(leader: int) -> list[int]:
    """Those of its processes that run; children stay in it when their parent ends."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_text().rsplit(")", 1)[1].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == leader and state != "Z":
            found.append(int(path.parent.name))
    return found
