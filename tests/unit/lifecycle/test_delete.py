"""A deletion ends, whatever could not be done."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.lifecycle import decide
from sparkpoint.lifecycle.actions import DeletePod, Release, RemoveData, RequestStop, StartWorker
from sparkpoint.lifecycle.phases import PLANS, Kind, Phase
from sparkpoint.lifecycle.record import Record, Result
from sparkpoint.lifecycle.world import Wish, WorkerFact, WorkerState
from tests.unit.lifecycle.worlds import (
    NOW,
    A,
    B,
    ago,
    driver,
    during,
    empty,
    from_savepoint,
    lost,
    running,
    steady,
    stopped,
    wish,
    worker,
    world,
)

RUN = empty(A)
CLEAN = "visits-delete-7-clean-1-0"


def deleted(**policy: object) -> Wish:
    return wish(A, generation=2, deleting=NOW, **policy)


def deleting(phase: Phase, **facts: object) -> Record:
    return during(Kind.DELETE, phase, RUN, generation=2, **facts)


def test_a_job_that_never_started_goes_at_once() -> None:
    decision = decide(world(Record(), wish=deleted()))

    assert decision.record.removed
    assert decision.actions == (Release(),)


@pytest.mark.parametrize("final", [True, False])
def test_a_running_job_stops_at_its_boundary(final: bool) -> None:
    decision = decide(
        world(
            steady(RUN),
            wish=deleted(final_savepoint=final),
            pods=(driver(RUN),),
            agent=running(RUN),
        )
    )

    savepoint = "visits-delete-7" if final else None
    assert decision.actions == (RequestStop(run=RUN, operation="delete-7", savepoint=savepoint),)


@pytest.mark.parametrize(
    ("kind", "phase"),
    [(kind, phase) for kind, plan in PLANS.items() if kind is not Kind.DELETE for phase in plan],
    ids=str,
)
def test_a_deletion_takes_the_place_of_whatever_is_under_way(kind: Kind, phase: Phase) -> None:
    target = from_savepoint("s7", B, opened=False)
    record = during(kind, phase, RUN, target=target, savepoint="s7")

    decision = decide(world(record, wish=deleted(), pods=(driver(RUN),), agent=running(RUN)))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.DELETE
    assert decision.record.last is not None
    assert decision.record.last.result is Result.SUPERSEDED


def test_checkpoints_are_removed_if_they_are_not_to_be_retained() -> None:
    wished = deleted(retain_checkpoint=False)
    pods = (stopped(RUN, None),)

    first = decide(world(deleting(Phase.STOP), wish=wished, pods=pods))
    removed = worker(CLEAN, "Removed")
    last = decide(world(first.record, wish=wished, pods=pods, workers=(removed,)))

    assert first.actions == (
        StartWorker(name=CLEAN, task=RemoveData(run=RUN, life="", revision=A)),
    )
    assert last.record.removed
    assert last.actions[-1] == Release()


def test_checkpoints_that_cannot_be_removed_are_tried_again_after_a_pause() -> None:
    wished = deleted(retain_checkpoint=False)
    failed = worker(CLEAN, state=WorkerState.FAILED, message="no answer")

    first = decide(world(deleting(Phase.CLEAN), wish=wished, workers=(failed,)))
    due = first.record.due
    assert due is not None
    then = decide(world(first.record, wish=wished, workers=(failed,), now=due))

    assert first.actions == ()
    assert first.wake == due - NOW
    assert [action.name for action in then.actions if isinstance(action, StartWorker)] == [
        "visits-delete-7-clean-1-1"
    ]


def test_checkpoints_that_cannot_be_removed_are_told_of() -> None:
    record = deleting(Phase.CLEAN, tries=2)
    failed = worker("visits-delete-7-clean-1-2", state=WorkerState.FAILED, message="no access")

    decision = decide(world(record, wish=deleted(retain_checkpoint=False), workers=(failed,)))

    assert decision.record.removed
    assert decision.record.last is not None
    assert decision.record.last.result is Result.FAILED
    assert "no access" in decision.record.last.message


@pytest.mark.parametrize("phase", PLANS[Kind.DELETE])
def test_a_deletion_that_takes_too_long_ends_without_the_rest(phase: Phase) -> None:
    record = deleting(phase, started=ago(minutes=10), savepoint="s7")
    pods = (lost(driver(RUN)),)

    decision = decide(world(record, wish=deleted(), pods=pods))

    assert decision.record.removed
    assert decision.actions == (
        DeletePod(name="visits-e1-a1", uid="uid-visits-e1-a1"),
        Release(),
    )
    assert "DeletionTimedOut" in [event.reason for event in decision.events]


def test_no_wait_of_a_deletion_goes_beyond_its_end() -> None:
    record = deleting(
        Phase.CAPTURE,
        started=ago(minutes=9),
        savepoint="s7",
        tries=1,
        due=NOW + timedelta(minutes=5),
    )

    decision = decide(world(record, wish=deleted()))

    assert decision.wake == timedelta(minutes=1)


def gone(**facts: Any) -> Record:
    """A deletion that took too long, or is over."""
    record = decide(world(deleting(Phase.CLEAN), wish=deleted())).record
    assert record.last is not None
    return replace(record, last=replace(record.last, **facts))


def test_a_worker_is_seen_to_end_before_the_job_is_let_go() -> None:
    record = deleting(Phase.CLEAN, started=ago(minutes=10))
    wished, removing = deleted(retain_checkpoint=False), worker(CLEAN, uid="u1")

    late = decide(world(record, wish=wished, workers=(removing,)))
    ending = decide(world(late.record, wish=wished, workers=(replace(removing, deleting=True),)))
    ended = decide(world(late.record, wish=wished))

    assert late.actions == (DeletePod(name=CLEAN, uid="u1"),)
    assert late.wake is not None
    assert ending.actions == ()
    assert ended.actions == (Release(),)


@pytest.mark.parametrize(
    "there",
    [
        worker(CLEAN, "Removed"),
        worker(CLEAN, state=WorkerState.FAILED),
        worker(CLEAN, lost=True),
    ],
    ids=["done", "failed", "lost"],
)
def test_a_worker_that_has_ended_or_is_lost_is_not_waited_for(there: WorkerFact) -> None:
    assert decide(world(gone(), wish=deleted(), workers=(there,))).actions == (Release(),)


def test_a_worker_is_not_waited_for_without_end() -> None:
    record = gone(finished=ago(minutes=3))

    decision = decide(world(record, wish=deleted(), workers=(worker(CLEAN, deleting=True),)))

    assert decision.actions == (Release(),)


def test_where_retained_checkpoints_are_is_told() -> None:
    record = replace(deleting(Phase.CLEAN), run=replace(RUN, directory="epoch-1-3f9a2c7b"))

    decision = decide(world(record, wish=deleted()))

    assert any("epoch-1-3f9a2c7b" in event.message for event in decision.events)


def test_letting_go_is_repeated_until_it_is_seen() -> None:
    record = steady(RUN, removed=True)

    decision = decide(world(record, wish=deleted()))

    assert decision.record == record
    assert decision.actions == (Release(),)
