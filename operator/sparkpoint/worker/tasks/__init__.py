"""The tasks: each reads its part of the command line, and returns the work that answers."""

from collections.abc import Callable, Mapping, Sequence

from sparkpoint.worker.errors import RefusedError
from sparkpoint.worker.given import Given
from sparkpoint.worker.model import Answer
from sparkpoint.worker.tasks import (
    adopt,
    capture,
    dispose,
    fetch,
    inspect,
    rehearse,
    remove,
    repartition,
    verify,
)
from sparkpoint.worker.telling import Telling

__all__ = ["TASKS", "parse"]

Work = Callable[[Telling], Answer]

TASKS: Mapping[str, tuple[Callable[[Given], Work], str]] = {
    "capture": (capture.read, capture.USAGE),
    "adopt": (adopt.read, adopt.USAGE),
    "inspect": (inspect.read, inspect.USAGE),
    "verify": (verify.read, verify.USAGE),
    "rehearse": (rehearse.read, rehearse.USAGE),
    "repartition": (repartition.read, repartition.USAGE),
    "dispose": (dispose.read, dispose.USAGE),
    "remove": (remove.read, remove.USAGE),
    "fetch": (fetch.read, fetch.USAGE),
}
_PROGRAM = "python -m sparkpoint.worker"


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[str, Work]:
    """The task's name and its work, or RefusedError with all that is wrong."""
    task = arguments[0] if arguments else ""
    if task not in TASKS:
        known = ", ".join(TASKS)
        problem = f"{task!r} is not a task" if task else "there is no task"
        raise RefusedError([f"{problem}: give one of {known}"], f"{_PROGRAM} TASK OPTION…")
    read, options = TASKS[task]
    given = Given(arguments[1:], environment)
    work = read(given)
    given.check(f"{_PROGRAM} {task} [--termination-log PATH] {options}")
    return task, work
