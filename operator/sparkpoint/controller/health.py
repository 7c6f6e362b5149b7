"""The operator's own pages: whether it lives, and what it counts."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from sparkpoint.controller.metrics import Metrics

__all__ = ["serve_health"]

_SILENCE: Final = 300.0
"""Seconds without the end of a pass, while there are resources, that mean that we are stuck."""


@asynccontextmanager
async def serve_health(
    port: int, *, metrics: Metrics, last_pass: Callable[[], float | None]
) -> AsyncIterator[int]:
    """Serve /healthz and /metrics while the body runs; the port that was taken.

    Any free one (0) is for trying out: it is taken on this host's own address alone, as each family
    of addresses would get another one.
    """

    async def healthz(_: web.Request) -> web.Response:
        last = last_pass()
        age = time.monotonic() - last if last is not None else 0.0
        if age > _SILENCE and metrics.resources:
            return web.Response(status=503, text=f"no pass has ended for {age:.0f} s\n")
        return web.Response(text="ok\n")

    async def show(_: web.Request) -> web.Response:
        return web.Response(
            body=metrics.render().encode(),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )

    pages = web.Application()
    pages.add_routes([web.get("/healthz", healthz), web.get("/metrics", show)])
    runner = web.AppRunner(pages, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host=None if port else "127.0.0.1", port=port)
    await site.start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
