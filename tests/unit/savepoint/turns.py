"""Letting several actors take turns, one store operation at a time, in an order the test chooses.

The actors run the real code in threads; every operation on the repository's store waits for its
turn. So each interleaving of operations can be produced on purpose, and repeated.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from sparkpoint.storage import DirectoryStore

__all__ = ["SingleThreadStore", "TurnStore", "Turns"]

_LIMIT = 20.0
_STEPS = {
    "list",
    "children",
    "stat",
    "sizes",
    "read",
    "read_stamped",
    "open_stamped",
    "read_range",
    "create",
    "replace",
    "put",
    "take",
    "touch",
    "delete",
}


class Turns:
    """Decides which actor goes on: as the plan of (actor, steps) says, then round robin."""

    def __init__(self, plan: Sequence[tuple[str, int]]) -> None:
        self._plan = [actor for actor, steps in plan for _ in range(steps)]
        self._condition = threading.Condition()
        self._waiting: list[str] = []
        self._granted: str | None = None
        self._busy = 0
        self._last = ""

    def wait(self, actor: str) -> None:
        """Called by actors before each operation."""
        with self._condition:
            self._waiting.append(actor)
            self._busy -= 1
            self._condition.notify_all()
            if not self._condition.wait_for(lambda: self._granted == actor, _LIMIT):
                raise TimeoutError(f"{actor} was never let on")
            self._granted = None

    def run(self, actors: dict[str, Callable[[], object]]) -> dict[str, BaseException | object]:
        """Run all to their ends; what each returned or raised."""
        results: dict[str, BaseException | object] = {}
        threads = [
            threading.Thread(target=self._actor, args=(name, action, results), name=name)
            for name, action in actors.items()
        ]
        self._busy = len(threads)
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            self._grant_next()
        for thread in threads:
            thread.join(_LIMIT)
        return results

    def _actor(
        self, name: str, action: Callable[[], object], results: dict[str, BaseException | object]
    ) -> None:
        try:
            results[name] = action()
        except BaseException as error:
            results[name] = error
        finally:
            with self._condition:
                self._busy -= 1
                self._condition.notify_all()

    def _grant_next(self) -> None:
        with self._condition:
            if not self._condition.wait_for(lambda: self._busy == 0, _LIMIT):
                raise TimeoutError("an actor neither ends nor asks for a turn")
            if not self._waiting:
                return
            candidates = sorted(self._waiting)
            chosen = self._choose(candidates)
            self._waiting.remove(chosen)
            self._busy += 1
            self._granted = chosen
            self._condition.notify_all()

    def _choose(self, candidates: list[str]) -> str:
        while self._plan:
            wanted = self._plan.pop(0)
            if wanted in candidates:
                return wanted
        later = [name for name in candidates if name > self._last]
        self._last = (later or candidates)[0]
        return self._last


class SingleThreadStore(DirectoryStore):
    """A directory that its users read with one thread, so that every actor has one next step."""

    @property
    def parallelism(self) -> int:
        """One."""
        return 1


class TurnStore(SingleThreadStore):
    """A directory whose every operation waits for its actor's turn."""

    def __init__(self, path: str, turns: Turns, actor: str) -> None:
        super().__init__(path)
        self._turns, self._actor, self._inside_step = turns, actor, threading.local()

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name not in _STEPS:
            return value
        turns, actor = self._turns, self._actor
        state = self._inside_step

        def step(*args: Any, **options: Any) -> Any:
            if getattr(state, "on", False):
                return value(*args, **options)  # a part of an operation that has its turn already
            turns.wait(actor)
            state.on = True
            try:
                result = value(*args, **options)
                return iter(list(result)) if name == "list" else result
            finally:
                state.on = False

        return step
