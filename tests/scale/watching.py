"""Jobs as somebody sees them who watches: how far each is, and when that was first seen."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests.scale.api import Api, Object
from tests.scale.ground import JOBS

__all__ = ["Watched", "create_all", "meanwhile", "runs", "watched"]

_Wish = tuple[Callable[[Object], bool], asyncio.Future[float]]


def runs(body: Object) -> bool:
    """Whether it is as its spec wants it, nothing is under way, and its queries have begun."""
    status = body.get("status") or {}
    return (
        status.get("phase") == "Running"
        and status.get("operation") is None
        and status.get("observedGeneration") == body["metadata"]["generation"]
        and bool(status.get("queries"))
    )


class Watched:
    """The newest version of each job."""

    def __init__(self) -> None:
        self.jobs: dict[str, Object] = {}
        self._news = asyncio.Event()
        self._waiting: dict[str, list[_Wish]] = {}

    async def follow(self, api: Api) -> None:
        """Until it is cancelled."""
        async for kind, body in api.follow(JOBS):
            if kind == "DELETED":
                self.jobs.pop(body["metadata"]["name"], None)
                self._news.set()
            else:
                self._learn(body)

    def _learn(self, body: Object) -> None:
        name = body["metadata"]["name"]
        body["metadata"].pop("managedFields", None)
        self.jobs[name] = body
        self._news.set()
        waiting = self._waiting.get(name, [])
        for each in [each for each in waiting if each[0](body)]:
            waiting.remove(each)
            if not each[1].done():
                each[1].set_result(time.monotonic())

    async def changed(self, *, seconds: float = 1.0) -> None:
        """Return when there is news, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()

    async def when(self, name: str, reached: Callable[[Object], bool], seconds: float) -> float:
        """The moment at which that was seen of it."""
        known = self.jobs.get(name)
        if known is not None and reached(known):
            return time.monotonic()
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, []).append((reached, future))
        async with asyncio.timeout(seconds):
            return await future

    def count(self, reached: Callable[[Object], bool]) -> int:
        """Of how many that can be said."""
        return sum(1 for body in self.jobs.values() if reached(body))


@asynccontextmanager
async def watched(api: Api) -> AsyncIterator[Watched]:
    """Watch all jobs while the body runs."""
    found = Watched()
    async with meanwhile(found.follow(api)):
        yield found


@asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have it done while the body runs, and no longer."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def create_all(
    api: Api, path: str, bodies: Iterable[dict[str, Any]], *, at_once: int
) -> None:
    """All of them, so many requests at a time."""
    rest = iter(bodies)

    async def some() -> None:
        for body in rest:
            await api.create(path, body)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(some())
