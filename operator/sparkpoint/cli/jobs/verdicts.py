"""Whether what a person waits for has come, is still to come, or will not: pure judgements.

The operator shows a spec as looked at together with the operation that it leads to, so that a spec
which was looked at, with nothing under way, is either carried out or held back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sparkpoint.cli.exits import Exit
from sparkpoint.cli.jobs.cluster import Object
from sparkpoint.cli.jobs.facts import (
    condition,
    is_looked_at,
    is_settled,
    metadata,
    spec_of,
    status_of,
)

__all__ = [
    "Goal",
    "State",
    "Verdict",
    "back_at",
    "carried_out",
    "goal_named",
    "running",
    "savepoint_taken",
    "suspended",
    "unless_overtaken",
]

_HELD = (
    "Incompatible",
    "SavepointFailed",
    "SavepointNotFound",
    "NotPrepared",
    "ScriptFailed",
    "CompatibilityUnknown",
    "NotRepartitioned",
    "GaveUp",
)
_WAITING = ("WaitingForSavepoint",)


class State(Enum):
    """How a wait stands."""

    WAITING = "Waiting"
    REACHED = "Succeeded"
    FAILED = "Failed"
    ROLLED_BACK = "RolledBack"
    DAMAGED = "Damaged"
    OVERTAKEN = "Overtaken"


_EXITS = {
    State.REACHED: Exit.OK,
    State.FAILED: Exit.OPERATION_FAILED,
    State.ROLLED_BACK: Exit.ROLLED_BACK,
    State.DAMAGED: Exit.DAMAGED,
    State.OVERTAKEN: Exit.OPERATION_FAILED,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement, with the reason if there is one to give."""

    state: State
    message: str = ""

    @property
    def exit(self) -> Exit:
        """Of a command that ends with it."""
        return _EXITS[self.state]


Goal = Callable[[Object], Verdict]

_WAIT = Verdict(State.WAITING)
_REACHED = Verdict(State.REACHED)


def running(body: Object) -> Verdict:
    """The newest spec was looked at, nothing is under way, and all queries run.

    The phase alone does not say so: it is Running from the first start on, also between two tries.
    """
    if not is_settled(body):
        return _repeated(body)
    if status_of(body).get("phase") == "Running" and _is_ready(body):
        return _REACHED
    stuck = _stuck(body, "Suspended", "Completed")
    return stuck if stuck.state is not State.WAITING else _not_up(body)


def suspended(body: Object) -> Verdict:
    """The same, and it stands."""
    if not is_settled(body):
        return _WAIT
    if status_of(body).get("phase") == "Suspended" or _is_kept_from_starting(body):
        return _REACHED
    return _stuck(body, "Completed")


def _is_kept_from_starting(body: Object) -> bool:
    """A job that was never begun, and is not to be."""
    return status_of(body).get("phase") == "Pending" and spec_of(body).get("suspend") is True


def _stuck(body: Object, *others: str) -> Verdict:
    """It is settled, but not where it should be; in some phases it stays until a person acts."""
    phase, accepted = status_of(body).get("phase"), condition(body, "Accepted")
    if accepted.get("status") == "False":
        return Verdict(State.FAILED, f"The spec is not accepted: {accepted.get('message', '')}")
    if phase == "Failed":
        return Verdict(State.FAILED, f"The job has failed. {_degraded(body).get('message', '')}")
    if phase in others:
        return Verdict(State.FAILED, f"The job is {phase}.")
    return _WAIT


def _is_ready(body: Object) -> bool:
    return condition(body, "Ready").get("status") == "True"


def _not_up(body: Object) -> Verdict:
    """What the newest spec led to has failed, and nothing is processed: the operator may try again,
    but whoever asked for it is told."""
    last = status_of(body).get("lastOperation") or {}
    newest = last.get("targetGeneration") == metadata(body).get("generation")
    if last.get("result") != "Failed" or not newest or _is_ready(body):
        return _WAIT
    return Verdict(
        State.FAILED,
        f"{last.get('kind', 'The operation')} has failed, and the job is not ready. "
        f"{last.get('message', '')}".strip(),
    )


def carried_out(body: Object) -> Verdict:
    """Whatever the newest spec wishes was done, and has proven itself."""
    if not is_settled(body):
        return _repeated(body)
    for verdict in (_turned_down(body), _not_up(body)):
        if verdict.state is not State.WAITING:
            return verdict
    if condition(body, "Progressing").get("reason") in _WAITING:
        return _WAIT
    begun = status_of(body).get("phase") not in (None, "Pending")
    return _REACHED if begun or _is_kept_from_starting(body) else _WAIT


def _repeated(body: Object) -> Verdict:
    """A first start whose trial comes to nothing is tried again within the operation: whoever asked
    for it is told, as of one that has failed."""
    under_way, degraded = status_of(body).get("operation") or {}, _degraded(body)
    is_trial = under_way.get("kind") == "Start" and under_way.get("phase") == "Prepare"
    # In the first one, whatever is told may be of an operation before.
    is_repeated = is_trial and (under_way.get("attempts") or 0) > 0
    if is_looked_at(body) and is_repeated and degraded.get("reason") in _HELD:
        return Verdict(State.FAILED, str(degraded.get("message", "")))
    return _WAIT


def _turned_down(body: Object) -> Verdict:
    """The newest spec is not accepted, or held back."""
    accepted, degraded = condition(body, "Accepted"), _degraded(body)
    if accepted.get("status") == "False":
        return Verdict(State.FAILED, f"The spec is not accepted: {accepted.get('message', '')}")
    if degraded.get("reason") == "RolledBack":
        return Verdict(State.ROLLED_BACK, str(degraded.get("message", "")))
    if degraded.get("reason") in _HELD:
        return Verdict(State.FAILED, str(degraded.get("message", "")))
    return _WAIT


def back_at(revision: str, *, asked_at: Object) -> Goal:
    """A script was put back, and the revision with it is what runs.

    A script makes no generation, and the operator reads it only now and then: what is said about
    the former one, as it was said when the script was put back (`asked_at`), does not count.
    """

    def judge(body: Object) -> Verdict:
        if not is_settled(body):
            return _WAIT
        known = status_of(body).get("revisions") or {}
        verdict = _turned_down(body)
        if verdict.state is State.ROLLED_BACK and known.get("failed") != revision:
            return _WAIT
        if verdict.state is not State.WAITING:
            return _WAIT if _told(body) == _told(asked_at) else verdict
        # What is suspended gets its revision when it is resumed.
        if known.get("current") != revision and not spec_of(body).get("suspend"):
            return _WAIT
        return carried_out(body)

    return judge


def _told(body: Object) -> tuple[object, ...]:
    """What the operator has made of the last wish."""
    conditions = [condition(body, kind) for kind in ("Accepted", "Degraded")]
    words = [(each.get("status"), each.get("reason"), each.get("message")) for each in conditions]
    return (*words, (status_of(body).get("lastOperation") or {}).get("id"))


def _degraded(body: Object) -> Mapping[str, Any]:
    found = condition(body, "Degraded")
    return found if found.get("status") == "True" else {}


def unless_overtaken(goal: Goal, **wished: object) -> Goal:
    """The goal, as long as the spec still says what was asked for."""

    def judge(body: Object) -> Verdict:
        spec = spec_of(body)
        changed = sorted(
            name for name, value in wished.items() if (spec.get(name) or None) != value
        )
        if changed:
            fields = ", ".join(f"spec.{name}" for name in changed)
            return Verdict(State.OVERTAKEN, f"Somebody else has changed {fields} meanwhile.")
        return goal(body)

    return judge


def goal_named(text: str) -> Goal | None:
    """What `--for` says; None if it is nothing that can be waited for."""
    known: dict[str, Goal] = {
        "running": running,
        "suspended": suspended,
        "upgraded": carried_out,
        "ready": _condition_goal("Ready", "True"),
    }
    kind, _, rest = text.partition("=")
    name, _, wanted = rest.partition("=")
    if kind.lower() == "condition" and name:
        return _condition_goal(name, wanted or "True")
    return known.get(text.lower())


def _condition_goal(kind: str, wanted: str) -> Goal:
    def judge(body: Object) -> Verdict:
        found = condition(body, kind).get("status", "")
        return _REACHED if is_looked_at(body) and found.lower() == wanted.lower() else _WAIT

    return judge


def savepoint_taken(*, checked: bool) -> Goal:
    """A SparkSavepoint is complete, and if that is wanted, checked."""

    def judge(body: Object) -> Verdict:
        status = status_of(body)
        if status.get("phase") == "Failed":
            return Verdict(State.FAILED, str(status.get("message") or "It failed."))
        if status.get("phase") != "Completed":
            return _WAIT
        return _check(status) if checked else _REACHED

    return judge


def _check(status: Mapping[str, Any]) -> Verdict:
    verified = status.get("verified")
    if verified is not None:
        problems = "; ".join(verified.get("problems") or ["no problem was named"])
        return _REACHED if verified.get("good") else Verdict(State.DAMAGED, f"Damaged: {problems}")
    # No verdict, but the operator has done with it: the check itself failed.
    if (status.get("record") or {}).get("checked"):
        return Verdict(
            State.FAILED,
            "The savepoint is complete, but it could not be checked: look at its Events "
            "(kubectl describe ssp), and check it with `sparkpoint savepoint verify`.",
        )
    return _WAIT
