"""Savepoints on request: one capture at a time, the others queue, and a full queue refuses."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace

from sparkpoint.runtime.agent.calls import in_thread
from sparkpoint.runtime.agent.child import capture_process
from sparkpoint.runtime.agent.errors import CaptureFailedError, RefusalError
from sparkpoint.runtime.explaining import explain
from sparkpoint.runtime.metrics import SavepointFigures
from sparkpoint.runtime.model import (
    Document,
    ErrorInfo,
    Job,
    OperationState,
    QueryProgress,
    SavepointOperation,
    SavepointRequest,
    SavepointSummary,
)
from sparkpoint.runtime.operations import Operations
from sparkpoint.runtime.orders import CaptureSettings, Counted, Go, Line

__all__ = ["QUEUE", "Savepoints"]

logger = logging.getLogger(__name__)

QUEUE = 8
"""Live savepoints that may wait for the one under way."""
_RETRY_AFTER = "10"
_CLOSED = ErrorInfo(
    type="DriverEnding",
    message="The driver ended before the savepoint was made. Ask its successor again.",
    retry_helps=True,
)


class Wanted(Document):
    """A request, and whose it is: one for a stop is never answered with a live savepoint."""

    request: SavepointRequest
    stop: str | None = None


class Savepoints:
    """All savepoints of this agent; used from its event loop only."""

    def __init__(self, job: Job, settings: CaptureSettings, tasks: asyncio.TaskGroup) -> None:
        self._job, self._settings, self._tasks = job, settings, tasks
        self._turn = asyncio.Lock()
        self._live: set[str] = set()
        self._figures = SavepointFigures()
        self.operations: Operations[Wanted, SavepointOperation] = Operations("Savepoint")

    @property
    def figures(self) -> SavepointFigures:
        """For the metrics."""
        running = self.operations.names(OperationState.RUNNING)
        return replace(self._figures, running=len(running))

    def put(self, name: str, request: SavepointRequest) -> None:
        """Begin a live savepoint, unless there is this one already."""
        wanted = Wanted(request=request)
        if not self.operations.is_new(name, wanted):
            return
        if len(self._live) > QUEUE:
            raise RefusalError(
                429,
                "QueueFull",
                f"{QUEUE} savepoints wait for the one under way.",
                remedy="Ask again when one is done.",
                headers={"Retry-After": _RETRY_AFTER},
            )
        self._begin(name, wanted, stage="queued")
        self._live.add(name)
        self._tasks.create_task(self._take_live(name, request), name=f"savepoint {name}")

    def check_free_for_stop(self, name: str, request: SavepointRequest, stop: str) -> None:
        """ConflictError if the name belongs to anything but this stop."""
        self.operations.is_new(name, Wanted(request=request, stop=stop))

    async def take_at_boundary(
        self,
        name: str,
        request: SavepointRequest,
        *,
        stop: str,
        reach: Callable[[], Awaitable[None]],
    ) -> SavepointOperation:
        """Prepare, let `reach` bring the job to its boundary, capture; fails without `reach` if
        preparing does.

        It waits for no turn: after a stop there is nothing that it could disturb.
        """
        wanted = Wanted(request=request, stop=stop)
        if self.operations.is_new(name, wanted):
            self._begin(name, wanted, stage="preparing")
            await self._take(name, request, stop=True, reach=reach)
        else:
            await reach()
        return self.operations.running(name)

    def close(self) -> None:
        """Tell whoever waits that there will be no more."""
        for name in self.operations.names(OperationState.RUNNING):
            self._fail(name, _CLOSED)

    def _begin(self, name: str, wanted: Wanted, *, stage: str) -> None:
        running = SavepointOperation(name=name, state=OperationState.RUNNING, stage=stage)
        self.operations.begin(name, wanted, running)

    async def _take_live(self, name: str, request: SavepointRequest) -> None:
        try:
            async with self._turn:
                await self._take(name, request, stop=False, reach=_stay)
        finally:
            self._live.discard(name)

    async def _take(
        self,
        name: str,
        request: SavepointRequest,
        *,
        stop: bool,
        reach: Callable[[], Awaitable[None]],
    ) -> None:
        logger.info("Savepoint %s into %s: begins", name, request.repository)
        order = self._settings.order(name, request, stops=stop)
        self._heard(name, Line(stage="preparing"))
        try:
            async with capture_process(
                self._settings.command, lambda line: self._heard(name, line), in_hurry=stop
            ) as process:
                await process.prepared(order)
                await reach()
                checkpoints = await in_thread(self._job.checkpoints)
                told = (await in_thread(self._job.progress)).queries
                summary = await process.result(_go(checkpoints, told))
        except CaptureFailedError as error:
            self._fail(name, error.info)
        # The outermost loop of a savepoint: whatever the job raised, the one who asked shall know.
        except Exception as error:
            logger.exception("Savepoint %s: unexpected", name)
            self._fail(name, explain(error))
        else:
            self._done(name, summary)

    def _heard(self, name: str, line: Line) -> None:
        if line.stage is None:
            return
        progress = {
            "stage": line.stage,
            "done_bytes": line.done_bytes,
            "total_bytes": line.total_bytes,
        }
        self.operations.update(name, self.operations.running(name).model_copy(update=progress))

    def _done(self, name: str, summary: SavepointSummary) -> None:
        logger.info(
            "Savepoint %s: done, batches %s, %d new of %d bytes in %.1f s",
            name,
            summary.batches,
            summary.new_bytes,
            summary.bytes,
            summary.seconds,
        )
        self._figures = self._figures.with_done(summary, time.time())
        done = {
            "state": OperationState.DONE,
            "stage": "done",
            "done_bytes": summary.bytes,
            "total_bytes": summary.bytes,
            "result": summary,
        }
        self.operations.update(name, self.operations.running(name).model_copy(update=done))

    def _fail(self, name: str, info: ErrorInfo) -> None:
        logger.warning("Savepoint %s: failed: %s", name, info.message)
        self._figures = self._figures.with_failed()
        failed = {"state": OperationState.FAILED, "error": info}
        self.operations.update(name, self.operations.running(name).model_copy(update=failed))


def _go(checkpoints: Mapping[str, str], told: Iterable[QueryProgress]) -> Go:
    """With all that is known of the queries and is not in their checkpoints."""
    queries = list(told)
    return Go(
        checkpoints=dict(checkpoints),
        sinks={query.name: query.sink for query in queries if query.sink is not None},
        counted={
            query.name: Counted(batch=query.batch, rows=query.state_rows, counts=query.state_counts)
            for query in queries
            if query.batch is not None
        },
    )


async def _stay() -> None:
    """A live savepoint is taken wherever the job is."""
