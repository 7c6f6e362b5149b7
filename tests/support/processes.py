"""Processes of the tests."""

import time
from pathlib import Path

__all__ = ["alive", "await_end"]


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
