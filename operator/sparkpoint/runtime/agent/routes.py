"""The paths of the agent. Handlers read the request, ask, and answer; what takes time is behind."""

import asyncio
import math
from typing import TypeVar

from aiohttp import web
from pydantic import ValidationError

from sparkpoint.runtime.agent.answers import answer, bad_request
from sparkpoint.runtime.agent.calls import in_thread
from sparkpoint.runtime.agent.errors import RefusalError
from sparkpoint.runtime.agent.guard import Guard
from sparkpoint.runtime.agent.savepoints import Savepoints
from sparkpoint.runtime.agent.stops import Stops
from sparkpoint.runtime.metrics import CONTENT_TYPE, render_metrics
from sparkpoint.runtime.model import (
    Document,
    Job,
    OperationState,
    Progress,
    SavepointOperation,
    SavepointRequest,
    StopOperation,
    StopRequest,
)
from sparkpoint.savepoint.errors import BadNameError
from sparkpoint.savepoint.names import check_name

__all__ = ["BODY_LIMIT", "LONGEST_BUDGET", "LONGEST_WAIT", "Routes"]

BODY_LIMIT = 64 * 1024
LONGEST_WAIT = 60.0
LONGEST_BUDGET = 86400.0
"""Seconds; rules of the resource say the same of `checkpoint.timeout`."""
_BODY_SECONDS = 10.0
_JOB_SECONDS = 10.0

AnyDocument = TypeVar("AnyDocument", bound=Document)


class Routes:
    """What the agent answers."""

    def __init__(self, job: Job, savepoints: Savepoints, stops: Stops) -> None:
        self._job, self._savepoints, self._stops = job, savepoints, stops
        self._asked: asyncio.Future[Progress] | None = None

    def application(self, guard: Guard) -> web.Application:
        """All paths behind the guard."""
        app = web.Application(middlewares=[guard.explain, guard.admit], client_max_size=BODY_LIMIT)
        app.on_response_prepare.append(_sign)
        app.add_routes(
            [
                web.get("/healthz", self.healthz),
                web.get("/readyz", self.readyz),
                web.get("/metrics", self.metrics),
                web.get("/v1/progress", self.progress),
                web.get("/v1/savepoints/{name}", self.get_savepoint),
                web.put("/v1/savepoints/{name}", self.put_savepoint),
                web.get("/v1/stop/{operation}", self.get_stop),
                web.put("/v1/stop/{operation}", self.put_stop),
                web.put("/v1/gate/{epoch}", self.put_gate),
            ]
        )
        return app

    async def healthz(self, request: web.Request) -> web.Response:
        """The process and this loop are alive."""
        return web.json_response({"healthy": True})

    async def readyz(self, request: web.Request) -> web.Response:
        """Queries run, or the driver is warm and stands before its gate."""
        progress = await self._progress()
        ready = progress.phase == "gated" or any(query.active for query in progress.queries)
        content = {"ready": ready, "phase": progress.phase}
        return web.json_response(content, status=200 if ready else 503)

    async def metrics(self, request: web.Request) -> web.Response:
        """Figures for Prometheus."""
        page = render_metrics(await self._progress(), self._savepoints.figures)
        return web.Response(body=page.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def progress(self, request: web.Request) -> web.Response:
        """Everything about the queries."""
        return answer(await self._progress())

    async def put_savepoint(self, request: web.Request) -> web.Response:
        """Begin a savepoint, or tell how far it is."""
        name, seconds = _name(request, "name", "savepoint"), _wait(request)
        wanted = await _body(request, SavepointRequest)
        _check_savepoint(wanted)
        self._savepoints.put(name, wanted)
        return await self._answer_savepoint(name, seconds)

    async def get_savepoint(self, request: web.Request) -> web.Response:
        """How far a savepoint is."""
        name, seconds = _name(request, "name", "savepoint"), _wait(request)
        return await self._answer_savepoint(name, seconds)

    async def _answer_savepoint(self, name: str, seconds: float) -> web.Response:
        found = await self._savepoints.operations.settled(name, seconds)
        if found is None:
            raise _unknown("savepoint", name)
        if found.error is not None and found.error.type == "NameTaken":
            # Only the repository knew: the same answer as for a name that this agent has given.
            raise RefusalError(409, found.error.type, found.error.message, shown={"failed": found})
        return _answer_operation(found)

    async def put_stop(self, request: web.Request) -> web.Response:
        """Begin a stop, or tell how far it is."""
        operation, seconds = _name(request, "operation", "operation"), _wait(request)
        wanted = await _body(request, StopRequest)
        _check_stop(wanted)
        self._stops.put(operation, wanted)
        return await self._answer_stop(operation, seconds)

    async def get_stop(self, request: web.Request) -> web.Response:
        """How far a stop is."""
        operation, seconds = _name(request, "operation", "operation"), _wait(request)
        return await self._answer_stop(operation, seconds)

    async def _answer_stop(self, operation: str, seconds: float) -> web.Response:
        found = await self._stops.settled(operation, seconds)
        if found is None:
            raise _unknown("stop", operation)
        return _answer_operation(found)

    async def put_gate(self, request: web.Request) -> web.Response:
        """Open the gate for an epoch."""
        text = request.match_info["epoch"]
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise RefusalError(400, "BadEpoch", f"{text[:40]!r} is not the number of an epoch.")
        epoch = int(text)
        gate = await in_thread(lambda: self._job.open_gate(epoch))
        if gate.state == "closed" or gate.epoch != epoch:
            raise RefusalError(
                409,
                "WrongEpoch",
                f"This driver is of epoch {gate.epoch}, and its gate is {gate.state}.",
                shown={"gate": gate},
            )
        return answer(gate)

    async def _progress(self) -> Progress:
        """Ask the job once for all who wait: scrapes and probes must not pile up behind it."""
        if self._asked is None:
            self._asked = asyncio.ensure_future(in_thread(self._job.progress))
            self._asked.add_done_callback(self._forget)
        try:
            async with asyncio.timeout(_JOB_SECONDS):
                return await asyncio.shield(self._asked)
        except TimeoutError:
            raise RefusalError(
                503, "Busy", f"The job did not answer within {_JOB_SECONDS:.0f} s."
            ) from None

    def _forget(self, _: asyncio.Future[Progress]) -> None:
        self._asked = None


async def _sign(_: web.Request, response: web.StreamResponse) -> None:
    """Not the versions of Python and aiohttp, which are nobody's business."""
    response.headers["Server"] = "sparkpoint"


def _answer_operation(found: SavepointOperation | StopOperation) -> web.Response:
    return answer(found, status=202 if found.state is OperationState.RUNNING else 200)


def _unknown(what: str, name: str) -> RefusalError:
    return RefusalError(
        404,
        "NotFound",
        f"This agent was not asked for {what} {name} since it was started.",
        remedy="PUT the request: what exists already is found again.",
    )


def _name(request: web.Request, key: str, what: str) -> str:
    return _checked(request.match_info[key], what)


def _checked(name: str, what: str) -> str:
    try:
        return check_name(name, what)
    except BadNameError as error:
        raise RefusalError(400, "BadName", str(error)) from error


def _wait(request: web.Request) -> float:
    text = request.query.get("wait", "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_WAIT:
        raise RefusalError(
            400, "BadWait", f"wait={text[:40]} is not a number of seconds up to {LONGEST_WAIT:.0f}."
        )
    return seconds


async def _body(request: web.Request, model: type[AnyDocument]) -> AnyDocument:
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            data = await request.read()
    except TimeoutError:
        raise RefusalError(
            408, "TooSlow", f"The body did not arrive within {_BODY_SECONDS:.0f} s."
        ) from None
    try:
        return model.model_validate_json(data or b"{}")
    except ValidationError as error:
        raise bad_request(error) from error


def _check_savepoint(request: SavepointRequest) -> None:
    if not request.repository.strip():
        raise RefusalError(400, "BadRequest", "The repository is empty: give a path or s3://….")
    for tag in request.tags:
        _checked(tag, "tag")


def _check_stop(request: StopRequest) -> None:
    if (request.savepoint is None) != (request.savepoint_name is None):
        raise RefusalError(
            400, "BadRequest", "A stop needs savepoint and savepoint_name, or neither."
        )
    if request.savepoint is not None and request.savepoint_name is not None:
        _check_savepoint(request.savepoint)
        _checked(request.savepoint_name, "savepoint")
    budget = request.budget_seconds
    if budget is not None and not 0 <= budget <= LONGEST_BUDGET:
        raise RefusalError(
            400, "BadRequest", f"budget_seconds must be from 0 to {LONGEST_BUDGET:.0f}."
        )
