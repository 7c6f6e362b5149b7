"""When a wait is over, and how: judged from a status alone."""

from typing import Any

import pytest

from sparkpoint.cli.jobs.verdicts import State, back_at, carried_out, running
from sparkpoint.lifecycle import conditions
from tests.unit.cli.jobs.resources import condition, job, operation

UP = condition("Ready", "True", "Committing")
DOWN = condition("Ready", "Unknown", "AgentSilent")
STARTING = condition("Ready", "False", "Starting")


def last(result: str, *, generation: int = 2, id: str = "start-1") -> dict[str, Any]:  # noqa: A002
    return {
        "id": id,
        "kind": "Start",
        "result": result,
        "targetGeneration": generation,
        "message": "The driver ended with 1.",
    }


@pytest.mark.parametrize(
    ("ready", "ended", "runs", "done"),
    [
        (UP, last("Succeeded"), State.REACHED, State.REACHED),
        (UP, last("Failed"), State.REACHED, State.REACHED),
        (DOWN, last("Succeeded"), State.WAITING, State.REACHED),
        (STARTING, None, State.WAITING, State.REACHED),
        (DOWN, last("Failed"), State.FAILED, State.FAILED),
        (STARTING, last("Failed"), State.FAILED, State.FAILED),
        # Of another spec: it says nothing about this one.
        (DOWN, last("Failed", generation=1), State.WAITING, State.REACHED),
    ],
)
def test_a_job_whose_driver_never_came_up_does_not_run(
    ready: dict[str, Any], ended: dict[str, Any] | None, runs: State, done: State
) -> None:
    body = job(conditions=[ready], lastOperation=ended)

    assert (running(body).state, carried_out(body).state) == (runs, done)


def test_a_start_that_failed_is_told_in_the_operators_words() -> None:
    body = job(conditions=[DOWN], lastOperation=last("Failed"))

    assert "Start has failed" in running(body).message
    assert "The driver ended with 1." in carried_out(body).message


def test_a_start_that_is_tried_again_is_waited_for() -> None:
    again = operation("Recover", "Launch")
    body = job(conditions=[DOWN], lastOperation=last("Failed"), operation=again)

    assert running(body).state is carried_out(body).state is State.WAITING


def held(reason: str) -> list[dict[str, Any]]:
    return [UP, condition("Degraded", "True", reason, "Of the new script.")]


@pytest.mark.parametrize("reason", sorted(set(conditions._HELD) - {"RolledBack"}))
def test_a_wish_that_the_operator_does_not_carry_out_has_failed(reason: str) -> None:
    """Whatever it holds a wish for, now or later: what ran before runs on, and is ready."""
    body = job(conditions=held(reason), lastOperation=last("Failed", id="upgrade-2"))

    verdict = carried_out(body)

    assert verdict.state is State.FAILED
    assert verdict.message == "Of the new script."


@pytest.mark.parametrize(
    ("phase", "attempts", "generation", "state"),
    [
        ("Prepare", 1, 2, State.FAILED),
        # It was not looked at yet, or not tried yet: what is said is of the former one.
        ("Prepare", 1, 3, State.WAITING),
        ("Prepare", 0, 2, State.WAITING),
        ("Launch", 0, 2, State.WAITING),
    ],
)
def test_a_first_start_whose_trial_comes_to_nothing_is_told_and_not_waited_for(
    phase: str, attempts: int, generation: int, state: State
) -> None:
    under_way = {"kind": "Start", "phase": phase, "targetGeneration": 2, "attempts": attempts}
    told = held("CompatibilityUnknown")
    body = job(conditions=told, phase="Starting", operation=under_way)
    body["metadata"]["generation"] = generation

    assert carried_out(body).state is state
    assert running(body).state is state


def test_a_wish_that_was_rolled_back_is_told_apart_from_one_that_was_not_carried_out() -> None:
    body = job(conditions=held("RolledBack"))

    assert carried_out(body).state is State.ROLLED_BACK


FINE = [UP, condition("Degraded", "False", "AsExpected")]
BACK = {"current": "aaa", "stable": "aaa"}


@pytest.mark.parametrize(
    ("before", "now", "state"),
    [
        # The operator has not read the script yet.
        ({}, {}, State.WAITING),
        ({}, {"revisions": BACK, "operation": operation("Upgrade", "Launch")}, State.WAITING),
        ({}, {"revisions": BACK}, State.REACHED),
        # It was rolled back by itself before, and the word about that is still there.
        (
            {"conditions": held("RolledBack")},
            {"conditions": held("RolledBack"), "revisions": {**BACK, "failed": "bbb"}},
            State.WAITING,
        ),
        (
            {"conditions": held("RolledBack")},
            {"conditions": FINE, "revisions": BACK},
            State.REACHED,
        ),
        (
            {},
            {"conditions": held("RolledBack"), "revisions": {"current": "bbb", "failed": "aaa"}},
            State.ROLLED_BACK,
        ),
        # The same with what was held back without being tried.
        (
            {"conditions": held("Incompatible")},
            {"conditions": held("Incompatible"), "revisions": BACK},
            State.WAITING,
        ),
        ({}, {"conditions": held("Incompatible")}, State.FAILED),
        (
            {"conditions": held("Incompatible"), "lastOperation": last("Failed")},
            {"conditions": held("Incompatible"), "lastOperation": last("Failed", id="upgrade-2")},
            State.FAILED,
        ),
        # A driver that fails with the former script.
        ({}, {"conditions": [DOWN], "lastOperation": last("Failed")}, State.WAITING),
        (
            {},
            {"conditions": [DOWN], "lastOperation": last("Failed"), "revisions": BACK},
            State.FAILED,
        ),
    ],
)
def test_a_script_that_was_put_back_is_waited_for(
    before: dict[str, Any], now: dict[str, Any], state: State
) -> None:
    goal = back_at("aaa", asked_at=job(**before))

    assert goal(job(**now)).state is state


def test_a_suspended_job_is_not_waited_for_to_run_the_script_that_was_put_back() -> None:
    body = job(phase="Suspended", conditions=[condition("Ready", "False", "Suspended")])
    body["spec"]["suspend"] = True

    assert back_at("aaa", asked_at=body)(body).state is State.REACHED
