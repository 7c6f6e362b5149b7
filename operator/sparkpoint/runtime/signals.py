"""SIGTERM and SIGINT, heard at once: even while the main thread waits in the JVM for ever.

Python runs a handler in the main thread, and only between two of its steps. So the wake-up pipe,
which the C handler writes to, is read by a thread of ours. A script may have handlers of its own:
they are called as Python would call them, while we stop the queries.
"""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

from sparkpoint.runtime.errors import ScriptOver

__all__ = ["Signals"]

_HEARD = (signal.SIGTERM, signal.SIGINT)
_NUDGE = signal.SIGURG
"""Nobody sends it, and who does not handle it does not notice."""
_BYTES = 512
_PATIENCE = 1.0
"""Seconds. A signal may interrupt the main thread where it holds what the listener needs."""


class Signals:
    """What the process is told from outside; made and installed in the main thread."""

    def __init__(self, on_signal: Callable[[signal.Signals], None]) -> None:
        self._on_signal = on_signal
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, end == self._read)
        self._main = threading.main_thread().ident or 0
        self._handlers: dict[int, Any] = {each: signal.getsignal(each) for each in _HEARD}
        self._scripts_pipe = -1
        self._is_over = self._is_child = self._is_nudged = False
        self._forking = threading.local()
        self._news = threading.Condition()
        self._told, self._called = Counter[int](), Counter[int]()
        self.runs_script = False
        """Set by the main thread around the script: only there may it be unwound."""

    def install(self) -> None:
        """Begin to listen; the script's own use of the signal module is led past us."""
        self._set_signal, self._set_pipe = signal.signal, signal.set_wakeup_fd
        for each in _HEARD:
            self._set_signal(each, self._handle)
        self._set_signal(_NUDGE, self._leave)
        self._set_pipe(self._write, warn_on_full_buffer=False)
        signal.signal = self._signal  # type: ignore[assignment]
        signal.getsignal = self._getsignal  # type: ignore[assignment]
        signal.set_wakeup_fd = self._set_wakeup_fd
        os.register_at_fork(
            before=self._hold_back, after_in_parent=self._let_go, after_in_child=self._forget
        )
        threading.Thread(target=self._listen, name="sparkpoint-signals", daemon=True).start()

    def unwind_script(self) -> None:
        """Raise ScriptOver in the main thread if the script still runs there."""
        self._is_over = True
        signal.pthread_kill(self._main, signal.SIGTERM)

    def nudge_script(self) -> None:
        """As `unwind_script`, once, and only where the main thread may be used afterwards.

        In the midst of a call into the JVM nothing happens, for its answer would be taken for that
        of the next call: so try again.
        """
        self._is_nudged = True
        signal.pthread_kill(self._main, _NUDGE)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        if self._is_nudged and self.runs_script and not _is_in_py4j(frame):
            self._is_nudged = self.runs_script = False
            raise ScriptOver

    def _listen(self) -> None:
        while data := os.read(self._read, _BYTES):
            if self._scripts_pipe >= 0:
                os.write(self._scripts_pipe, data)
            for number in data:
                if number in _HEARD:
                    self._on_signal(signal.Signals(number))
                    with self._news:
                        self._told[number] += 1
                        self._news.notify_all()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_over and self.runs_script:
            raise ScriptOver
        self._await_told(number)
        handler = self._handlers[number]
        # Not Python's own KeyboardInterrupt: the script is to go on until its queries stand.
        if callable(handler) and handler is not signal.default_int_handler:
            handler(number, frame)

    def _await_told(self, number: int) -> None:
        """A handler may end the script: that we were told to end must be known before."""
        # Python calls once for several that came together, so this never waits for too many.
        self._called[number] += 1
        wanted = self._called[number]
        with self._news:
            self._news.wait_for(lambda: self._told[number] >= wanted, _PATIENCE)

    def _signal(self, number: int, handler: Any) -> Any:
        if number not in _HEARD or self._is_child:
            return self._set_signal(number, handler)
        # Fails where Python would: in any other thread than the main one.
        self._set_signal(number, self._handle)
        before = self._handlers[number]
        # PySpark cancels every job on SIGINT, which is just what must not happen.
        if not str(getattr(handler, "__module__", "")).startswith("pyspark."):
            self._handlers[number] = handler
        return before

    def _getsignal(self, number: int) -> Any:
        ours = number in _HEARD and not self._is_child
        return self._handlers[number] if ours else _getsignal(number)

    def _set_wakeup_fd(self, fd: int, *, warn_on_full_buffer: bool = True) -> int:
        """An event loop wants to be woken too: it gets what we read."""
        if self._is_child:
            return self._set_pipe(fd, warn_on_full_buffer=warn_on_full_buffer)
        before, self._scripts_pipe = self._scripts_pipe, fd
        return before

    def _hold_back(self) -> None:
        """No signal may reach a child that still has our pipe."""
        self._forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)

    def _let_go(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._forking.mask)

    def _forget(self) -> None:
        """In a forked child: its signals are its own, and must not reach our pipe."""
        self._is_child = True
        self._set_pipe(-1)
        for number, handler in self._handlers.items():
            self._set_signal(number, handler)
        self._let_go()


def _is_in_py4j(frame: FrameType | None) -> bool:
    while frame is not None:
        if f"{os.sep}py4j{os.sep}" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


_getsignal = signal.getsignal
