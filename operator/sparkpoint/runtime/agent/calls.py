"""Calls into the job from the event loop: in threads that never keep the process alive.

asyncio's own executor would: the interpreter waits for its threads at exit, and a stop may block
for as long as a batch takes.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """The call's result or exception; if the waiting is cancelled, the call runs on unheard."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            # The call returned it, and T may be None itself.
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = call()
        # It is raised again where somebody waits for it.
        except Exception as caught:
            error = caught
        # The loop may be closed by now: then nobody waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="sparkpoint-call", daemon=True).start()
    return await future
