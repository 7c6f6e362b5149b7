"""Whether a first list has ended: read off what the real kopf asks of a server of our own."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import kopf
from aiohttp import ClientSession, web

from sparkpoint.controller.cluster import JOBS, PODS, SAVEPOINTS, Kind
from sparkpoint.controller.handlers import register
from sparkpoint.controller.pulse import Pulse
from sparkpoint.controller.settings import configure
from sparkpoint.controller.watches import watched
from sparkpoint.controller.wiring import put_together
from tests.unit.controller.simulation import World

_PATIENCE = 20.0


class _Server:
    """Knows of no object; it does not answer who lists jobs before it is released."""

    def __init__(self) -> None:
        self.release, self.asked = asyncio.Event(), asyncio.Event()
        self.watches: set[str] = set()
        self.watched = asyncio.Condition()

    async def run(self, stack: AsyncExitStack) -> str:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    async def until(self, *plurals: str) -> None:
        async with asyncio.timeout(_PATIENCE), self.watched:
            await self.watched.wait_for(lambda: self.watches >= set(plurals))

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        found = _DISCOVERY.get(request.path)
        if found is not None:
            return web.json_response(found)
        plural = request.path.rpartition("/")[2]
        if "watch" in request.query:
            async with self.watched:
                self.watches.add(plural)
                self.watched.notify_all()
            await asyncio.Event().wait()
        if plural == JOBS.plural:
            self.asked.set()
            await self.release.wait()
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})


def _resource(kind: Kind, *, namespaced: bool = True) -> dict[str, Any]:
    verbs = ["get", "list", "watch", "patch"]
    names = {"name": kind.plural, "singularName": "", "kind": kind.kind}
    return {**names, "namespaced": namespaced, "verbs": verbs}


_NAMESPACES = Kind("v1", "Namespace", "namespaces")
_GROUP, _VERSION = JOBS.api_version.split("/")
_PREFERRED = {"groupVersion": JOBS.api_version, "version": _VERSION}
_DISCOVERY: dict[str, Any] = {
    "/api": {"versions": ["v1"]},
    "/apis": {
        "groups": [{"name": _GROUP, "versions": [_PREFERRED], "preferredVersion": _PREFERRED}]
    },
    # kopf waits for namespaces, though it does not ask for any.
    "/api/v1": {"resources": [_resource(PODS), _resource(_NAMESPACES, namespaced=False)]},
    f"/apis/{JOBS.api_version}": {"resources": [_resource(JOBS), _resource(SAVEPOINTS)]},
}


def test_a_list_that_does_not_end_is_known_and_so_is_one_of_nothing() -> None:
    async def story() -> None:
        world, registry, pulse = World(), kopf.OperatorRegistry(), Pulse()
        register(registry, put_together(world.cluster, world.dial))
        pulse.expect(3)
        async with AsyncExitStack() as stack:
            server = _Server()
            url = await server.run(stack)

            @kopf.on.login(registry=registry)
            async def log_in(**_: Any) -> kopf.AiohttpSession:
                session = ClientSession(trace_configs=[watched(pulse)])
                return kopf.AiohttpSession(server=url, aiohttp_session=session)

            stop = asyncio.Event()
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            settings = configure(kopf.OperatorSettings())
            tasks.create_task(
                kopf.operator(
                    registry=registry, settings=settings, clusterwide=True, stop_flag=stop
                )
            )

            await server.until(PODS.plural, SAVEPOINTS.plural)
            await asyncio.wait_for(server.asked.wait(), _PATIENCE)
            assert pulse.unlisted == 1

            server.release.set()
            await server.until(JOBS.plural)
            assert pulse.unlisted == 0
            stop.set()

    asyncio.run(story())
