"""Runs the process that captures, and ends it whatever happens."""

import asyncio
import contextlib
import logging
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable

from pydantic import ValidationError

from sparkpoint.runtime.agent.errors import CaptureFailedError
from sparkpoint.runtime.agent.priority import stand_back
from sparkpoint.runtime.model import ErrorInfo, SavepointSummary
from sparkpoint.runtime.orders import Go, Line, Order

__all__ = ["CaptureProcess", "capture_process"]

logger = logging.getLogger(__name__)

_LINE_LIMIT = 4 * 1024 * 1024
_GRACE = 1.0
"""Seconds to give a lease back; a process that is killed leaves it to its expiry."""


class CaptureProcess:
    """One capture: `prepared`, then `result`."""

    def __init__(self, process: Process, report: Callable[[Line], None]) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("a capture process needs both pipes")
        self._process, self._report = process, report
        self._input, self._output = process.stdin, process.stdout

    async def prepared(self, order: Order) -> None:
        """Wait until it has looked whether the order can be done; CaptureFailedError if not."""
        await self._send(order.model_dump_json())
        while not (await self._line()).ready:
            pass

    async def result(self, go: Go) -> SavepointSummary:
        """Let it capture, and wait for the end; CaptureFailedError if that is a bad one."""
        await self._send(go.model_dump_json())
        while (line := await self._line()).result is None:
            self._report(line)
        return line.result

    async def _send(self, text: str) -> None:
        # If it is dead already, reading tells why, or at least that.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._input.write(f"{text}\n".encode())
            await self._input.drain()

    async def _line(self) -> Line:
        data = await self._output.readline()
        if not data:
            raise CaptureFailedError(_ended(await self._process.wait()))
        try:
            line = Line.model_validate_json(data)
        except ValidationError:
            logger.warning("The capture process said something unknown: %r", data[:200])
            return Line()
        if line.error is not None:
            raise CaptureFailedError(line.error)
        return line


@contextlib.asynccontextmanager
async def capture_process(
    command: tuple[str, ...], report: Callable[[Line], None], *, in_hurry: bool
) -> AsyncIterator[CaptureProcess]:
    """Start it; it is gone when the block ends.

    `in_hurry`: the job stands still for it, so nobody is there to be considerate of.
    """
    try:
        # A group of its own: Ctrl-C on a laptop is for the driver, which then ends this. No session
        # of its own: Linux may share processors among sessions before it looks at priorities.
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, limit=_LINE_LIMIT, process_group=0
        )
    except OSError as error:
        info = ErrorInfo(
            type="CaptureNotStarted",
            message=f"The capture process could not be started: {error}. The job is not touched.",
            retry_helps=True,
        )
        raise CaptureFailedError(info) from error
    if not in_hurry:
        stand_back(process.pid)
    try:
        yield CaptureProcess(process, report)
    finally:
        await _end(process)


async def _end(process: Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _ended(code: int) -> ErrorInfo:
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    memory = " (out of memory?)" if code == -signal.SIGKILL else ""
    return ErrorInfo(
        type="CaptureKilled",
        message=f"The capture process ended with {how}{memory} before it was done. The job goes "
        "on and the repository is whole; the same request tries again.",
        retry_helps=True,
    )
