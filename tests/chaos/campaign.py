"""The random campaign: operations and faults mixed by a seed, and the smallest list that fails."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from dev.console import say
from sparkpoint.lifecycle.phases import PLANS, Kind
from tests.chaos.matrix import Case, Fault, Run, hindrance
from tests.chaos.play import Played, Player
from tests.chaos.stage import STAGE_ERRORS, Stage

__all__ = ["campaign", "draw", "shrink"]

OpenStage = Callable[[], AbstractContextManager[Stage]]

_LATEST = 20.0
"""Seconds after its beginning at which an operation is struck, if not in a certain phase."""
_MOST_TRIES = 12
"""To make a failing list shorter; each opens a stage of its own, and plays what is left."""


def draw(seed: int) -> Iterator[Run]:
    """Runs without end; the same seed gives the same ones."""
    dice = random.Random(seed)
    while True:
        kind, fault = dice.choice(list(Kind)), dice.choice(list(Fault))
        phase = dice.choice(PLANS[kind])
        if dice.random() < 0.5:
            yield Run(kind, (), fault, after=round(dice.uniform(0, _LATEST), 1))
        elif not hindrance(Case(kind, phase, fault)):
            yield Run(kind, (phase,), fault)


def shrink(
    steps: Sequence[Run], fails: Callable[[Sequence[Run]], bool], *, tries: int = _MOST_TRIES
) -> list[Run]:
    """Without the steps that are not needed to fail; the last one stays.

    All others are left out first, then halves of them, quarters, and single ones: most failures
    need but the last step, and a try of many steps takes long. Bounded: what was not tried stays.
    """
    kept, size = list(steps), len(steps) - 1
    while size > 0 and tries > 0:
        end = len(kept) - 1
        while end > 0 and tries > 0:
            fewer = kept[: max(0, end - size)] + kept[end:]
            tries -= 1
            if fails(fewer):
                kept = fewer
            end -= size
        size //= 2
    return kept


def campaign(open_stage: OpenStage, seed: int, minutes: float, steps: Sequence[Run]) -> int:
    """Exit code: 0 if everything was exact at every quiet point. With steps: just these, in their
    order."""
    done: list[Run] = []
    wanted = steps or _until(time.monotonic() + minutes * 60, draw(seed))
    if not _fails(open_stage, wanted, done):
        say(f"{len(done)} steps, exact after each: seed {seed}")
        return 0
    say(_command(seed, done))
    # As long again, and no longer: what is not tried by then stays in.
    deadline = time.monotonic() + minutes * 60
    smallest = shrink(
        done, lambda fewer: time.monotonic() < deadline and _fails(open_stage, fewer, [])
    )
    say(_command(seed, smallest))
    return 1


def _command(seed: int, steps: Sequence[Run]) -> str:
    return f"Fails: make chaos SEED={seed} STEPS={','.join(run.name for run in steps)}"


def _told(run: Run, played: Played) -> str:
    """A step that was not struck in its phase is a step all the same, but not the one drawn."""
    return "" if not run.phases or played.struck else "not struck, "


def _until(deadline: float, runs: Iterator[Run]) -> Iterator[Run]:
    while time.monotonic() < deadline:
        yield next(runs)


def _fails(open_stage: OpenStage, runs: Sequence[Run] | Iterator[Run], done: list[Run]) -> bool:
    """Play them on a fresh stage; `done` are those that were begun."""
    with open_stage() as stage:
        player = Player(stage)
        for run in runs:
            done.append(run)
            try:
                played = player.play(run)
            except STAGE_ERRORS as failure:
                say(f"{failure}\n✗ {run.name}, step {len(done)}")
                return True
            say(f"✓ {run.name}: {played.ended}, {_told(run, played)}{played.seconds:.0f} s")
    return False
