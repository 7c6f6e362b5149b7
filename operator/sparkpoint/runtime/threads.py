"""Wait for a script's threads as Python does before it ends."""

import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType

__all__ = ["await_threads", "working_threads"]

_LOOK = 1.0
_WORKER = "_worker"
"""The function that a thread of a pool is in when it has nothing to do."""


def await_threads(give_up: Callable[[], bool]) -> None:
    """Wait until no thread works that is not a daemon, or until `give_up` says so.

    A pool's idle threads do not count: Python ends them itself, at the very end.
    """
    while (working := working_threads()) and not give_up():
        working[0].join(_LOOK)


def working_threads() -> list[threading.Thread]:
    """Threads of the script that Python would wait for, without the calling one."""
    frames = sys._current_frames()
    return [
        thread
        for thread in threading.enumerate()
        if not thread.daemon
        and thread is not threading.current_thread()
        and not _is_idle(thread, frames)
    ]


def _is_idle(thread: threading.Thread, frames: Mapping[int, FrameType]) -> bool:
    frame = frames.get(thread.ident or 0)
    if frame is None:
        return False
    code = frame.f_code
    return code.co_name == _WORKER and code.co_filename.endswith("concurrent/futures/thread.py")
