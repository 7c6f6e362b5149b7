"""Whose turn it is: a resource has a pass when something about it changed, or its time has come.

A resource that waits is a timer, and a task only for as long as its pass takes: of ten thousand
resources, nearly all wait. One resource has one pass at a time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from dataclasses import dataclass
from typing import Final

from sparkpoint.controller.keys import Key
from sparkpoint.controller.passes import Requeue

__all__ = ["RunOnce", "Turns"]

_ASKED: Final = 1.0
"""Seconds between two questions whether we may act."""

RunOnce = Callable[[Key], Awaitable[Requeue]]


@dataclass(slots=True)
class _Turn:
    """Of one resource."""

    timer: asyncio.TimerHandle | None = None
    task: asyncio.Task[None] | None = None
    again: bool = False
    """Something changed after its pass began: it may have looked before."""


class Turns:
    """Runs the passes over one kind of resource; `run_once` never raises.

    While `may_act` says no, another operator acts: who has a turn waits for ours. Those that
    `patience` names wait so many seconds longer: all of them have their turn then.
    """

    def __init__(
        self,
        run_once: RunOnce,
        *,
        may_act: Callable[[], bool] = lambda: True,
        patience: Callable[[], Mapping[Key, float]] = dict,
    ) -> None:
        self._run_once, self._may_act, self._patience = run_once, may_act, patience
        self._turns: dict[Key, _Turn] = {}
        self._held: dict[Key, _Turn] = {}
        self._resumption: asyncio.TimerHandle | None = None
        # Empty: a timer keeps the context that it is made in, and its pass hands that on to the
        # next one. That of kopf holds the whole event, for as long as there is the resource.
        self._context = Context()

    def notify(self, key: Key, *, within: float = 0.0) -> None:
        """Something about it changed: it has its turn after so many seconds, if not before."""
        turn = self._turns.setdefault(key, _Turn())
        if turn.task is not None:
            turn.again = True
        else:
            self._plan(key, turn, within)

    def forget(self, key: Key) -> None:
        """It is gone; a pass that is under way ends by itself."""
        self._held.pop(key, None)
        turn = self._turns.pop(key, None)
        if turn is not None and turn.timer is not None:
            turn.timer.cancel()

    async def close(self) -> None:
        """Cut off what is under way: a pass can be repeated at any point."""
        tasks = [turn.task for turn in self._turns.values() if turn.task is not None]
        for task in tasks:
            task.cancel()
        for key in tuple(self._turns):
            self.forget(key)
        if self._resumption is not None:
            self._resumption.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _plan(self, key: Key, turn: _Turn, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        when = loop.time() + seconds
        if turn.timer is not None:
            if turn.timer.when() <= when:
                return
            turn.timer.cancel()
        turn.timer = loop.call_at(when, self._begin, key, turn, context=self._context)

    def _begin(self, key: Key, turn: _Turn) -> None:
        turn.timer, turn.again = None, False
        if not self._may_act():
            self._hold(key, turn)
            return
        loop = asyncio.get_running_loop()
        turn.task = loop.create_task(self._pass(key, turn), context=self._context.copy())

    def _hold(self, key: Key, turn: _Turn) -> None:
        """One question for all of them: ten thousand would keep a processor busy with waiting."""
        self._held[key] = turn
        if self._resumption is None:
            self._ask_later()

    def _ask_later(self) -> None:
        self._resumption = asyncio.get_running_loop().call_later(_ASKED, self._resume)

    def _resume(self) -> None:
        if not self._may_act():
            self._ask_later()
            return
        self._resumption = None
        held, self._held = self._held, {}
        patience = self._patience()
        for key, turn in held.items():
            # Those that are gone meanwhile have no turn any more.
            if self._turns.get(key) is turn and turn.timer is None and turn.task is None:
                self._plan(key, turn, patience.get(key, 0.0))

    async def _pass(self, key: Key, turn: _Turn) -> None:
        try:
            requeue = await self._run_once(key)
        finally:
            turn.task = None
        if self._turns.get(key) is not turn:
            return
        if requeue.released and not turn.again:
            # Whatever happens to it yet is told by a watch.
            self.forget(key)
        else:
            self._plan(key, turn, 0.0 if turn.again else requeue.seconds)
