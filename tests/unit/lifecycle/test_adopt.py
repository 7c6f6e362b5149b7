"""A new job takes on a checkpoint that somebody else left: exactly, or not at all."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Protocol, TypeGuard

import pytest

from sparkpoint.lifecycle import Decision, decide
from sparkpoint.lifecycle.actions import (
    Action,
    Adopt,
    DeletePod,
    Rehearse,
    StartDriver,
    StartWorker,
)
from sparkpoint.lifecycle.changes import change
from sparkpoint.lifecycle.conditions import Aspect, Circumstances, Condition, Reason, conditions
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Adoption, Begin, Operation, Record, Result
from sparkpoint.lifecycle.world import Wish, WorkerFact, WorkerState, World
from tests.unit.lifecycle.worlds import NOW, A, B, restore, wish, worker, world

OLD = Adoption(location="s3://old/visits")
WISHED = wish(A, adopt=OLD, compatibility="Skip")
SAVEPOINT = "visits-start-1-3f9a2c7b"
WORKER = "visits-start-1-adopt-1-0"


def new(wished: object = WISHED, record: Record | None = None, **facts: object) -> World:
    return world(record or Record(), wish=wished, life="3f9a2c7b", **facts)


def under_way(decision: Decision) -> Operation:
    assert decision.record.operation is not None
    return decision.record.operation


def degraded_of(seen: World) -> Condition:
    """What needs a person."""
    told = conditions(seen, Circumstances())
    return next(each for each in told if each.aspect is Aspect.DEGRADED)


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


def test_code_that_cannot_go_on_from_it_is_not_started_and_not_tried_again() -> None:
    wished = wish(A, adopt=OLD)
    captured = decide(
        new(wished, decide(new(wished)).record, workers=(worker(WORKER, "Captured"),))
    )
    trial, message = "visits-start-1-prepare-1-0", "no query 'visits'"
    verdict = worker(trial, "Incompatible", message=message)

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


STRICT = wish(A, adopt=OLD, compatibility="Strict")
TRIAL = "visits-start-1-prepare-1-0"


class Trial(Protocol):
    """What starts one."""

    name: str
    task: Rehearse


def is_trial(action: Action) -> TypeGuard[Trial]:
    return isinstance(action, StartWorker) and isinstance(action.task, Rehearse)


def tried(*trials: WorkerFact, wished: Wish = STRICT, **facts: object) -> Decision:
    """After its capture, and these trials."""
    record = decide(new(wished)).record
    record = decide(new(wished, record, workers=(worker(WORKER, "Captured"),))).record
    for trial in trials:
        record = decide(new(wished, record, workers=(trial,), **facts)).record
    return decide(new(wished, record, workers=trials[-1:], **facts))


@pytest.mark.parametrize(
    ("came_to", "reason"),
    [
        ({"state": WorkerState.FAILED, "message": "Out of memory."}, Reason.NOT_PREPARED),
        (
            {"answer": "Unknown", "retry_helps": True, "message": "Out of time."},
            Reason.COMPATIBILITY_UNKNOWN,
        ),
        (
            {"answer": "Unknown", "kind": "ScriptRaises", "message": "Out of the registry."},
            Reason.SCRIPT_FAILED,
        ),
        (
            {
                "answer": "Failed",
                "state": WorkerState.FAILED,
                "retry_helps": True,
                "message": "Out",
            },
            Reason.NOT_PREPARED,
        ),
        ({"stuck": "Out of nodes.", "now": NOW + timedelta(hours=1)}, Reason.NOT_PREPARED),
    ],
    ids=["killed", "late", "script", "unreachable", "stuck"],
)
def test_a_trial_that_came_to_nothing_is_repeated_without_another_capture(
    came_to: dict[str, Any], reason: Reason
) -> None:
    now = came_to.pop("now", NOW)
    first = worker(TRIAL, **came_to, uid="u1")

    failed = tried(first, now=now)
    due = failed.record.due
    assert due is not None
    again = decide(new(STRICT, failed.record, workers=(first,), now=due))
    # Its pod could be made late: it has a time of its own.
    made = due + timedelta(hours=2)
    running = worker("visits-start-1-prepare-1-1", created=made)
    goes_on = decide(new(STRICT, again.record, workers=(running,), now=made + timedelta(minutes=9)))
    good = worker("visits-start-1-prepare-1-1", "Compatible")
    passed = decide(new(STRICT, goes_on.record, workers=(good,), now=made + timedelta(hours=1)))

    assert (failed.actions, failed.wake) == ((), due - now)
    assert [type(each) for each in again.actions][-1] is StartWorker
    assert (DeletePod(name=TRIAL, uid="u1") in again.actions) is (first.state.name != "RUNNING")
    for decision in (failed, again, goes_on):
        assert under_way(decision).id == "start-1"
        assert under_way(decision).captured
        assert "Out" in under_way(decision).message
        condition = degraded_of(new(STRICT, decision.record))
        assert condition.reason is reason
        assert "Out" in condition.message
    assert isinstance(passed.actions[-1], StartDriver)
    assert passed.record.due is None
    assert degraded_of(new(STRICT, passed.record)).reason is Reason.AS_EXPECTED


def test_a_trial_that_fails_in_the_same_way_every_time_is_not_repeated() -> None:
    """Such as by an image whose tools do not know what is asked of them."""
    refused = worker(
        TRIAL, "Refused", state=WorkerState.FAILED, final=True, message="--replay is no option"
    )

    decision = tried(refused)

    held = decision.record.held
    assert held is not None
    assert (held.until, held.message) == (None, "--replay is no option")
    assert decision.record.operation is None


def test_another_strictness_is_not_kept_waiting_for_a_trial_by_the_former_one() -> None:
    failed = tried(worker(TRIAL, state=WorkerState.FAILED, message="Out of memory."))
    enforced = replace(wish(A, adopt=OLD), generation=2)

    again = decide(new(enforced, failed.record))

    assert [each.task.strict for each in again.actions if is_trial(each)] == [False]
    assert again.record.due is None
    assert under_way(again).phase_started == world(Record()).now
    assert degraded_of(new(enforced, again.record)).reason is Reason.AS_EXPECTED


def test_another_policy_is_not_kept_waiting_by_what_it_may_let_pass() -> None:
    enforced = wish(A, adopt=OLD)
    failed = tried(worker(TRIAL, "Unknown", kind="ScriptRaises", message="no."), wished=enforced)
    condition = degraded_of(new(enforced, failed.record))
    warned = replace(wish(A, adopt=OLD, compatibility="Warn"), generation=2)
    still = worker("visits-start-1-prepare-1-2", "Unknown", kind="ScriptRaises", message="no.")

    again = decide(new(warned, failed.record))
    passed = decide(new(warned, again.record, workers=(still,)))

    assert condition.reason is Reason.SCRIPT_FAILED
    assert "to Warn" in condition.message
    assert "What ran before" not in condition.message
    assert [each.name for each in again.actions if is_trial(each)] == [still.name]
    assert degraded_of(new(warned, again.record)).reason is Reason.AS_EXPECTED
    assert isinstance(passed.actions[-1], StartDriver)
    assert under_way(passed).trouble is None


def test_a_trial_that_is_held_after_it_was_repeated_delays_nothing_else() -> None:
    failed = tried(worker(TRIAL, state=WorkerState.FAILED, message="Out of memory."))
    due = failed.record.due
    bad = worker("visits-start-1-prepare-1-1", "Incompatible", message="no query 'visits'")

    held = decide(new(STRICT, failed.record, workers=(bad,), now=due))

    assert held.record.held is not None
    assert (held.record.held.until, held.record.due) == (None, None)


@pytest.mark.parametrize("changes", [("Enforce", "Strict"), ("Strict", "Enforce")])
def test_another_strictness_is_another_trial_of_what_was_captured(changes: tuple[str, str]) -> None:
    before, after = (wish(A, adopt=OLD, compatibility=each) for each in changes)
    tried_before = worker(TRIAL, "Compatible")
    capturing = decide(new(before)).record
    captured = worker(WORKER, "Captured")

    meanwhile = decide(new(replace(after, generation=2), capturing))
    begun = decide(new(before, capturing, workers=(captured,)))
    again = decide(new(replace(after, generation=2), begun.record, workers=(tried_before,)))

    assert meanwhile.record.last is None
    assert meanwhile.record.sequence == capturing.sequence
    operation = under_way(again)
    assert (operation.id, operation.captured, operation.phase) == ("start-1", True, Phase.PREPARE)
    assert [(each.name, each.task.strict) for each in again.actions if is_trial(each)] == [
        ("visits-start-1-prepare-1-1", after.policy.strict)
    ]
    assert bool(operation.strict) is after.policy.strict
    assert degraded_of(new(after, again.record)).reason is Reason.AS_EXPECTED


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
    degraded = degraded_of(new(record=failed.record))
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
