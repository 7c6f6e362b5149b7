"""Drivers that are played: each has an agent at an address of its own, and batches by the clock.

They answer as the runtime's agent does (docs/agent.md), as far as the operator asks: the gate,
progress, stops with and without a savepoint, savepoints while they run. All share one event loop;
a driver that nobody asks costs nothing.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from aiohttp import web

from sparkpoint.controller.objects import AGENT_PORT
from sparkpoint.runtime.model import (
    Document,
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

__all__ = ["STARTING", "Driver", "serve", "summary"]

_QUERY: Final = "visits"
_BATCH: Final = 10.0
"""Seconds between two commits."""
_FIRST: Final = 2.0
"""Seconds from the gate to the first of them."""
STARTING: Final = 5.0
"""Seconds from a pod that runs to an agent that answers, at its gate: Spark starts meanwhile."""
_STOP: Final = 0.1
"""Seconds to the end of the batch, and of a savepoint of few bytes."""
_LISTENED: Final = 1.0
"""Seconds that an agent stays after its stop, for whoever still asks."""

Ended = Callable[[Termination], Awaitable[None]]


@dataclass
class Driver:
    """A process that runs; its times are those of the clock, so that nothing has to tick."""

    job: str
    epoch: int
    token: str
    base: int
    """Batches that were committed before it."""
    ended: Ended
    taking: float = 0.0
    """Seconds that a savepoint takes while it runs."""
    opened: datetime | None = None
    stopped: datetime | None = None
    stops: dict[str, tuple[StopRequest, StopOperation]] = field(default_factory=dict)
    savepoints: dict[str, tuple[datetime, SavepointOperation]] = field(default_factory=dict)
    """When each was asked for, and what it comes to."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def phase(self) -> Literal["gated", "running", "stopping"]:
        """Where it stands."""
        if self.opened is None:
            return "gated"
        return "stopping" if self.stops else "running"

    @property
    def batch(self) -> int | None:
        """The last one that was committed."""
        last = self.base + self._committed() - 1
        return last if last >= 0 else None

    def _committed(self) -> int:
        """How many batches this driver has done itself."""
        if self.opened is None:
            return 0
        until = self.stopped or datetime.now(UTC)
        age = (until - self.opened).total_seconds() - _FIRST
        return 1 + int(age // _BATCH) if age >= 0 else 0

    def progress(self) -> Progress:
        """What its agent says."""
        state: Literal["waiting", "open"] = "waiting" if self.opened is None else "open"
        queries = [] if self.opened is None else [self._query(self.opened)]
        gate = GateInfo(epoch=self.epoch, state=state)
        return Progress(
            job=self.job, epoch=self.epoch, phase=self.phase, gate=gate, queries=queries
        )

    def _query(self, opened: datetime) -> QueryProgress:
        done = self._committed()
        committed = opened + timedelta(seconds=_FIRST + (done - 1) * _BATCH) if done else None
        return QueryProgress(
            name=_QUERY,
            id=self.token[:8],
            run_id=str(self.epoch),
            active=True,
            batch=self.batch if done else None,
            input_rows=1000 * ((self.batch or 0) + 1),
            input_rows_per_second=100.0,
            processed_rows_per_second=1234.5,
            batch_seconds=0.8,
            state_rows=10_000,
            state_bytes=4_000_000,
            last_commit=committed,
            trigger_active=True,
        )

    def open_gate(self, epoch: int) -> GateInfo:
        """Its queries start."""
        if epoch == self.epoch and self.opened is None:
            self.opened = datetime.now(UTC)
        return GateInfo(epoch=self.epoch, state="open" if epoch == self.epoch else "closed")

    def stop(self, operation: str, request: StopRequest) -> StopOperation:
        """Asked for once; the process ends when the answer could be fetched."""
        if operation not in self.stops:
            running = StopOperation(operation=operation, state=OperationState.RUNNING)
            self.stops[operation] = (request, running)
            task = asyncio.create_task(self._stop(operation, request))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        return self.stops[operation][1]

    async def _stop(self, operation: str, request: StopRequest) -> None:
        await asyncio.sleep(_STOP)
        self.stopped = datetime.now(UTC)
        taken = request.savepoint_name
        savepoint = self._taken(taken) if taken is not None else None
        done = StopOperation(
            operation=operation,
            state=OperationState.DONE,
            report=StopReport(clean=True, queries=self._ends(), seconds=_STOP),
            savepoint=savepoint,
        )
        self.stops[operation] = (request, done)
        await asyncio.sleep(_LISTENED)
        await self.ended(self.last_words(EndReason.STOPPED, operation, taken))

    def last_words(
        self, reason: EndReason, operation: str | None = None, savepoint: str | None = None
    ) -> Termination:
        """The termination message."""
        return Termination(
            reason=reason,
            message="stopped at a boundary",
            exit_code=0,
            clean=True,
            epoch=self.epoch,
            operation=operation,
            savepoint=savepoint,
            queries=self._ends(),
        )

    def _ends(self) -> dict[str, QueryEnd]:
        return {_QUERY: QueryEnd(batch=self.batch, clean=True)}

    def savepoint(self, name: str) -> SavepointOperation:
        """Of the batch at which it was asked for."""
        asked, _ = self.savepoints.setdefault(name, (datetime.now(UTC), self._taken(name)))
        left = self.taking - (datetime.now(UTC) - asked).total_seconds()
        if left > 0:
            return SavepointOperation(name=name, state=OperationState.RUNNING)
        return self.savepoints[name][1]

    def _taken(self, name: str) -> SavepointOperation:
        result = summary(self.job, name, self.batch)
        return SavepointOperation(name=name, state=OperationState.DONE, result=result)


def summary(job: str, name: str, batch: int | None) -> SavepointSummary:
    """What a manifest says in short, whoever has written it."""
    return SavepointSummary(
        id=hashlib.sha256(f"{job}/{name}".encode()).hexdigest(),
        name=name,
        batches={_QUERY: batch} if batch is not None else {},
        files=10,
        bytes=4096,
        new_bytes=2048,
        seconds=_STOP,
        created=datetime.now(UTC),
        location=f"s3://data/savepoints/{job}/{name}.json",
    )


class _Agent:
    """The agent of one driver, as HTTP."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def application(self) -> web.Application:
        """What it answers to."""
        application = web.Application(middlewares=[_guard(self._driver.token)])
        application.add_routes(
            [
                web.get("/v1/progress", self.progress),
                web.put("/v1/gate/{epoch}", self.open_gate),
                web.put("/v1/stop/{name}", self.stop),
                web.get("/v1/stop/{name}", self.get_stop),
                web.put("/v1/savepoints/{name}", self.savepoint),
                web.get("/v1/savepoints/{name}", self.get_savepoint),
            ]
        )
        return application

    async def progress(self, _: web.Request) -> web.Response:
        return _answer(self._driver.progress())

    async def open_gate(self, request: web.Request) -> web.Response:
        return _answer(self._driver.open_gate(int(request.match_info["epoch"])))

    async def stop(self, request: web.Request) -> web.Response:
        wanted = StopRequest.model_validate_json(await request.read())
        return _answer(self._driver.stop(request.match_info["name"], wanted))

    async def get_stop(self, request: web.Request) -> web.Response:
        stops, name = self._driver.stops, request.match_info["name"]
        if name not in stops:
            raise web.HTTPNotFound
        left = float(request.query.get("wait", 0))
        while stops[name][1].state is OperationState.RUNNING and left > 0:
            await asyncio.sleep(_STOP / 2)
            left -= _STOP / 2
        return _answer(stops[name][1])

    async def savepoint(self, request: web.Request) -> web.Response:
        SavepointRequest.model_validate_json(await request.read())
        return _answer(self._driver.savepoint(request.match_info["name"]))

    async def get_savepoint(self, request: web.Request) -> web.Response:
        name, left = request.match_info["name"], float(request.query.get("wait", 0))
        if name not in self._driver.savepoints:
            raise web.HTTPNotFound
        while self._driver.savepoint(name).state is OperationState.RUNNING and left > 0:
            await asyncio.sleep(_STOP)
            left -= _STOP
        return _answer(self._driver.savepoint(name))


def _guard(token: str) -> Callable[..., Awaitable[web.StreamResponse]]:
    @web.middleware
    async def guard(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given, token):
            raise web.HTTPUnauthorized
        return await handler(request)

    return guard


async def serve(driver: Driver, address: str) -> web.AppRunner:
    """Let its agent listen there, until the runner is cleaned up."""
    runner = web.AppRunner(_Agent(driver).application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, address, AGENT_PORT, reuse_address=True).start()
    return runner


def _answer(document: Document) -> web.Response:
    return web.json_response(text=document.model_dump_json())
