"""Waits of tests: bounded, and with a word of what was waited for."""

import time
from collections.abc import Callable

__all__ = ["await_true"]


def await_true(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)
