"""Waiting until the operator has done what was asked, with the progress as it happens."""

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sparkpoint.cli.answer import Settings
from sparkpoint.cli.exits import Exit
from sparkpoint.cli.jobs.cluster import Cluster, Kind, Object
from sparkpoint.cli.jobs.facts import is_looked_at
from sparkpoint.cli.jobs.following import follow
from sparkpoint.cli.jobs.steps import describe, shown_steps
from sparkpoint.cli.jobs.verdicts import Goal, State
from sparkpoint.cli.render.text import seconds as duration_text

__all__ = ["Patience", "Waited", "await_goal"]

_TICK: Final = 1.0


@dataclass(frozen=True, slots=True)
class Patience:
    """Whether a command waits, and how long."""

    wait: bool
    timeout: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """How a wait ended."""

    result: str
    """Succeeded, Failed, RolledBack, Damaged, Overtaken, TimedOut, Interrupted, or Asked."""
    body: Object
    """The object as it was seen last."""
    exit: Exit = Exit.OK
    message: str = ""
    seconds: float = 0.0


def await_goal(
    settings: Settings, cluster: Cluster, kind: Kind, name: str, goal: Goal, timeout: timedelta
) -> Waited:
    """Until it is reached, cannot be reached, or the time is over."""
    begun, last = time.monotonic(), None
    with shown_steps(settings) as steps:
        tick = _TICK if steps is not None else None
        changes = follow(cluster, kind, name, seconds=timeout.total_seconds(), tick=tick)
        try:
            for body in changes:
                last = body or last
                verdict = goal(body) if body is not None else None
                if body is not None and verdict is not None and verdict.state is not State.WAITING:
                    return Waited(
                        result=verdict.state.value,
                        body=body,
                        exit=verdict.exit,
                        message=verdict.message,
                        seconds=time.monotonic() - begun,
                    )
                if steps is not None:
                    steps.show(body)
        except KeyboardInterrupt:
            return _unfinished(last, begun, interrupted=True)
        finally:
            changes.close()
    return _unfinished(last, begun, interrupted=False)


def _unfinished(last: Object | None, begun: float, *, interrupted: bool) -> Waited:
    """What was asked for goes on without us; only the wait is over."""
    passed = time.monotonic() - begun
    at, words = describe(last) if last is not None else ("nothing was seen yet", "")
    if last is not None and not is_looked_at(last):
        at, words = "the operator has not looked at it yet", "Check that the operator runs."
    reason = "Interrupted" if interrupted else f"Not done after {duration_text(passed)}"
    return Waited(
        result="Interrupted" if interrupted else "TimedOut",
        body=last or {},
        exit=Exit.INTERRUPTED if interrupted else Exit.TIMED_OUT,
        message=f"{reason}: {at}. {words}".strip() + " It goes on by itself.",
        seconds=passed,
    )
