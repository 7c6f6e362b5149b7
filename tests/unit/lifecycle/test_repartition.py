"""State in other partitions: looked at, stopped, captured, moved, and begun from; or as before."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.lifecycle import decide
from sparkpoint.lifecycle.actions import (
    Examine,
    Rehearse,
    Repartition,
    RequestStop,
    StartDriver,
    StartWorker,
)
from sparkpoint.lifecycle.conditions import Aspect, Circumstances, Reason, conditions
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Begin, Origin, Record, Result, Run, SinkPolicy
from sparkpoint.lifecycle.world import WorkerState, World
from tests.unit.lifecycle.worlds import (
    NOW,
    ago,
    driver,
    during,
    empty,
    ended,
    from_savepoint,
    gated,
    revision,
    running,
    stable,
    steady,
    stopped,
    wish,
    worker,
    world,
)

FOUR, EIGHT = revision("a", partitions=4), revision("a", partitions=8)
NEW_CODE = revision("b", partitions=8)
RUN = empty(FOUR)
BEFORE, MADE = "visits-repartition-7", "visits-repartition-7-p8"
TARGET = from_savepoint(MADE, EIGHT, opened=False)
WISHED = wish(EIGHT, generation=2)
HEALTHY = {"pods": (driver(RUN),), "agent": running(RUN)}
LOOK, TRIAL = "visits-repartition-7-prepare-1-0", "visits-repartition-7-prepare-1-1"
MOVE = "visits-repartition-7-modify-1-0"
KEPT = frozenset({each.name for each in (FOUR, EIGHT, NEW_CODE)})


def seen(record: Record, **facts: Any) -> World:
    return world(record, **{"wish": WISHED, "revisions": KEPT, **facts})


def repartitioning(phase: Phase, run: Run = RUN, **facts: Any) -> Record:
    given = {"generation": 2, "target": TARGET, "savepoint": BEFORE, **facts}
    return during(Kind.REPARTITION, phase, run, **given)


def moving(**facts: Any) -> Record:
    return repartitioning(Phase.MODIFY, captured=True, base=(("visits", 9),), **facts)


# --- Prepare -------------------------------------------------------------------------------------


def test_the_newest_savepoint_is_looked_at_before_the_job_is_stopped() -> None:
    decision = decide(seen(steady(RUN), newest="s9", **HEALTHY))

    task = Examine(run=TARGET, savepoint="s9", partitions=8)
    assert decision.actions == (StartWorker(name=LOOK, task=task),)


def test_without_a_savepoint_one_is_taken_for_the_look() -> None:
    decision = decide(seen(steady(RUN), **HEALTHY))

    task = Examine(run=TARGET, savepoint="visits-trial", partitions=8, captured_from=RUN)
    assert decision.actions == (StartWorker(name=LOOK, task=task),)


def test_what_it_makes_is_referred_to_before_anything_is_done() -> None:
    decision = decide(seen(steady(RUN), newest="s9", **HEALTHY))

    assert {BEFORE, MADE} <= decision.record.references()


def test_the_job_is_stopped_once_it_is_known_that_it_can_be_done() -> None:
    looked = worker(LOOK, "Compatible")

    decision = decide(
        seen(repartitioning(Phase.PREPARE), newest="s9", workers=(looked,), **HEALTHY)
    )

    ask = RequestStop(run=RUN, operation="repartition-7", savepoint=BEFORE)
    assert decision.actions == (ask,)


def test_new_code_is_tried_as_well() -> None:
    target = replace(TARGET, revision=NEW_CODE)
    record = repartitioning(Phase.PREPARE, target=target)
    looked, wished = worker(LOOK, "Compatible"), wish(NEW_CODE, generation=2)

    decision = decide(seen(record, wish=wished, newest="s9", workers=(looked,), **HEALTHY))

    task = Rehearse(run=target, savepoint="s9")
    assert decision.actions == (StartWorker(name=TRIAL, task=task),)


@pytest.mark.parametrize("compatibility", ["Enforce", "Warn", "Skip"])
def test_what_cannot_be_moved_never_stops_the_job_whatever_the_policy(compatibility: Any) -> None:
    looked = worker(LOOK, "Incompatible", message="limit cannot be moved.")
    wished = wish(EIGHT, generation=2, compatibility=compatibility)
    record = repartitioning(Phase.PREPARE)

    decision = decide(seen(record, wish=wished, newest="s9", workers=(looked,), **HEALTHY))

    held = decision.record.held
    assert decision.actions == ()
    assert decision.record.run == RUN
    assert held is not None
    assert (held.reason, held.until) == ("NotRepartitioned", None)
    degraded = told(decision.record, wished)[Aspect.DEGRADED]
    assert degraded.reason is Reason.NOT_REPARTITIONED
    assert "limit cannot be moved" in degraded.message
    assert "Set spec.state.partitions back" in degraded.message


def told(record: Record, wished: Any) -> dict[Aspect, Any]:
    found = conditions(seen(record, wish=wished, **HEALTHY), Circumstances())
    return {each.aspect: each for each in found}


@pytest.mark.parametrize(
    "facts",
    [
        {"answer": "Unknown", "message": "Nothing was committed yet."},
        {"state": WorkerState.FAILED, "message": "The bucket does not answer."},
    ],
)
def test_what_could_not_be_looked_at_is_tried_again_later(facts: Any) -> None:
    record = repartitioning(Phase.PREPARE)

    decision = decide(seen(record, newest="s9", workers=(worker(LOOK, **facts),), **HEALTHY))

    held = decision.record.held
    assert decision.actions == ()
    assert held is not None
    assert held.reason == "NotPrepared"
    assert held.until is not None


def test_a_look_that_takes_too_long_is_given_up() -> None:
    record = repartitioning(Phase.PREPARE, phase_started=ago(minutes=11))

    decision = decide(seen(record, newest="s9", workers=(worker(LOOK),), **HEALTHY))

    assert decision.record.held is not None
    assert decision.record.held.reason == "NotPrepared"


# --- Stop and Capture ----------------------------------------------------------------------------


def test_what_was_captured_is_given_to_the_worker_under_a_name_of_its_own() -> None:
    record = repartitioning(Phase.STOP)

    decision = decide(seen(record, pods=(stopped(RUN, BEFORE),)))

    task = Repartition(run=TARGET, savepoint=BEFORE, made=MADE, partitions=8)
    assert decision.actions == (StartWorker(name=MOVE, task=task),)
    assert decision.record.run == RUN
    assert decision.record.stable == stable(FOUR)


def test_a_job_that_has_committed_nothing_is_not_moved() -> None:
    """Its first batch, if it was begun, has the former number written down."""
    record = repartitioning(Phase.CAPTURE, progressed=False)
    nothing = worker("visits-repartition-7-capture-1-0", "NothingCommitted", message="Nothing.")

    decision = decide(seen(record, workers=(nothing,)))

    assert decision.record.last is not None
    assert decision.record.last.result is Result.FAILED
    operation = decision.record.operation
    assert operation is not None
    assert operation.kind is Kind.RECOVER
    assert operation.target is not None
    assert operation.target.revision == FOUR


def test_a_run_that_was_never_let_in_is_moved_from_what_it_would_have_begun_with() -> None:
    run = from_savepoint("s1", FOUR, opened=False, sink="Rewind")
    target = replace(TARGET, epoch=3, attempt=3)
    record = repartitioning(Phase.STOP, run, target=target)

    decision = decide(seen(record))

    [start] = decision.actions
    assert isinstance(start, StartWorker)
    task = start.task
    assert isinstance(task, Repartition)
    assert (task.savepoint, task.made) == ("s1", MADE)
    operation = decision.record.operation
    assert operation is not None
    assert operation.target is not None
    assert operation.target.origin == Origin(begin=Begin.SAVEPOINT, savepoint=MADE, sink="Rewind")


# --- Modify --------------------------------------------------------------------------------------


def test_the_next_run_begins_from_what_was_made_and_the_way_back_is_kept() -> None:
    made = worker(MOVE, "Repartitioned", savepoint=MADE)

    decision = decide(seen(moving(), workers=(made,)))

    launched = replace(TARGET, before=BEFORE)
    assert decision.record.run == launched
    assert decision.record.stable == stable(FOUR, BEFORE)
    assert decision.actions == (StartDriver(run=launched, expect="restored"),)
    assert decision.record.operation is not None
    assert dict(decision.record.operation.base) == {"visits": 9}


def test_what_has_these_partitions_already_is_begun_from_itself() -> None:
    found = worker(MOVE, "Repartitioned", savepoint=BEFORE)

    decision = decide(seen(moving(), workers=(found,)))

    assert decision.record.run is not None
    assert decision.record.run.source.savepoint == BEFORE
    assert MADE not in decision.record.references()


def test_a_worker_that_was_killed_is_followed_by_another_after_a_pause() -> None:
    killed = worker(MOVE, state=WorkerState.FAILED, message="OOMKilled")

    waiting = decide(seen(moving(), workers=(killed,)))
    later = seen(waiting.record, workers=(killed,), now=NOW + timedelta(minutes=1))
    [start] = decide(later).actions

    assert waiting.actions == ()
    assert waiting.wake is not None
    assert isinstance(start, StartWorker)
    assert start.name == "visits-repartition-7-modify-1-1"
    assert isinstance(start.task, Repartition)
    assert start.task.made == MADE


@pytest.mark.parametrize(
    ("facts", "tries", "is_held_for_good"),
    [
        pytest.param({"final": True}, 0, True, id="for good"),
        pytest.param({"final": True, "kind": "PendingBatch"}, 0, False, id="a batch in flight"),
        pytest.param({}, 3, False, id="too often"),
    ],
)
def test_if_it_cannot_be_made_the_job_goes_on_as_it_was(
    facts: Any, tries: int, is_held_for_good: bool
) -> None:
    name = f"visits-repartition-7-modify-1-{tries}"
    failed = worker(name, state=WorkerState.FAILED, message="No room.", **facts)

    decision = decide(seen(moving(tries=tries), workers=(failed,)))

    record = decision.record
    assert record.last is not None
    assert (record.last.kind, record.last.result) == (Kind.REPARTITION, Result.FAILED)
    assert record.operation is not None
    assert record.operation.kind is Kind.RECOVER
    assert record.run is not None
    assert (record.run.epoch, record.run.revision) == (RUN.epoch, FOUR)
    assert record.stable == stable(FOUR)
    assert record.held is not None
    assert record.held.reason == "NotRepartitioned"
    assert (record.held.until is None) is is_held_for_good
    assert "8 partitions: No room." in record.held.message


def test_another_wish_that_was_made_meanwhile_is_not_held_for_it() -> None:
    failed = worker(MOVE, state=WorkerState.FAILED, message="No room.", final=True)

    decision = decide(seen(moving(), wish=wish(FOUR, generation=3), workers=(failed,)))

    assert decision.record.held is None
    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.RECOVER


def test_a_suspended_job_whose_state_cannot_be_moved_is_resumed_as_it_was() -> None:
    record = replace(moving(), suspended=True)
    failed = worker(MOVE, state=WorkerState.FAILED, message="No room.", final=True)

    decision = decide(seen(record, workers=(failed,)))

    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.RESUME
    assert decision.record.operation.target is not None
    assert decision.record.operation.target.revision == FOUR


def test_a_newer_wish_waits_until_the_savepoint_is_made() -> None:
    decision = decide(seen(moving(), wish=wish(FOUR, generation=3), workers=(worker(MOVE),)))

    assert decision.actions == ()
    assert decision.record.operation is not None
    assert decision.record.operation.phase is Phase.MODIFY


# --- Launch and Observe --------------------------------------------------------------------------


def test_once_more_begins_from_what_was_made() -> None:
    run = replace(TARGET, before=BEFORE)
    record = repartitioning(Phase.LAUNCH, run, target=run, stable=stable(FOUR, BEFORE))

    decision = decide(seen(record, pods=(ended(run),)))

    operation = decision.record.operation
    assert operation is not None
    assert (operation.launches, operation.phase) == (2, Phase.LAUNCH)
    assert decision.record.run is not None
    assert decision.record.run.origin.savepoint == MADE


@pytest.mark.parametrize(
    ("opened", "sink"),
    [pytest.param(False, "Resume", id="at its gate"), pytest.param(True, "Rewind", id="let in")],
)
@pytest.mark.parametrize("to", ["Savepoint", "Latest"])
def test_the_way_back_is_the_former_revision_in_the_former_partitions(
    opened: bool, sink: SinkPolicy, to: Any
) -> None:
    run = replace(TARGET, before=BEFORE)
    run = run.let_in() if opened else run
    phase = Phase.OBSERVE if opened else Phase.LAUNCH
    record = repartitioning(phase, run, target=run, stable=stable(FOUR, BEFORE), launches=2)
    wished = wish(EIGHT, generation=2, rollback_to=to)

    decision = decide(seen(record, wish=wished, pods=(ended(run),)))

    back = decision.record.run
    assert back is not None
    assert back.revision == FOUR
    assert back.origin == Origin(begin=Begin.SAVEPOINT, savepoint=BEFORE, sink=sink)
    assert decision.record.held is not None
    assert decision.record.held.reason == "RolledBack"


def test_it_succeeds_with_the_commits_that_prove_it() -> None:
    run = TARGET.let_in()
    facts = {"target": run, "stable": stable(FOUR, BEFORE), "base": (("visits", 9),)}
    record = repartitioning(Phase.OBSERVE, run, **facts)

    waiting = decide(seen(record, pods=(driver(run),), agent=running(run, 11)))
    proven = decide(seen(record, pods=(driver(run),), agent=running(run, 12)))

    assert waiting.record.operation is not None
    assert proven.record.last is not None
    assert proven.record.last.result is Result.SUCCEEDED
    assert proven.record.stable == stable(EIGHT)


def test_the_gate_is_opened_for_what_was_moved() -> None:
    record = repartitioning(Phase.LAUNCH, TARGET, target=TARGET, stable=stable(FOUR, BEFORE))

    decision = decide(seen(record, pods=(driver(TARGET),), agent=gated(TARGET)))

    assert decision.record.run is not None
    assert decision.record.run.opened
