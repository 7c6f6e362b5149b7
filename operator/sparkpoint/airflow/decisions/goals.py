"""What a task waits for, as data that a trigger can carry, and whether it has come.

The judgements themselves are those of `sparkpoint job`, so that a command and a task that wait for
the same agree.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sparkpoint.cli.jobs.facts import condition, metadata, spec_of, status_of
from sparkpoint.cli.jobs.specs import merged
from sparkpoint.cli.jobs.verdicts import (
    Goal,
    State,
    carried_out,
    goal_named,
    running,
    savepoint_taken,
)

__all__ = [
    "End",
    "Outcome",
    "as_written",
    "changed",
    "gone",
    "holds",
    "judge",
    "left_behind",
    "overdue",
    "progress",
    "runs",
    "taken",
]

Object = dict[str, Any]
Wanted = Mapping[str, Any]
"""A goal as JSON: its name in `is`, and what it needs."""


class End(Enum):
    """How a wait stands."""

    WAITING = "waiting"
    REACHED = "reached"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """With a sentence if it failed."""

    end: End
    message: str = ""


_WAIT, _REACHED = Outcome(End.WAITING), Outcome(End.REACHED)


def taken(*, checked: bool) -> dict[str, Any]:
    """A savepoint is complete, and if that is wanted, checked and good."""
    return {"is": "taken", "checked": checked}


def changed(change: Mapping[str, Any]) -> dict[str, Any]:
    """A job's newest spec, which has this change in it, is carried out and has proven itself."""
    return {"is": "changed", "change": dict(change)}


def as_written(change: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """A change as the API server has it in the spec, with what it has added by itself: `optional:
    false` to a reference in a list, or the default of a field that was to go."""
    return {
        name: as_written(value, found)
        if isinstance(value, Mapping) and isinstance(found := spec.get(name), Mapping)
        else spec.get(name)
        for name, value in change.items()
    }


def runs() -> dict[str, Any]:
    """A job runs with all its queries, and each has committed."""
    return {"is": "runs"}


def holds(kind: str, status: str = "True") -> dict[str, Any]:
    """A condition of a job has this status, for the newest spec."""
    return {"is": "holds", "condition": kind, "status": status}


def gone(uids: Mapping[str, str], *, since: Mapping[str, str] | None = None) -> dict[str, Any]:
    """These (name -> uid) are there no longer; another one of the same name does not count.

    With `since` (name -> the version that was deleted), one that is gone already may still be asked
    for its last state.
    """
    return {"is": "gone", "uids": dict(uids), "since": dict(since or {})}


def judge(wanted: Wanted, name: str, body: Object | None) -> Outcome:
    """About the resource of that name as it is now; None if there is none."""
    if wanted["is"] == "gone":
        left = body is not None and metadata(body).get("uid") == wanted["uids"].get(name)
        return _WAIT if left else _REACHED
    if body is None:
        return Outcome(End.FAILED, f"{name} was deleted while it was waited for.")
    going = metadata(body).get("deletionTimestamp") is not None
    if wanted["is"] == "changed" and _is_overtaken(wanted["change"], body):
        return Outcome(End.FAILED, f"Somebody else has changed the spec of {name} meanwhile.")
    verdict = _goal(wanted)(body)
    match verdict.state:
        case State.REACHED:
            return _REACHED
        case State.WAITING:
            return Outcome(End.FAILED, f"{name} is being deleted.") if going else _WAIT
        case _:
            return Outcome(End.FAILED, f"{name}: {verdict.message or verdict.state.value}")


def left_behind(wanted: Wanted, last: Mapping[str, Object | None]) -> dict[str, Any]:
    """What is known of resources (name -> as it was seen last) once the goal is reached: of those
    that are gone, the bytes that the operator has freed, and whose are not known."""
    if wanted["is"] != "gone":
        return {}
    freed = {name: status_of(body or {}).get("freedBytes") for name, body in last.items()}
    return {
        "freed": {
            "bytes": sum(number for number in freed.values() if number is not None),
            "unknown": sorted(name for name, number in freed.items() if number is None),
        }
    }


def overdue(wanted: Wanted, last: Mapping[str, Object | None]) -> str:
    """The sentence of a wait that took too long: what it waited for, as it was seen last."""
    seen = [
        progress(body) if body is not None else f"{name}: nothing is known of it"
        for name, body in sorted(last.items())
        if judge(wanted, name, body).end is not End.REACHED
    ]
    words = "; ".join(each.rstrip(".") for each in seen)
    return f"It took too long. Last seen: {words}. It was not called off: a next try finds it."


def _goal(wanted: Wanted) -> Goal:
    match wanted["is"]:
        case "taken":
            return savepoint_taken(checked=bool(wanted["checked"]))
        case "changed":
            return carried_out
        case "runs":
            return running
        case "holds":
            found = goal_named(f"condition={wanted['condition']}={wanted['status']}")
            if found is not None:
                return found
    raise ValueError(f"no goal is called {wanted['is']!r}")


def _is_overtaken(change: Mapping[str, Any], body: Object) -> bool:
    spec = spec_of(body)
    return merged(spec, dict(change)) != spec


def progress(body: Object) -> str:
    """How far it is, in one line, for a log."""
    status, about = status_of(body), metadata(body)
    if not status:
        return f"{about.get('name')}: the operator has not looked at it yet."
    operation = status.get("operation") or {}
    doing = f"{operation.get('kind')}/{operation.get('phase')}" if operation else ""
    said = operation.get("message") or status.get("message") or _concern(body)
    words = [str(part) for part in (status.get("phase"), doing, said) if part]
    return f"{about.get('name')}: {', '.join(words)}"


def _concern(body: Object) -> str:
    found = condition(body, "Degraded")
    return str(found.get("message", "")) if found.get("status") == "True" else ""
