"""Passes over resources: one at a time for each, a few at once for all; errors become delays.

The one place where errors of a pass end. A pass can be repeated at any point, so that coming back
later is the answer to all of them.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from sparkpoint.controller.correlation import topic_of
from sparkpoint.controller.errors import (
    ClusterError,
    ConflictError,
    RecordError,
    ThrottledError,
    UnavailableError,
)
from sparkpoint.controller.keys import Key
from sparkpoint.controller.metrics import Metrics

__all__ = ["Gate", "Passes", "Requeue", "Throttling", "always", "aside"]

logger = logging.getLogger(__name__)

_SOON: Final = 0.5
_LONGEST: Final = 60.0
_QUIET: Final = 60.0
_STANDBY: Final = 2.0
"""Seconds until an operator that waits for its turn asks whether it has come."""
_ELSEWHERE: Final = 30.0
"""Seconds until it is asked again whether another release still serves the namespace."""


class Throttling:
    """Says once a minute that the API server holds us back: every pass meets with it."""

    def __init__(self) -> None:
        self._told: float | None = None

    def tell(self, error: ThrottledError, now: float) -> None:
        """Unless it was told just now."""
        if self._told is not None and now - self._told < _QUIET:
            return
        self._told = now
        logger.warning(
            "The API server has too much to do, and passes wait as it asks: %s. If it stays so, "
            "lower --concurrency, or give the operator's account a priority level of its own.",
            error,
        )


async def always(_: str) -> bool:
    """Every namespace is ours."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """When to come back, if nothing wakes us before."""

    seconds: float
    released: bool = False
    """A resource that was deleted is gone, or was let go."""


class Gate:
    """Lets so many passes in at once; who hurries goes before the others that wait."""

    def __init__(self, places: int) -> None:
        self.free = places
        self._hurried: deque[asyncio.Future[None]] = deque()
        self._others: dict[asyncio.Future[None], object] = {}
        """In the order in which they came -> who it is."""

    async def enter(self, who: object = None, *, hurry: bool = False) -> None:
        """Wait for a place; `who` waits can be hastened."""
        if self.free > 0:
            self.free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if hurry:
            self._hurried.append(turn)
        else:
            self._others[turn] = who
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It was given to us, and we are gone.
                self.leave()
            raise

    def hasten(self, who: object) -> None:
        """From now on it hurries, if it waits."""
        for turn in [turn for turn, known in self._others.items() if known == who]:
            del self._others[turn]
            self._hurried.append(turn)

    def leave(self) -> None:
        """Give the place to the next one."""
        while self._hurried or self._others:
            turn = self._next()
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1

    def _next(self) -> asyncio.Future[None]:
        if self._hurried:
            return self._hurried.popleft()
        turn = next(iter(self._others))
        del self._others[turn]
        return turn


class _Place:
    """Of one pass among those that may run at once."""

    def __init__(self, gate: Gate) -> None:
        self._gate, self._held = gate, False

    async def take(self, who: object = None, *, hurry: bool) -> None:
        await self._gate.enter(who, hurry=hurry)
        self._held = True

    def leave(self) -> None:
        if self._held:
            self._held = False
            self._gate.leave()


_current: ContextVar[_Place | None] = ContextVar("place", default=None)


@asynccontextmanager
async def _place(gate: Gate, who: object, *, hurry: bool) -> AsyncIterator[None]:
    place = _Place(gate)
    await place.take(who, hurry=hurry)
    token = _current.set(place)
    try:
        yield
    finally:
        _current.reset(token)
        place.leave()


@asynccontextmanager
async def aside() -> AsyncIterator[None]:
    """Let others pass meanwhile: for waits that cost neither us nor the API server anything."""
    place = _current.get()
    if place is None:
        yield
        return
    place.leave()
    try:
        yield
    finally:
        # What was begun is ended before something else is.
        await place.take(hurry=True)


class Passes:
    """Runs the passes over one kind of resource."""

    def __init__(
        self,
        kind: str,
        gate: Gate,
        metrics: Metrics,
        *,
        may_act: Callable[[], bool] = lambda: True,
        hurries: Callable[[Key], bool] = lambda key: False,
        serves: Callable[[str], Awaitable[bool]] = always,
        throttling: Throttling | None = None,
    ) -> None:
        self._kind, self._gate, self._metrics = kind, gate, metrics
        self._may_act, self._hurries, self._serves = may_act, hurries, serves
        self._throttling = throttling or Throttling()
        self._locks: dict[Key, asyncio.Lock] = {}
        self._failures: dict[Key, int] = {}

    async def run(self, key: Key, work: Callable[[Key], Awaitable[Requeue]]) -> Requeue:
        """Run a pass. Another one over the same resource waits for its end."""
        if not self._may_act():
            self._metrics.pulse.beat()
            return Requeue(seconds=_STANDBY)
        lock = self._locks.setdefault(key, asyncio.Lock())
        with topic_of(key), self._metrics.pulse.wait() as begin:
            async with lock, _place(self._gate, (self._kind, key), hurry=self._hurries(key)):
                begin()
                begun = time.monotonic()
                result, requeue = await self._attempt(key, work)
                self._metrics.passed(self._kind, result, time.monotonic() - begun)
        if self._locks.get(key) is not lock:
            # It went while it was looked at: nothing may be told of it any more.
            self._metrics.gone(self._kind, key)
        return requeue

    def hasten(self, key: Key) -> None:
        """Something has changed: a pass that waits for its place goes first, if it hurries now."""
        if self._hurries(key):
            self._gate.hasten((self._kind, key))

    def forget(self, key: Key) -> None:
        """The resource is gone."""
        self._failures.pop(key, None)
        self._locks.pop(key, None)
        self._metrics.gone(self._kind, key)

    async def _attempt(
        self, key: Key, work: Callable[[Key], Awaitable[Requeue]]
    ) -> tuple[str, Requeue]:
        try:
            if not await self._serves(key.namespace):
                # Who looks after it tells of it: what we knew grows old, and looks like trouble.
                self._metrics.gone(self._kind, key)
                return "elsewhere", Requeue(seconds=_ELSEWHERE)
            requeue = await work(key)
        except ConflictError as error:
            logger.debug("%s %s: %s", self._kind, key, error)
            return "conflict", Requeue(seconds=_SOON)
        except ThrottledError as error:
            delay = self._delay(key, error)
            self._throttling.tell(error, time.monotonic())
            return "error", Requeue(seconds=delay)
        except (ClusterError, RecordError) as error:
            delay = self._delay(key, error)
            logger.warning("%s %s: %s; again in %.0f s", self._kind, key, error, delay)
            return "error", Requeue(seconds=delay)
        # The outermost loop: one resource that we do not understand must not stop the others.
        except Exception:
            delay = self._delay(key, None)
            logger.exception("%s %s: unexpected; again in %.0f s", self._kind, key, delay)
            return "unexpected", Requeue(seconds=delay)
        self._failures.pop(key, None)
        return "done", requeue

    def _delay(self, key: Key, error: Exception | None) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = min(2.0 ** (failures - 1), _LONGEST)
        if isinstance(error, UnavailableError) and error.retry_after is not None:
            # Whatever is asked for, jobs are not left alone for longer.
            return max(delay, min(error.retry_after, _LONGEST))
        return _LONGEST if isinstance(error, RecordError) else delay
