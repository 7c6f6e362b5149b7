"""The agent: an HTTP server with its own event loop in a daemon thread of the driver.

The script never waits for it: the loop only answers, and what takes time runs in other threads or
in another process.
"""

import asyncio
import logging
import threading

from aiohttp import web

from sparkpoint.runtime.agent.errors import AgentError
from sparkpoint.runtime.agent.guard import Guard
from sparkpoint.runtime.agent.routes import Routes
from sparkpoint.runtime.agent.savepoints import Savepoints
from sparkpoint.runtime.agent.stops import Stops
from sparkpoint.runtime.model import Job
from sparkpoint.runtime.orders import CaptureSettings

__all__ = ["Agent", "start_agent"]

logger = logging.getLogger(__name__)

_START_SECONDS = 30.0
_CLOSE_SECONDS = 5.0
_SHUTDOWN = 1.0
"""Seconds for answers that are being written when the agent closes."""
_IDLE = 75.0
"""Seconds until a silent connection is closed, also one that never sent a whole header."""


class _Ending(Exception):  # noqa: N818 - not an error: it ends the group of tasks
    """Ends all tasks of the agent."""


def start_agent(
    job: Job, *, host: str, port: int, token: str, savepoints: CaptureSettings
) -> "Agent":
    """Listen, and return when it does; port 0 lets the system choose. AgentError if it cannot."""
    if not token or token != token.strip() or not token.isprintable():
        raise AgentError(
            "The agent's token is empty, or has spaces or line ends around it. Check the file that "
            "it is read from."
        )
    agent = Agent(job, host=host, port=port, token=token, savepoints=savepoints)
    agent._start()
    return agent


class Agent:
    """A running agent; made by `start_agent`."""

    def __init__(
        self, job: Job, *, host: str, port: int, token: str, savepoints: CaptureSettings
    ) -> None:
        self._job, self._guard, self._settings = job, Guard(token), savepoints
        self.host, self.port = host, port
        self._begun = threading.Event()
        self._failure: Exception | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="sparkpoint-agent", daemon=True)

    @property
    def url(self) -> str:
        """Where clients find it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def close(self) -> None:
        """Answer who waits, end a capture that runs, and stop listening; again is fine."""
        loop = self._loop
        if loop is not None and self._thread.is_alive():
            try:
                loop.call_soon_threadsafe(self._end.set)
            except RuntimeError:
                # It ended by itself just now.
                return
        self._thread.join(_CLOSE_SECONDS)

    def _start(self) -> None:
        self._thread.start()
        if not self._begun.wait(_START_SECONDS):
            raise AgentError(f"The agent did not start within {_START_SECONDS:.0f} s.")
        if self._failure is not None:
            raise AgentError(
                f"The agent cannot listen on {self.host}:{self.port}: {self._failure}. Free the "
                "port or choose another one, and check that the host is an address of this machine."
            ) from self._failure

    def _run(self) -> None:
        # Named, because the script may install another event loop policy for its own purposes.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            try:
                runner.run(self._serve())
            except* _Ending:
                logger.debug("The agent has ended")
            finally:
                self._begun.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            savepoints = Savepoints(self._job, self._settings, tasks)
            stops = Stops(self._job, savepoints, tasks)
            application = Routes(self._job, savepoints, stops).application(self._guard)
            runner = web.AppRunner(
                application,
                access_log=None,
                handle_signals=False,
                # A long poll whose client is gone gives its place back. Nothing else is lost: no
                # operation runs inside a request.
                handler_cancellation=True,
                keepalive_timeout=_IDLE,
                shutdown_timeout=_SHUTDOWN,
            )
            await runner.setup()
            try:
                if not await self._listen(runner):
                    return
                await self._end.wait()
                savepoints.close()
                stops.operations.close()
                savepoints.operations.close()
            finally:
                await runner.cleanup()
            raise _Ending

    async def _listen(self, runner: web.AppRunner) -> bool:
        site = web.TCPSite(runner, self.host, self.port)
        try:
            await site.start()
        # An address that cannot be bound, or a port that is none.
        except (OSError, OverflowError) as error:
            self._failure = error
            return False
        self.port = site.port
        logger.info("The agent listens on %s", self.url)
        self._begun.set()
        return True
