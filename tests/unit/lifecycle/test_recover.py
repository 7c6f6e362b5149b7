"""A driver that ends, falls silent or stands is replaced; one that has done its work is not."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sparkpoint.lifecycle import decide
from sparkpoint.lifecycle.actions import DeletePod, StartDriver
from sparkpoint.lifecycle.phases import Kind, Phase
from tests.unit.lifecycle.worlds import (
    NOW,
    A,
    B,
    agent,
    ago,
    continuing,
    driver,
    during,
    empty,
    ended,
    executor,
    from_savepoint,
    gated,
    running,
    stable,
    steady,
    wish,
    worker,
    world,
)

RUN = empty(A)


def test_a_failed_driver_is_replaced_after_a_pause_that_grows() -> None:
    due = []
    for failures in (0, 1, 2, 9):
        decision = decide(world(steady(RUN, failures=failures), pods=(ended(RUN),)))
        assert decision.record.due is not None
        due.append((decision.record.due - NOW).total_seconds())

    assert due == [5, 10, 20, 300]


@pytest.mark.parametrize("reason", ["Terminated", "Stopped"])
@pytest.mark.parametrize("restart", ["OnFailure", "Never"])
def test_a_driver_that_was_asked_to_end_has_not_failed(reason: str, restart: str) -> None:
    pods = (ended(RUN, reason, code=0, clean=True),)

    decision = decide(world(steady(RUN, failures=2), wish=wish(A, restart=restart), pods=pods))

    assert decision.record.failures == 2
    assert decision.actions == (StartDriver(run=continuing(RUN), expect="restored"),)


def test_the_next_attempt_waits_for_executors_of_the_former() -> None:
    pods = (ended(RUN), executor(RUN))

    decision = decide(world(steady(RUN), pods=pods))

    name = "visits-e1-a1-exec-1"
    assert decision.actions == (DeletePod(name=name, uid=f"uid-{name}"),)


@pytest.mark.parametrize(("failures", "given_up"), [(0, False), (2, False), (3, True)])
def test_a_job_is_left_alone_after_so_many_failures(failures: int, given_up: bool) -> None:
    record = steady(RUN, failures=failures)

    decision = decide(world(record, wish=wish(A, max_failures=3), pods=(ended(RUN),)))

    assert decision.record.finished is given_up
    assert (decision.record.operation is None) is given_up
    assert (decision.record.held is not None) is given_up


def test_why_a_job_was_left_alone_is_not_forgotten_by_an_edit_that_is_taken_back() -> None:
    pods = (ended(RUN),)
    alone = decide(world(steady(RUN), wish=wish(A, restart="Never"), pods=pods)).record

    edited = decide(world(alone, wish=wish(B, restart="Never", generation=2), pods=pods)).record
    assert edited.operation is not None
    superseded = replace(edited, operation=None)
    back = decide(world(superseded, wish=wish(A, restart="Never", generation=3), pods=pods)).record

    assert not edited.finished
    assert back.finished
    assert back.held is not None
    assert back.held.reason == "GaveUp"


def test_a_job_that_was_left_alone_starts_afresh_when_it_is_resumed() -> None:
    record = steady(RUN, failures=3, suspended=True, finished=True)

    decision = decide(world(record, wish=wish(A, max_failures=3)))

    assert (decision.record.failures, decision.record.finished) == (0, False)


def test_a_script_that_ends_by_itself_is_not_run_again_unless_that_is_wanted() -> None:
    pods = (ended(RUN, "ScriptEnded", code=0),)

    once = decide(world(steady(RUN), pods=pods))
    always = decide(world(steady(RUN), wish=wish(A, restart="Always"), pods=pods))

    assert once.record.finished
    assert once.record.operation is None
    assert always.record.operation is not None
    assert always.record.operation.kind is Kind.RECOVER


@pytest.mark.parametrize(
    "seen", [None, agent(RUN, "stopping"), agent(RUN, "ended")], ids=["silent", "stands", "ended"]
)
def test_a_driver_that_is_silent_or_stands_for_long_is_replaced(seen: object) -> None:
    pods = (driver(RUN),)

    first = decide(world(steady(RUN), pods=pods, agent=seen)).record
    later = decide(world(first, pods=pods, agent=seen, now=NOW + timedelta(minutes=6))).record

    assert first.silent_since == NOW
    assert first.operation is None
    assert later.operation is not None
    assert later.operation.kind is Kind.RECOVER


def test_an_agent_that_answers_again_is_forgiven() -> None:
    record = steady(RUN, silent_since=ago(minutes=4))

    decision = decide(world(record, pods=(driver(RUN),), agent=running(RUN)))

    assert decision.record.silent_since is None


def test_trials_that_fail_again_and_again_do_not_keep_a_dead_job_from_recovery() -> None:
    target = from_savepoint("visits-upgrade-7", B, opened=False)
    record = during(
        Kind.UPGRADE,
        Phase.PREPARE,
        RUN,
        target=target,
        savepoint="visits-upgrade-7",
        phase_started=ago(minutes=11),
        silent_since=ago(minutes=12),
    )
    stuck = worker("visits-upgrade-7-prepare-1-0", stuck="ImagePullBackOff")

    decision = decide(
        world(record, wish=wish(B), newest="s1", pods=(driver(RUN),), workers=(stuck,))
    )

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.RECOVER


def test_a_revision_that_was_never_proven_can_still_be_rolled_back() -> None:
    run = continuing(RUN, B)
    record = during(
        Kind.RECOVER, Phase.OBSERVE, run, target=run, stable=stable(A, "s1"), launches=2
    )

    decision = decide(world(record, wish=wish(B), pods=(ended(run),)))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.ROLLBACK


def test_a_stable_revision_that_fails_is_not_rolled_back_to_itself() -> None:
    record = during(
        Kind.RECOVER, Phase.OBSERVE, RUN, target=RUN, stable=stable(A, "s1"), launches=2
    )

    decision = decide(world(record, pods=(ended(RUN),)))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.RECOVER
    assert decision.record.run == continuing(RUN)


def test_a_driver_that_was_asked_to_go_is_not_let_in() -> None:
    decision = decide(world(steady(RUN), pods=(driver(RUN, deleting=True),), agent=gated(RUN)))

    assert decision.actions == ()
