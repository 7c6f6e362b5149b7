"""Whose turn it is: changes, times, deletions and the end, on a loop without a cluster."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context

import pytest

from sparkpoint.controller.keys import Key
from sparkpoint.controller.pace import Pace
from sparkpoint.controller.passes import Requeue
from sparkpoint.controller.turns import Turns

KEY, OTHER = Key("shop", "visits"), Key("shop", "orders")


class Passes:
    """Notes whose turn it was; `gate` holds passes up, `released` says that it was let go."""

    def __init__(self, *, seconds: float = 3600.0) -> None:
        self.seen: list[Key] = []
        self.seconds, self.released = seconds, False
        self.gate, self.third = asyncio.Event(), asyncio.Event()
        self.gate.set()

    async def run_once(self, key: Key) -> Requeue:
        self.seen.append(key)
        if len(self.seen) == 3:
            self.third.set()
        await self.gate.wait()
        return Requeue(seconds=self.seconds, released=self.released)

    async def seen_times(self, count: int) -> None:
        """Wait until so many passes have begun."""
        await until(lambda: len(self.seen) >= count)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def told(story: Callable[[Passes, Turns], Coroutine[None, None, None]]) -> Passes:
    async def run() -> Passes:
        passes = Passes()
        turns = Turns(passes.run_once)
        await story(passes, turns)
        await turns.close()
        return passes

    return asyncio.run(run())


def test_a_change_gives_a_turn_and_many_before_it_give_one() -> None:
    async def story(passes: Passes, turns: Turns) -> None:
        turns.notify(KEY)
        turns.notify(KEY)
        turns.notify(OTHER)
        await passes.seen_times(2)
        await settle()

    assert told(story).seen == [KEY, OTHER]


def test_a_change_during_a_pass_gives_another_turn_after_it() -> None:
    async def story(passes: Passes, turns: Turns) -> None:
        passes.gate.clear()
        turns.notify(KEY)
        await passes.seen_times(1)
        turns.notify(KEY)
        turns.notify(KEY)
        await settle()
        assert passes.seen == [KEY]
        passes.gate.set()
        await passes.seen_times(2)
        await settle()

    assert told(story).seen == [KEY, KEY]


def test_a_time_that_has_come_gives_a_turn() -> None:
    async def story(passes: Passes, turns: Turns) -> None:
        passes.seconds = 0.0
        turns.notify(KEY)
        await passes.third.wait()

    assert set(told(story).seen) == {KEY}


def test_a_change_is_not_held_up_by_a_later_turn() -> None:
    async def story(passes: Passes, turns: Turns) -> None:
        turns.notify(KEY, within=3600)
        await settle()
        assert passes.seen == []
        turns.notify(KEY)
        turns.notify(KEY, within=3600)
        await passes.seen_times(1)
        await settle()

    assert told(story).seen == [KEY]


class Event:
    """What kopf calls a handler for."""


def test_a_turn_keeps_nothing_of_who_gave_it() -> None:
    current: ContextVar[Event | None] = ContextVar("current", default=None)
    known: list[weakref.ref[Event]] = []

    def handle(turns: Turns, key: Key, within: float) -> None:
        event = Event()
        known.append(weakref.ref(event))
        current.set(event)
        turns.notify(key, within=within)

    async def story(passes: Passes, turns: Turns) -> None:
        copy_context().run(handle, turns, KEY, 0.0)
        copy_context().run(handle, turns, OTHER, 3600.0)
        await passes.seen_times(1)
        await settle()
        gc.collect()
        assert [event() for event in known] == [None, None]

    # One has had its turn and waits for the next one, the other one for its first.
    assert told(story).seen == [KEY]


def test_one_that_was_let_go_has_no_turn_any_more() -> None:
    async def story(passes: Passes, turns: Turns) -> None:
        passes.seconds, passes.released = 0.001, True
        turns.notify(KEY)
        await passes.seen_times(1)
        await asyncio.sleep(0.01)

    assert told(story).seen == [KEY]


def test_one_that_changed_while_it_was_let_go_has_another_turn() -> None:
    async def story(passes: Passes, turns: Turns) -> None:
        passes.released = True
        passes.gate.clear()
        turns.notify(KEY)
        await passes.seen_times(1)
        turns.notify(KEY)
        passes.gate.set()
        await passes.seen_times(2)
        await asyncio.sleep(0.01)

    assert told(story).seen == [KEY, KEY]


def test_one_that_is_gone_has_no_turn_any_more() -> None:
    async def story(passes: Passes, turns: Turns) -> None:
        turns.notify(KEY, within=0.001)
        turns.forget(KEY)
        await asyncio.sleep(0.01)

    assert told(story).seen == []


def test_who_has_a_turn_while_another_operator_acts_waits_for_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sparkpoint.controller.turns._ASKED", 0.001)
    passes, asked, acts = Passes(), [0], [False]

    def may_act() -> bool:
        asked[0] += 1
        return acts[0]

    async def story() -> None:
        passes.gate = asyncio.Event()
        passes.gate.set()
        turns = Turns(passes.run_once, may_act=may_act)
        turns.notify(KEY)
        turns.notify(OTHER)
        gone = Key("shop", "gone")
        turns.notify(gone)
        await until(lambda: asked[0] > 3)
        assert passes.seen == []
        turns.forget(gone)
        assert set(turns._held) == {KEY, OTHER}
        turns.notify(KEY)
        acts[0] = True
        await passes.seen_times(2)
        await turns.close()

    asyncio.run(story())
    assert sorted(passes.seen) == [OTHER, KEY]


def test_those_that_can_wait_do_so_when_our_turn_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sparkpoint.controller.turns._ASKED", 0.001)
    passes, acts = Passes(), [False]

    async def story() -> float:
        turns = Turns(passes.run_once, may_act=lambda: acts[0], patience=lambda: {OTHER: 3600.0})
        turns.notify(OTHER)
        turns.notify(KEY)
        await until(lambda: len(turns._held) == 2)
        acts[0] = True
        await passes.seen_times(1)
        await settle()
        timer = turns._turns[OTHER].timer
        assert timer is not None
        left = timer.when() - asyncio.get_running_loop().time()
        await turns.close()
        return left

    assert 3500 < asyncio.run(story()) <= 3600
    assert passes.seen == [KEY]


def test_the_end_cuts_off_what_is_under_way() -> None:
    async def story(passes: Passes, turns: Turns) -> None:
        passes.gate.clear()
        turns.notify(KEY)
        turns.notify(OTHER, within=3600)
        await passes.seen_times(1)
        await turns.close()
        passes.gate.set()
        await asyncio.sleep(0.01)

    assert told(story).seen == [KEY]


def test_few_jobs_are_looked_at_often_and_many_at_the_same_cost() -> None:
    few, many = Pace(lambda: 100), Pace(lambda: 3000)

    assert (few.look(15), few.script(), few.telling()) == (15, 15, 30)
    assert (few.look(60), few.repair(600)) == (60, 600)
    assert many.repair(600) == 1500
    assert (many.look(15), many.script(), many.telling()) == (150, 300, 600)
