"""A new revision, or a restore, that does not prove itself is taken back."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sparkpoint.lifecycle import decide
from sparkpoint.lifecycle.actions import Capture, RequestStop, StartDriver, StartWorker
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Held, Record, Result, Run
from sparkpoint.lifecycle.world import PodFact, WorkerState
from tests.unit.lifecycle.worlds import (
    NOW,
    A,
    B,
    C,
    ago,
    continuing,
    driver,
    during,
    empty,
    ended,
    from_savepoint,
    gated,
    restore,
    running,
    stable,
    steady,
    stopped,
    wish,
    worker,
    world,
)

BEFORE = stable(A, "visits-upgrade-7")
NEW = from_savepoint("visits-upgrade-7", B)
BACK = from_savepoint("visits-upgrade-7", A, epoch=3, attempt=3, opened=False, sink="Rewind")


def on_trial(run: Run = NEW, **facts: object) -> Record:
    kind = facts.pop("kind", Kind.UPGRADE)
    facts = {"target": run, "stable": BEFORE, "progressed": False, **facts}
    assert isinstance(kind, Kind)
    return during(kind, Phase.OBSERVE, run, **facts)


def test_the_first_failure_is_forgiven_after_a_pause() -> None:
    decision = decide(world(on_trial(fenced=True), wish=wish(B), pods=(ended(NEW),)))

    operation = decision.record.operation
    assert operation is not None
    assert (operation.id, operation.launches) == ("upgrade-7", 2)
    assert not operation.fenced
    assert decision.record.run == continuing(NEW)
    assert decision.record.due is not None
    assert decision.record.due > NOW
    assert decision.actions == ()


def test_the_second_failure_is_rolled_back_to_where_the_stable_revision_stood() -> None:
    decision = decide(world(on_trial(launches=2), wish=wish(B), pods=(ended(NEW),)))

    run = replace(BACK, given_up=NEW)
    assert decision.record.last is not None
    assert decision.record.last.result is Result.ROLLED_BACK
    assert decision.record.run == run
    assert decision.record.held == Held(
        revision=B.name, restore=None, reason="RolledBack", message="QueryFailed", policy=""
    )
    assert decision.actions == (StartDriver(run=run, expect="restored"),)


def test_a_revision_that_never_commits_is_rolled_back_when_its_time_is_over() -> None:
    record = on_trial(launches=2, phase_started=ago(minutes=11), base=(("visits", 9),))

    decision = decide(
        world(record, wish=wish(B), pods=(driver(NEW),), agent=running(NEW, batch=None))
    )

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.ROLLBACK


@pytest.mark.parametrize(("minutes", "kind"), [(39, Kind.UPGRADE), (41, Kind.ROLLBACK)])
def test_a_slow_trigger_has_the_time_that_its_commits_need(minutes: int, kind: Kind) -> None:
    record = on_trial(launches=2, phase_started=ago(minutes=minutes), base=(("visits", 9),))
    wished = wish(B, interval=timedelta(minutes=10))

    decision = decide(world(record, wish=wished, pods=(driver(NEW),), agent=running(NEW, batch=11)))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is kind


def test_a_slow_trigger_that_fails_is_started_once_more_as_any_other() -> None:
    record = on_trial(started=ago(minutes=50), phase_started=ago(minutes=41))
    wished = wish(B, interval=timedelta(minutes=10))

    decision = decide(world(record, wish=wished, pods=(driver(NEW),), agent=running(NEW, batch=1)))

    assert decision.record.operation is not None
    assert decision.record.operation.launches == 2
    assert [type(action) for action in decision.actions] == [RequestStop]


def test_sinks_go_on_where_they_stood_if_nothing_was_written_since() -> None:
    unopened = replace(NEW, opened=False)
    record = on_trial(unopened, launches=2)

    decision = decide(world(record, wish=wish(B), pods=(ended(unopened),)))

    assert decision.record.run is not None
    assert decision.record.run.source.sink == "Resume"


def test_sinks_are_rewound_if_a_revision_in_between_wrote_to_them() -> None:
    unopened = from_savepoint("visits-upgrade-8", C, epoch=3, attempt=3, opened=False)
    record = on_trial(unopened, launches=2)

    decision = decide(world(record, wish=wish(C), pods=(ended(unopened),)))

    assert decision.record.run is not None
    assert decision.record.run.source.savepoint == "visits-upgrade-7"
    assert decision.record.run.source.sink == "Rewind"


def test_a_rollback_to_the_latest_commit_captures_it_first() -> None:
    wished = wish(B, rollback_to="Latest")

    decision = decide(world(on_trial(launches=2), wish=wished, pods=(ended(NEW),)))

    operation = decision.record.operation
    assert operation is not None
    assert operation.savepoint == "visits-rollback-8"
    assert operation.target is not None
    assert operation.target.origin.savepoint == "visits-rollback-8"
    task = Capture(run=NEW, savepoint="visits-rollback-8", revision=A)
    assert decision.actions == (StartWorker(name="visits-rollback-8-capture-1-0", task=task),)


@pytest.mark.parametrize(
    ("before", "after", "savepoint"),
    [
        ("4.2.1", "4.3.0", "visits-upgrade-7"),
        ("4.3.0", "4.2.1", "visits-upgrade-7"),
        ("4.3.0", "4.3.1", "visits-rollback-8"),
        (None, "4.3.0", "visits-rollback-8"),
        (None, None, "visits-rollback-8"),
    ],
)
def test_after_a_change_of_spark_the_savepoint_from_before_it_is_the_way_back(
    before: str | None, after: str | None, savepoint: str
) -> None:
    former = replace(BEFORE, revision=replace(BEFORE.revision, spark=before))
    newer = replace(NEW, revision=replace(NEW.revision, spark=after))
    record = on_trial(newer, launches=2, stable=former)

    decision = decide(world(record, wish=wish(B, rollback_to="Latest"), pods=(ended(newer),)))

    operation = decision.record.operation
    assert operation is not None
    assert operation.target is not None
    assert operation.target.origin.savepoint == savepoint
    assert operation.target.revision == A


def test_a_latest_commit_that_cannot_be_captured_is_given_up_for_the_savepoint() -> None:
    target = from_savepoint("visits-rollback-7", A, epoch=3, attempt=3, opened=False)
    record = during(
        Kind.ROLLBACK,
        Phase.CAPTURE,
        NEW,
        target=target,
        savepoint="visits-rollback-7",
        stable=BEFORE,
        tries=3,
    )
    failed = worker("visits-rollback-7-capture-1-3", state=WorkerState.FAILED)

    decision = decide(world(record, wish=wish(B, rollback_to="Latest"), workers=(failed,)))

    assert decision.record.run is not None
    assert decision.record.run.source.savepoint == "visits-upgrade-7"
    assert decision.record.run.source.sink == "Rewind"


def test_a_revision_that_gave_up_the_state_is_rolled_back_to_the_state() -> None:
    stateless = empty(B, epoch=2, attempt=2)
    wished = wish(B, mode="Stateless", rollback_to="Latest")

    decision = decide(world(on_trial(stateless, launches=2), wish=wished, pods=(ended(stateless),)))

    assert decision.record.run is not None
    assert decision.record.run.source.savepoint == "visits-upgrade-7"


def test_without_a_way_back_a_new_revision_is_not_on_trial() -> None:
    stateless = empty(B, epoch=2, attempt=2, opened=False)
    target = {"target": stateless, "savepoint": "visits-upgrade-7", "tries": 3}
    record = during(Kind.UPGRADE, Phase.CAPTURE, empty(A), **target)
    failed = worker("visits-upgrade-7-capture-1-3", state=WorkerState.FAILED)

    decision = decide(world(record, wish=wish(B, mode="Stateless"), workers=(failed,)))

    assert decision.record.run == stateless
    assert decision.record.stable is None
    assert "SavepointFailed" in [event.reason for event in decision.events]


def test_a_rescale_that_fails_goes_on_in_the_same_directory() -> None:
    larger = continuing(empty(A), B)
    record = on_trial(larger, kind=Kind.RESCALE, launches=2, stable=stable(A), progressed=True)

    decision = decide(world(record, wish=wish(B), pods=(ended(larger),)))

    assert decision.record.run == continuing(larger, A)
    assert decision.actions == (StartDriver(run=continuing(larger, A), expect="restored"),)


def test_a_restore_that_fails_is_undone_and_stays_to_be_done_with_other_code() -> None:
    restored = from_savepoint("s2", B, sink="Rewind")
    before = stable(A, "visits-restore-7", restored="s1#1")
    record = on_trial(
        restored, kind=Kind.RESTORE, launches=2, stable=before, restored="s2#1", restore="s2#1"
    )
    wished = wish(B, restore=restore("s2"), rollback_to="Latest")

    decision = decide(world(record, wish=wished, pods=(ended(restored),)))
    held = decision.record
    other = decide(
        world(
            replace(steady(held.run), held=held.held, restored=held.restored),
            wish=wish(C, restore=restore("s2"), generation=2),
        )
    )

    assert held.run is not None
    assert held.run.source.savepoint == "visits-restore-7"
    assert held.restored == "s1#1"
    assert other.record.operation is not None
    assert other.record.operation.kind is Kind.RESTORE


def test_the_spec_that_was_rolled_back_is_not_tried_again() -> None:
    run = from_savepoint("visits-upgrade-7", A, epoch=3, attempt=3, sink="Rewind")
    held = Held(revision=B.name, restore=None, reason="RolledBack", message="")
    record = during(Kind.ROLLBACK, Phase.OBSERVE, run, target=run, stable=BEFORE, held=held)

    decision = decide(world(record, wish=wish(B), pods=(driver(run),), agent=running(run, batch=4)))

    assert decision.record.operation is None
    assert decision.record.stable == stable(A)
    assert decision.record.held == held
    assert decision.actions == ()


def test_who_returns_to_a_spec_that_was_rolled_back_has_it_tried_again() -> None:
    held = Held(revision=B.name, restore=None, reason="RolledBack", message="")
    run = empty(A)
    seen = {"pods": (driver(run),), "agent": running(run)}

    back = decide(world(steady(run, held=held), wish=wish(A, generation=2), **seen)).record
    again = decide(world(back, wish=wish(B, generation=3), **seen)).record

    assert back.held is None
    assert again.operation is not None
    assert again.operation.kind is Kind.UPGRADE


@pytest.mark.parametrize(("rollback", "kind"), [(False, None), (True, Kind.UPGRADE)])
def test_without_rollback_a_failure_is_left_to_recovery(rollback: bool, kind: Kind | None) -> None:
    decision = decide(world(on_trial(), wish=wish(B, rollback=rollback), pods=(ended(NEW),)))

    operation = decision.record.operation
    assert operation is not None
    assert operation.kind is (kind or Kind.RECOVER)
    assert decision.record.run == continuing(NEW)


def test_a_script_that_ends_well_has_proven_itself() -> None:
    pods = (ended(NEW, "ScriptEnded", code=0),)

    once = decide(world(on_trial(), wish=wish(B), pods=pods)).record
    always = decide(world(on_trial(), wish=wish(B, restart="Always"), pods=pods)).record

    assert once.finished
    assert once.stable == always.stable == stable(B)
    assert always.operation is not None
    assert always.operation.kind is Kind.RECOVER


def test_a_worker_of_an_earlier_launch_does_not_answer_for_a_later_one() -> None:
    moved = from_savepoint("visits-upgrade-7-2", B, epoch=3, attempt=3, opened=False)
    record = during(
        Kind.UPGRADE,
        Phase.CAPTURE,
        NEW,
        target=moved,
        savepoint="visits-upgrade-7-2",
        stable=BEFORE,
        fenced=True,
        launches=2,
    )
    earlier = worker("visits-upgrade-7-capture-1-0", "Captured")

    decision = decide(world(record, wish=wish(B), workers=(earlier,)))

    assert decision.record.operation is not None
    assert not decision.record.operation.captured
    assert [type(action) for action in decision.actions] == [StartWorker]


def test_a_revision_that_was_suspended_unproven_is_still_on_trial_when_it_resumes() -> None:
    again = continuing(NEW)
    record = on_trial(again, kind=Kind.RESUME, launches=2)

    decision = decide(world(record, wish=wish(B), pods=(ended(again),)))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.ROLLBACK


def test_what_is_rolled_back_to_and_fails_is_recovered_not_rolled_back_again() -> None:
    run = from_savepoint("visits-upgrade-7", A, epoch=3, attempt=3, sink="Rewind")
    held = Held(revision=B.name, restore=None, reason="RolledBack", message="")
    record = during(Kind.ROLLBACK, Phase.OBSERVE, run, target=run, stable=BEFORE, held=held)

    decision = decide(world(record, wish=wish(B), pods=(ended(run),)))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.RECOVER
    assert decision.record.run == continuing(run)


def test_a_newer_wish_takes_over_a_rollback_that_launches() -> None:
    run = from_savepoint("visits-upgrade-7", A, epoch=3, attempt=3, opened=False)
    record = during(Kind.ROLLBACK, Phase.LAUNCH, run, target=run, stable=BEFORE)
    wished = wish(C, generation=2, compatibility="Skip")

    decision = decide(world(record, wish=wished, pods=(driver(run, over=True),)))

    fixed = from_savepoint("visits-upgrade-7", C, epoch=4, attempt=4, opened=False)
    assert decision.actions == (StartDriver(run=fixed, expect="restored"),)


def test_the_rolled_back_driver_is_let_in_like_any_other() -> None:
    run = from_savepoint("visits-upgrade-7", A, epoch=3, attempt=3, opened=False)
    record = during(Kind.ROLLBACK, Phase.LAUNCH, run, target=run, stable=BEFORE)
    pods = (stopped(NEW, None), driver(run))

    decision = decide(world(record, wish=wish(B), pods=pods, agent=gated(run)))

    assert decision.record.run == replace(run, opened=True)


# --- sinks that cannot be rewound ----------------------------------------------------------------


def refused(run: Run, cause: str = "SinkConflict") -> PodFact:
    """A driver that could not restore what it was to begin from."""
    return ended(run, "Refused", code=83, cause=cause, message="no way back")


def launching(run: Run, kind: Kind = Kind.ROLLBACK, **facts: object) -> Record:
    held = Held(revision=B.name, restore=None, reason="RolledBack", message="it crashed")
    facts = {"target": run, "stable": BEFORE, "held": held, **facts}
    return during(kind, Phase.LAUNCH, run, **facts)


@pytest.mark.parametrize("kind", [Kind.ROLLBACK, Kind.RECOVER, Kind.RESUME])
@pytest.mark.parametrize("cause", ["SinkConflict", "CannotRewind"])
def test_sinks_that_cannot_be_rewound_go_on_from_the_newest_commit(kind: Kind, cause: str) -> None:
    back = replace(BACK, given_up=NEW)

    decision = decide(
        world(launching(back, kind), wish=wish(B), pods=(ended(NEW), refused(back, cause)))
    )

    operation = decision.record.operation
    assert operation is not None
    assert (operation.kind, operation.phase) == (Kind.ROLLBACK, Phase.CAPTURE)
    assert operation.target == from_savepoint(
        "visits-rollback-8", A, epoch=4, attempt=4, opened=False
    )
    (start,) = decision.actions
    assert isinstance(start, StartWorker)
    assert start.task == Capture(run=NEW, savepoint="visits-rollback-8", revision=A)
    assert decision.record.held is not None
    assert decision.record.last is not None
    assert decision.record.last.result is Result.FAILED
    assert any("cannot be rewound" in event.message for event in decision.events)


def test_the_newest_commit_is_launched_once_it_is_captured() -> None:
    back = replace(BACK, given_up=NEW)
    target = from_savepoint("visits-rollback-7", A, epoch=4, attempt=4, opened=False)
    facts = {"target": target, "savepoint": "visits-rollback-7", "former": NEW, "stable": BEFORE}
    record = during(Kind.ROLLBACK, Phase.CAPTURE, back, **facts)
    captured = worker("visits-rollback-7-capture-1-0", "Captured", batches={"visits": 11})

    decision = decide(world(record, wish=wish(B), workers=(captured,)))

    assert decision.record.run == target
    assert decision.record.operation is not None
    assert decision.record.operation.base == (("visits", 11),)
    assert decision.actions == (StartDriver(run=target, expect="restored"),)


def test_a_newest_commit_that_cannot_be_captured_is_tried_again_later() -> None:
    back = replace(BACK, given_up=NEW)
    target = from_savepoint("visits-rollback-7", A, epoch=4, attempt=4, opened=False)
    facts = {"target": target, "savepoint": "visits-rollback-7", "former": NEW, "tries": 3}
    held = launching(back).held
    record = during(Kind.ROLLBACK, Phase.CAPTURE, back, stable=BEFORE, held=held, **facts)
    failed = worker("visits-rollback-7-capture-1-3", state=WorkerState.FAILED)

    decision = decide(world(record, wish=wish(B), pods=(refused(back),), workers=(failed,)))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.RECOVER
    assert decision.record.run == replace(back, attempt=4)
    assert decision.record.due is not None


def test_what_was_begun_empty_is_not_gone_on_from_whatever_the_sinks_do() -> None:
    stateless = empty(B, epoch=2, attempt=2)
    record = on_trial(stateless, launches=2)

    back = decide(world(record, wish=wish(B), pods=(ended(stateless),))).record.run
    assert back == BACK
    decision = decide(world(launching(BACK), wish=wish(B), pods=(refused(BACK),)))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.RECOVER


def test_another_refusal_is_no_reason_to_give_up_the_savepoint() -> None:
    back = replace(BACK, given_up=NEW)
    pods = (refused(back, "Unavailable"),)

    decision = decide(world(launching(back), wish=wish(B), pods=pods))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.RECOVER
    assert decision.record.run == replace(back, attempt=4)


def test_a_restore_that_was_never_let_in_is_undone_without_a_rewind() -> None:
    restored = replace(
        from_savepoint("s2", B, sink="Rewind", opened=False), before="visits-restore-7"
    )
    before = stable(A, "visits-restore-7")
    facts = {"launches": 2, "stable": before, "restored": "s2#1", "restore": "s2#1"}
    record = during(Kind.RESTORE, Phase.LAUNCH, restored, target=restored, **facts)

    decision = decide(world(record, wish=wish(B, restore=restore("s2")), pods=(refused(restored),)))

    assert decision.record.run == from_savepoint(
        "visits-restore-7", A, epoch=3, attempt=3, opened=False
    )


def test_sinks_that_a_lost_pod_may_write_to_are_rewound_by_who_returns() -> None:
    restored = from_savepoint("s2", B, sink="Rewind", opened=False)
    facts = {"target": restored, "savepoint": "visits-restore-7", "captured": True, "fenced": True}
    record = during(Kind.RESTORE, Phase.CAPTURE, empty(A), restore="s2#1", **facts)

    decision = decide(world(record, wish=wish(B, restore=restore("s2"))))

    assert decision.record.run is not None
    assert decision.record.run.before is None


def test_a_newer_wish_takes_what_was_given_up_along() -> None:
    back = replace(BACK, given_up=NEW)
    wished = wish(C, generation=2, compatibility="Skip")

    run = decide(world(launching(back), wish=wished, pods=(driver(back, over=True),))).record.run
    assert run is not None
    assert (run.revision, run.given_up) == (C, NEW)
    record = during(Kind.UPGRADE, Phase.LAUNCH, run, target=run, stable=BEFORE)
    decision = decide(world(record, wish=wished, pods=(refused(run),)))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.ROLLBACK
    assert decision.record.operation.former == NEW
    assert decision.record.held is None
