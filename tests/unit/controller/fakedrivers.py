"""Drivers in memory: agents that can be asked, and that end as real ones do."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from sparkpoint.runtime.client import AgentRefusedError, AgentUnreachableError
from sparkpoint.runtime.model import (
    EndReason,
    GateInfo,
    OperationState,
    Progress,
    QueryEnd,
    QueryProgress,
    SavepointOperation,
    SavepointRequest,
    SavepointSummary,
    StopOperation,
    StopReport,
    StopRequest,
    Termination,
)

QUERY = "visits"
T = TypeVar("T")


@dataclass
class FakeDriver:
    """A driver whose pod runs."""

    job: str
    epoch: int
    token: str
    batch: int | None
    """The last committed one."""
    phase: Literal["starting", "gated", "running", "stopping", "ended"] = "gated"
    broken: bool = False
    """It fails as soon as its gate opens."""
    complaint: str = "the state cannot be read"
    silent: bool = False
    tells_time: bool = True
    """Agents of older versions do not."""
    hasty: bool = False
    """It is gone as soon as a stop is done, before anybody can ask how it went."""
    stops: dict[str, tuple[StopRequest, StopOperation]] = field(default_factory=dict)
    savepoints: dict[str, SavepointOperation] = field(default_factory=dict)
    termination: Termination | None = None

    def advance(self, now: datetime) -> None:
        """Time passes: a batch is committed, a stop is done."""
        if self.phase == "running" and self.broken:
            self.end(EndReason.QUERY_FAILED, 1, self.complaint, clean=False)
        elif self.phase == "running":
            self.batch = 0 if self.batch is None else self.batch + 1
        elif self.phase == "stopping":
            self._finish_stop(now)

    def _finish_stop(self, now: datetime) -> None:
        name, (request, known) = next(iter(self.stops.items()))
        if known.state is OperationState.DONE:
            self._end_stopped(known)
            return
        savepoint = self._captured(request, now)
        done = StopOperation(
            operation=name,
            state=OperationState.DONE,
            report=StopReport(clean=True, queries=self._ends(), seconds=0.1),
            savepoint=savepoint,
        )
        self.stops[name] = (request, done)
        if self.hasty:
            self._end_stopped(done)

    def _end_stopped(self, stop: StopOperation) -> None:
        self.end(
            EndReason.STOPPED,
            0,
            "stopped",
            clean=True,
            operation=stop.operation,
            savepoint=stop.savepoint.name if stop.savepoint is not None else None,
        )

    def _captured(self, request: StopRequest, now: datetime) -> SavepointOperation | None:
        if request.savepoint_name is None:
            return None
        return SavepointOperation(
            name=request.savepoint_name,
            state=OperationState.DONE,
            result=self.summary(request.savepoint_name, now),
        )

    def summary(self, name: str, now: datetime) -> SavepointSummary:
        """What a manifest of now says."""
        return SavepointSummary(
            id=f"{abs(hash((name, self.batch))):064x}"[:64],
            name=name,
            batches={QUERY: self.batch} if self.batch is not None else {},
            files=10,
            bytes=4096,
            new_bytes=2048,
            seconds=0.5,
            created=now,
            location=f"s3://data/savepoints/{name}.json",
        )

    def _ends(self) -> dict[str, QueryEnd]:
        return {QUERY: QueryEnd(batch=self.batch, clean=True)}

    def end(
        self,
        reason: EndReason,
        code: int,
        message: str,
        *,
        clean: bool,
        operation: str | None = None,
        savepoint: str | None = None,
    ) -> None:
        """The process ends."""
        self.phase = "ended"
        self.termination = Termination(
            reason=reason,
            message=message,
            exit_code=code,
            clean=clean,
            epoch=self.epoch,
            operation=operation,
            savepoint=savepoint,
            queries=self._ends(),
        )

    def answer(self, now: datetime) -> Progress:
        """What its agent says."""
        queries = [self._query(now)] if self.phase in ("running", "stopping") else []
        state: Literal["waiting", "open"] = "waiting" if self.phase == "gated" else "open"
        return Progress(
            job=self.job,
            epoch=self.epoch,
            phase=self.phase,
            gate=GateInfo(epoch=self.epoch, state=state),
            queries=queries,
            now=now if self.tells_time else None,
        )

    def _query(self, now: datetime) -> QueryProgress:
        return QueryProgress(
            name=QUERY,
            id="id",
            run_id="run",
            active=True,
            batch=self.batch,
            processed_rows_per_second=1234.5,
            last_commit=now if self.batch is not None else None,
            trigger_active=True,
        )


class Count(Protocol):
    """Counts a call, and may let the operator die in it."""

    def __call__(self, verb: str, kind: str, name: str, do: Callable[[], T]) -> T:
        """Do it."""
        ...


@dataclass
class FakeAgent:
    """The way to a driver, if there is one."""

    driver: FakeDriver | None
    token: str
    now: datetime
    count: Count

    def _reached(self) -> FakeDriver:
        driver = self.driver
        if driver is None or driver.silent or driver.phase == "ended":
            raise AgentUnreachableError("nobody there")
        if driver.token != self.token:
            raise AgentRefusedError(401, "wrong token", kind="Unauthorized")
        return driver

    async def progress(self) -> Progress:
        """See Agent."""
        return self.count("ask", "Agent", "", lambda: self._reached().answer(self.now))

    async def get_stop(self, operation: str, *, wait: float = 0) -> StopOperation:
        """See Agent."""
        return self.count("ask", "Agent", operation, lambda: self._known_stop(operation))

    async def stop(self, operation: str, request: StopRequest | None = None) -> StopOperation:
        """See Agent."""
        wanted = request or StopRequest()
        return self.count("stop", "Agent", operation, lambda: self._stop(operation, wanted))

    async def get_savepoint(self, name: str) -> SavepointOperation:
        """See Agent."""
        return self.count("ask", "Agent", name, lambda: self._known_savepoint(name))

    async def savepoint(self, name: str, request: SavepointRequest) -> SavepointOperation:
        """See Agent. Done at once."""
        return self.count("savepoint", "Agent", name, lambda: self._savepoint(name))

    async def open_gate(self, epoch: int) -> GateInfo:
        """See Agent."""
        return self.count("gate", "Agent", str(epoch), lambda: self._open(epoch))

    def _known_stop(self, operation: str) -> StopOperation:
        known = self._reached().stops.get(operation)
        if known is None:
            raise AgentRefusedError(404, "no such stop", kind="NotFound")
        return known[1]

    def _stop(self, operation: str, wanted: StopRequest) -> StopOperation:
        driver = self._reached()
        if driver.stops and operation not in driver.stops:
            raise AgentRefusedError(409, "another stop", kind="StopUnderWay")
        if operation not in driver.stops:
            running = StopOperation(operation=operation, state=OperationState.RUNNING)
            driver.stops[operation] = (wanted, running)
            driver.phase = "stopping"
        elif driver.stops[operation][0] != wanted:
            raise AgentRefusedError(409, "another request", kind="Conflict")
        return driver.stops[operation][1]

    def _known_savepoint(self, name: str) -> SavepointOperation:
        known = self._reached().savepoints.get(name)
        if known is None:
            raise AgentRefusedError(404, "no such savepoint", kind="NotFound")
        return known

    def _savepoint(self, name: str) -> SavepointOperation:
        driver = self._reached()
        done = SavepointOperation(
            name=name, state=OperationState.DONE, result=driver.summary(name, self.now)
        )
        return driver.savepoints.setdefault(name, done)

    def _open(self, epoch: int) -> GateInfo:
        driver = self._reached()
        if epoch != driver.epoch:
            raise AgentRefusedError(409, "another epoch", kind="WrongEpoch")
        if driver.phase == "gated":
            driver.phase = "running"
        return GateInfo(epoch=epoch, state="open")
