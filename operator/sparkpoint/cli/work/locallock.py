"""One process at a time in a home: a lock that the kernel gives back when its holder ends.

`sparkpoint run` takes it and becomes the runtime (exec), which keeps the descriptor and with it the
lock.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparkpoint.cli.work.localerrors import HomeBusyError
from sparkpoint.cli.work.localhome import Home

__all__ = ["UNKNOWN", "holder", "locked"]

UNKNOWN = 0
"""Something holds the lock and has not written its process id yet."""
_PATIENCE = 1.0
"""Seconds: longer than somebody needs who only looks whether the lock is held."""
_PAUSE = 0.05


@contextmanager
def locked(home: Home) -> Iterator[None]:
    """Hold the lock, also as whatever program this process becomes within the block."""
    descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _take(home, descriptor)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        os.set_inheritable(descriptor, True)
        yield
    finally:
        os.close(descriptor)


def _take(home: Home, descriptor: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not _try(descriptor, fcntl.LOCK_EX):
        if time.monotonic() > deadline:
            raise _busy(home)
        time.sleep(_PAUSE)


def holder(home: Home) -> int | None:
    """The process that runs here, UNKNOWN if it has not told yet; None if there is none."""
    try:
        descriptor = os.open(home.lock, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        # Shared: those who look do not see each other, and whoever wants to run has patience.
        return None if _try(descriptor, fcntl.LOCK_SH) else _written(home.lock)
    finally:
        os.close(descriptor)


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _written(lock: Path) -> int:
    text = lock.read_text().strip()
    return int(text) if text.isascii() and text.isdecimal() else UNKNOWN


def _busy(home: Home) -> HomeBusyError:
    pid = _written(home.lock)
    who = f"Process {pid}" if pid != UNKNOWN else "Another process"
    return HomeBusyError(
        f"{who} runs in {home.root} already, and two would ruin its state. Stop it with "
        "`sparkpoint local stop`, or give another --home."
    )
