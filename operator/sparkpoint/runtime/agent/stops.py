"""Stops on request: at most one, to the boundary, with a savepoint there if one is wanted.

Everything about the savepoint that can fail beforehand does so before the job is touched.
"""

import asyncio
import logging

from sparkpoint.runtime.agent.calls import in_thread
from sparkpoint.runtime.agent.errors import CaptureFailedError, RefusalError
from sparkpoint.runtime.agent.savepoints import Savepoints
from sparkpoint.runtime.explaining import explain
from sparkpoint.runtime.model import (
    ErrorInfo,
    Job,
    OperationState,
    SavepointOperation,
    StopOperation,
    StopReport,
    StopRequest,
)
from sparkpoint.runtime.operations import Operations

__all__ = ["Stops"]

logger = logging.getLogger(__name__)


class Stops:
    """The stops of this agent; used from its event loop only."""

    def __init__(self, job: Job, savepoints: Savepoints, tasks: asyncio.TaskGroup) -> None:
        self._job, self._savepoints, self._tasks = job, savepoints, tasks
        self._report: StopReport | None = None
        """Of a stop that has brought the job to a stand: no later one finds it running."""
        self.operations: Operations[StopRequest, StopOperation] = Operations("Stop")

    async def settled(self, operation: str, seconds: float) -> StopOperation | None:
        """The answer when it has ended, or as it is when so much time is over."""
        answer = await self.operations.settled(operation, seconds)
        if answer is None or answer.savepoint is None:
            return answer
        newest = self._savepoints.operations.get(answer.savepoint.name)
        return answer.model_copy(update={"savepoint": newest or answer.savepoint})

    def put(self, operation: str, request: StopRequest) -> None:
        """Begin it, unless it is under way or done."""
        if not self.operations.is_new(operation, request):
            return
        self._check_alone(operation, request)
        if request.savepoint is not None and request.savepoint_name is not None:
            self._savepoints.check_free_for_stop(
                request.savepoint_name, request.savepoint, operation
            )
        running = StopOperation(
            operation=operation, state=OperationState.RUNNING, report=self._report
        )
        self.operations.begin(operation, request, running)
        self._tasks.create_task(self._run(operation, request), name=f"stop {operation}")

    def _check_alone(self, operation: str, request: StopRequest) -> None:
        for state in (OperationState.RUNNING, OperationState.DONE):
            for other in self.operations.names(state):
                raise RefusalError(
                    409,
                    "StopUnderWay",
                    f"Stop {other} is {state.value.lower()}; {operation} cannot begin as well.",
                    remedy=f"Ask for /v1/stop/{other}.",
                    shown={"wanted": request},
                )

    async def _run(self, operation: str, request: StopRequest) -> None:
        logger.info("Stop %s: begins", operation)
        try:
            name = await self._stop(operation, request)
            self._change(operation, state=OperationState.DONE)
            logger.info("Stop %s: done, the process may end", operation)
            # Last: whoever waits has its answer before the process can end.
            await in_thread(lambda: self._job.finish(operation, name))
        except CaptureFailedError as error:
            self._fail(operation, error.info)
        # The outermost loop of a stop: whatever the job raised, the one who asked shall know.
        except Exception as error:
            logger.exception("Stop %s: unexpected", operation)
            self._fail(operation, explain(error))

    async def _stop(self, operation: str, request: StopRequest) -> str | None:
        """Stop, and capture if that is wanted; the savepoint's name."""

        async def reach() -> None:
            budget = request.budget_seconds
            report = await in_thread(lambda: self._job.stop(operation, budget))
            logger.info("Stop %s: clean %s in %.2f s", operation, report.clean, report.seconds)
            self._report = report
            self._change(operation, report=report)

        if request.savepoint is None or request.savepoint_name is None:
            await reach()
            return None
        name = request.savepoint_name
        running = SavepointOperation(name=name, state=OperationState.RUNNING)
        self._change(operation, savepoint=running)
        answer = await self._savepoints.take_at_boundary(
            name, request.savepoint, stop=operation, reach=reach
        )
        self._change(operation, savepoint=answer)
        if answer.error is not None:
            raise CaptureFailedError(answer.error)
        return name

    def _fail(self, operation: str, info: ErrorInfo) -> None:
        logger.warning("Stop %s: failed: %s", operation, info.message)
        self._change(operation, state=OperationState.FAILED, error=info)

    def _change(self, operation: str, **changes: object) -> None:
        answer = self.operations.running(operation)
        self.operations.update(operation, answer.model_copy(update=changes))
