"""Going (back) to a savepoint."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.lifecycle import decide
from sparkpoint.lifecycle.actions import Rehearse, RequestStop, StartDriver, StartWorker
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Record, Result, Waiting
from sparkpoint.lifecycle.world import Lack, WorkerState
from tests.unit.lifecycle.worlds import (
    NOW,
    A,
    B,
    driver,
    during,
    empty,
    ended,
    from_savepoint,
    restore,
    running,
    stable,
    steady,
    stopped,
    wish,
    worker,
    world,
)

RUN = empty(A)
TARGET = from_savepoint("s2", A, opened=False, sink="Rewind")
WISHED = wish(A, generation=2, restore=restore("s2"))
HEALTHY = {"pods": (driver(RUN),), "agent": running(RUN)}


def test_the_code_is_tried_on_the_savepoint_itself() -> None:
    decision = decide(world(steady(RUN), wish=WISHED, newest="s9", **HEALTHY))

    task = Rehearse(run=TARGET, savepoint="s2")
    assert decision.actions == (StartWorker(name="visits-restore-7-prepare-1-0", task=task),)
    assert "s2" in decision.record.references()


def test_what_is_given_up_is_captured_first() -> None:
    record = during(
        Kind.RESTORE,
        Phase.PREPARE,
        RUN,
        generation=2,
        target=TARGET,
        savepoint="visits-restore-7",
        restore="s2#1",
    )
    tried = worker("visits-restore-7-prepare-1-0", "Compatible")

    decision = decide(world(record, wish=WISHED, workers=(tried,), **HEALTHY))

    ask = RequestStop(run=RUN, operation="restore-7", savepoint="visits-restore-7")
    assert decision.actions == (ask,)


def test_the_wish_is_carried_out_once_the_run_begins_from_it() -> None:
    facts = {"target": TARGET, "savepoint": "visits-restore-7", "restore": "s2#1"}
    record = during(Kind.RESTORE, Phase.STOP, RUN, generation=2, **facts)

    decision = decide(world(record, wish=WISHED, pods=(stopped(RUN, "visits-restore-7"),)))

    launched = replace(TARGET, before="visits-restore-7")
    assert decision.record.run == launched
    assert decision.record.restored == "s2#1"
    assert decision.record.stable == stable(A, "visits-restore-7")
    assert decision.actions == (StartDriver(run=launched, expect="restored"),)


def test_a_recovery_in_the_meantime_does_not_pass_for_the_restore() -> None:
    wished = wish(A, generation=2, restore=restore("s2", ready=False))

    decision = decide(world(steady(RUN), wish=wished, pods=(ended(RUN),)))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.RECOVER
    assert decision.record.restored is None


def test_an_upgrade_later_does_not_restore_again() -> None:
    record = steady(TARGET, restored="s2#1")
    wished = wish(B, generation=3, restore=restore("s2"), compatibility="Skip")

    decision = decide(world(record, wish=wished))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.UPGRADE


def test_the_same_savepoint_is_restored_again_under_another_key() -> None:
    record = steady(replace(TARGET, opened=True), restored="s2#1")
    again = restore("s2", key="s2#2")

    decision = decide(world(record, wish=wish(A, generation=3, restore=again)))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.RESTORE
    assert decision.record.operation.restore == "s2#2"


def test_another_key_takes_over_while_nothing_was_touched() -> None:
    facts = {"target": TARGET, "savepoint": "visits-restore-7", "restore": "s2#1"}
    record = during(Kind.RESTORE, Phase.PREPARE, RUN, generation=2, **facts)
    again = restore("s2", key="s2#2")

    decision = decide(world(record, wish=wish(A, generation=3, restore=again), **HEALTHY))

    assert decision.record.last is not None
    assert decision.record.last.result is Result.SUPERSEDED


def test_going_to_a_savepoint_before_the_gate_opened_can_be_undone_too() -> None:
    unopened = from_savepoint("s5", A, opened=False)
    record = steady(unopened, stable=stable(A), suspended=True)
    wished = wish(A, generation=2, restore=restore("s2"), compatibility="Skip")

    decision = decide(world(record, wish=wished))

    assert decision.record.run is not None
    assert decision.record.run.source.savepoint == "s2"
    assert decision.record.stable == stable(A, "s5")


def test_a_savepoint_that_is_missing_is_noted_once_and_forgotten_when_it_comes() -> None:
    lacking = restore("s1", ready=False, problem="There is no s1.", lack=Lack.NOT_FOUND)
    other = replace(lacking, key="s2#1", savepoint="s2")
    seen: dict[str, Any] = HEALTHY

    first = decide(world(steady(RUN), wish=wish(A, restore=lacking), **seen)).record
    later = world(first, wish=wish(A, restore=lacking), **seen)
    again = decide(replace(later, now=NOW + timedelta(minutes=5))).record
    corrected = world(again, wish=wish(A, restore=other), **seen)
    renewed = decide(replace(corrected, now=NOW + timedelta(minutes=6))).record
    there = decide(world(again, wish=wish(A, restore=restore("s1")), **seen)).record

    assert first.waiting == Waiting(restore="s1#1", since=NOW)
    assert again.waiting == first.waiting
    assert renewed.waiting == Waiting(restore="s2#1", since=NOW + timedelta(minutes=6))
    assert (there.waiting, there.operation is not None) == (None, True)


def test_a_savepoint_that_is_being_taken_is_waited_for_without_complaint() -> None:
    coming = restore("s1", ready=False, problem="Waiting for s1, which is InProgress.")

    decision = decide(world(Record(), wish=wish(A, restore=coming)))

    assert decision.record.waiting is None


def preparing(*, strict: bool = False) -> Record:
    """A restore of s2 whose trial is under way."""
    return during(
        Kind.RESTORE,
        Phase.PREPARE,
        RUN,
        target=TARGET,
        restore="s2#1",
        savepoint="visits-restore-7",
        strict=strict or None,
    )


def test_what_is_not_known_to_fit_a_savepoint_is_not_tried_on_it_again() -> None:
    record = preparing(strict=True)
    trial = worker("visits-restore-7-prepare-1-0", "Unknown")
    wished = wish(A, generation=2, restore=restore("s2"), compatibility="Strict")

    decision = decide(world(record, wish=wished, workers=(trial,), **HEALTHY))

    held = decision.record.held
    assert held is not None
    assert (held.reason, held.until) == ("CompatibilityUnknown", None)


@pytest.mark.parametrize(
    ("answer", "facts", "reason"),
    [
        # Its pod was evicted, or killed for want of memory.
        ("", {"state": WorkerState.FAILED}, "NotPrepared"),
        ("Failed", {"state": WorkerState.FAILED, "retry_helps": True}, "NotPrepared"),
        # Time was over, or its driver ended without a word.
        ("Unknown", {"retry_helps": True}, "CompatibilityUnknown"),
    ],
)
def test_a_trial_that_only_happened_to_fail_is_repeated_also_if_it_is_strict(
    answer: str, facts: dict[str, Any], reason: str
) -> None:
    trial = worker("visits-restore-7-prepare-1-0", answer, message="No answer.", **facts)
    wished = wish(A, generation=2, restore=restore("s2"), compatibility="Strict")

    decision = decide(world(preparing(strict=True), wish=wished, workers=(trial,), **HEALTHY))
    held = decision.record.held
    assert held is not None
    assert held.until is not None
    later = decide(replace(world(decision.record, wish=wished, **HEALTHY), now=held.until))

    assert held.reason == reason
    assert later.record.operation is not None
    assert later.record.operation.kind is Kind.RESTORE


@pytest.mark.parametrize(
    ("answer", "compatibility", "reason"),
    [
        ("Unknown", "Enforce", "NotPrepared"),
        ("Unknown", "Warn", "NotPrepared"),
        # It can be read, and no driver begins from it.
        ("Incompatible", "Enforce", "Incompatible"),
        ("Incompatible", "Warn", "NotPrepared"),
    ],
)
def test_a_savepoint_that_cannot_be_read_does_not_stop_the_job(
    answer: str, compatibility: str, reason: str
) -> None:
    record = preparing()
    trial = worker("visits-restore-7-prepare-1-0", answer, kind="SavepointUnreadable")
    wished = wish(A, generation=2, restore=restore("s2"), compatibility=compatibility)

    decision = decide(world(record, wish=wished, workers=(trial,), **HEALTHY))

    assert (decision.record.operation, decision.record.run) == (None, RUN)
    assert decision.record.held is not None
    assert decision.record.held.reason == reason
    assert decision.actions == ()
