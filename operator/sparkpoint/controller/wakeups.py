"""Waking whoever waits for a resource: its own changes, its pods' changes, or the clock."""

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Wakeups"]

AnyKey = TypeVar("AnyKey", bound=Hashable)


class Wakeups(Generic[AnyKey]):
    """One flag per key. It is lowered before the world is read, so no change falls in between."""

    def __init__(self) -> None:
        self._flags: dict[AnyKey, asyncio.Event] = {}

    def notify(self, key: AnyKey) -> None:
        """Something about it changed; nobody need be waiting yet."""
        self._flag(key).set()

    async def wait(self, key: AnyKey, *, seconds: float | None) -> None:
        """Return when something changed since the last return, or the time is over."""
        flag = self._flag(key)
        try:
            async with asyncio.timeout(seconds):
                await flag.wait()
        except TimeoutError:
            pass
        flag.clear()

    def forget(self, key: AnyKey) -> None:
        """It is gone."""
        self._flags.pop(key, None)

    def _flag(self, key: AnyKey) -> asyncio.Event:
        return self._flags.setdefault(key, asyncio.Event())
