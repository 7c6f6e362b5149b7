"""A new job takes on a checkpoint that somebody else left: exactly, or not at all."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sparkpoint.lifecycle import Decision, decide
from sparkpoint.lifecycle.actions import Adopt, DeletePod, Rehearse, StartDriver, StartWorker
from sparkpoint.lifecycle.changes import change
from sparkpoint.lifecycle.conditions import Aspect, Circumstances, Reason, conditions
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Adoption, Begin, Operation, Record, Result
from sparkpoint.lifecycle.world import WorkerState, World
from tests.unit.lifecycle.worlds import A, B, restore, wish, worker, world

OLD = Adoption(location="s3://old/visits")
WISHED = wish(A, adopt=OLD, compatibility="Skip")
SAVEPOINT = "visits-start-1-3f9a2c7b"
WORKER = "visits-start-1-adopt-1-0"


def new(wished: object = WISHED, record: Record | None = None, **facts: object) -> World:
    return world(record or Record(), wish=wished, life="3f9a2c7b", **facts)


def under_way(decision: Decision) -> Operation:
    assert decision.record.operation is not None
    return decision.record.operation


def test_it_is_captured_before_anything_starts() -> None:
    decision = decide(new())

    operation = under_way(decision)
    assert (operation.kind, operation.phase) == (Kind.START, Phase.ADOPT)
    assert operation.target is not None
    task = Adopt(run=operation.target, adoption=OLD, savepoint=SAVEPOINT)
    assert decision.actions == (StartWorker(name=WORKER, task=task),)
    assert decision.record.run is None
    assert decision.record.references() == {SAVEPOINT}


def test_the_first_driver_begins_with_it() -> None:
    begun = decide(new())
    captured = worker(WORKER, "Captured", batches={"visits": 41})

    decision = decide(new(record=begun.record, workers=(captured,)))

    run = decision.record.run
    assert run is not None
    assert (run.epoch, run.folder) == (1, "epoch-1-3f9a2c7b")
    assert (run.source.begin, run.source.savepoint) == (Begin.SAVEPOINT, SAVEPOINT)
    assert run.source.sink == "Resume"
    assert decision.actions == (StartDriver(run=run, expect="restored"),)
    # Commits are counted on from what was adopted.
    assert under_way(decision).base == (("visits", 41),)


def test_the_code_is_tried_on_it_first() -> None:
    wished = wish(A, adopt=OLD)
    begun = decide(new(wished))

    decision = decide(new(wished, begun.record, workers=(worker(WORKER, "Captured"),)))

    operation = under_way(decision)
    assert operation.phase is Phase.PREPARE
    assert operation.target is not None
    task = Rehearse(run=operation.target, savepoint=SAVEPOINT)
    assert decision.actions == (StartWorker(name="visits-start-1-prepare-1-0", task=task),)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("Incompatible", ""), ("Unknown", "ScriptRaises")],
)
def test_code_that_cannot_go_on_from_it_is_not_started_and_not_tried_again(
    answer: str, kind: str
) -> None:
    """Another try would capture all of it once more."""
    wished = wish(A, adopt=OLD)
    captured = decide(
        new(wished, decide(new(wished)).record, workers=(worker(WORKER, "Captured"),))
    )
    trial, message = "visits-start-1-prepare-1-0", "no query 'visits'"
    verdict = worker(trial, answer, kind=kind, message=message)

    refused = decide(new(wished, captured.record, workers=(verdict,)))
    corrected = decide(new(replace(wished, generation=2, revision=B), refused.record))

    assert refused.record.run is None
    assert refused.actions == ()
    assert refused.record.last is not None
    assert (refused.record.last.result, refused.record.last.message) == (
        Result.FAILED,
        message,
    )
    assert refused.record.held is not None
    assert refused.record.held.until is None
    assert under_way(corrected).id == "start-2"


@pytest.mark.parametrize(
    "said",
    [
        worker(WORKER, state=WorkerState.FAILED, message="Access denied."),
        worker(WORKER, "NothingCommitted", message="No batch was ever committed."),
        worker(WORKER, "", stuck="ImagePullBackOff", created=world(Record()).now),
    ],
    ids=["unreadable", "empty", "stuck"],
)
def test_one_that_cannot_be_read_is_told_of_and_nothing_is_started(said: object) -> None:
    begun = decide(new())
    later = world(Record()).now + timedelta(minutes=11)

    failed = decide(new(record=begun.record, workers=(said,), now=later))
    waiting = decide(new(record=failed.record, workers=(said,), now=later))
    again = decide(new(record=failed.record, workers=(said,), now=later + timedelta(seconds=10)))

    assert failed.record.run is None
    assert failed.actions == ()
    assert [event.reason for event in failed.events] == ["NotAdopted"]
    assert failed.wake is not None
    assert waiting.record == failed.record
    assert StartWorker in {type(action) for action in again.actions}
    assert StartDriver not in {type(action) for action in again.actions}
    degraded = next(
        each
        for each in conditions(new(record=failed.record), Circumstances())
        if each.aspect is Aspect.DEGRADED
    )
    assert degraded.reason is Reason.NOT_ADOPTED
    assert "s3://old/visits" in degraded.message
    assert "spec.checkpoint.adopt" in degraded.message


def test_pods_of_earlier_tries_do_not_pile_up() -> None:
    failed = worker(WORKER, state=WorkerState.FAILED, message="no", uid="u1")
    record = decide(new(record=decide(new()).record, workers=(failed,))).record
    later = world(Record()).now + timedelta(minutes=1)

    again = decide(new(record=record, workers=(failed,), now=later))

    assert again.actions[0] == DeletePod(name=WORKER, uid="u1")
    assert isinstance(again.actions[1], StartWorker)
    assert again.actions[1].name == "visits-start-1-adopt-1-1"


def test_another_checkpoint_takes_over_at_once() -> None:
    begun = decide(new())
    other = replace(WISHED, generation=2, adopt=Adoption(location="s3://other", query="visits"))

    decision = decide(new(other, begun.record))

    assert under_way(decision).id == "start-2"
    assert under_way(decision).adopt == other.adopt


def test_a_job_that_runs_does_not_look_at_it_any_more() -> None:
    begun = decide(new())
    started = decide(new(record=begun.record, workers=(worker(WORKER, "Captured"),)))
    record = replace(started.record, operation=None)
    other = replace(WISHED, generation=2, adopt=Adoption(location="s3://other"))

    assert change(new(other, record)) is None
    assert change(new(replace(WISHED, generation=2, adopt=None), record)) is None


def test_it_can_go_to_a_savepoint_later() -> None:
    begun = decide(new())
    started = decide(new(record=begun.record, workers=(worker(WORKER, "Captured"),)))
    record = replace(started.record, operation=None)

    wanted = change(new(wish(A, generation=2, restore=restore("s1")), record))

    assert wanted is not None
    assert wanted.kind is Kind.RESTORE


def test_without_a_repository_it_is_refused() -> None:
    wished = wish(A, adopt=OLD, repository=False)

    decision = decide(new(wished))
    wanted = change(new(wished))

    assert (decision.record, decision.actions) == (Record(), ())
    assert wanted is not None
    assert "spec.savepoints.repository" in wanted.refusal
