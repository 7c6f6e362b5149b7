"""The operator's own pages: whether it lives, and what it counts."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

from sparkpoint.controller.errors import UnfitError
from sparkpoint.controller.metrics import Metrics
from sparkpoint.controller.pulse import stall
from sparkpoint.runtime.exposition import CONTENT_TYPE

__all__ = ["serve_health"]


@asynccontextmanager
async def serve_health(
    port: int, *, metrics: Metrics, notes: Callable[[], Sequence[str]] = tuple
) -> AsyncIterator[int]:
    """Serve /healthz and /metrics while the body runs; the port that was taken.

    `notes` are told beside the health: what a person should know, and no restart would mend.

    Any free one (0) is for trying out: it is taken on this host's own address alone, as each family
    of addresses would get another one.
    """

    async def healthz(_: web.Request) -> web.Response:
        activity = metrics.pulse.activity(acts=metrics.acts(), jobs=metrics.jobs)
        problem = stall(time.monotonic(), activity)
        return web.Response(
            status=503 if problem else 200, text="\n".join([problem or "ok", *notes(), ""])
        )

    async def show(_: web.Request) -> web.Response:
        return web.Response(body=metrics.render().encode(), headers={"Content-Type": CONTENT_TYPE})

    pages = web.Application()
    pages.add_routes([web.get("/healthz", healthz), web.get("/metrics", show)])
    runner = web.AppRunner(pages, access_log=None)
    await runner.setup()
    try:
        await _listen(runner, port)
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, port: int) -> None:
    site = web.TCPSite(runner, host=None if port else "127.0.0.1", port=port)
    try:
        await site.start()
    except OSError as error:
        raise UnfitError(
            f"/healthz and /metrics cannot be served on port {port}: {error}. Free it, or choose "
            "another one with --health-port."
        ) from error
