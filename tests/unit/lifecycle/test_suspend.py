"""Suspending and resuming."""

from dataclasses import replace

from sparkpoint.lifecycle import decide
from sparkpoint.lifecycle.actions import Capture, DeletePod, RequestStop, StartDriver, StartWorker
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Held, Record
from sparkpoint.lifecycle.world import WorkerState
from tests.unit.lifecycle.worlds import (
    A,
    B,
    continuing,
    driver,
    during,
    empty,
    executor,
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
NAME = "visits-suspend-7"


def suspending(phase: Phase, **facts: object) -> Record:
    return during(Kind.SUSPEND, phase, RUN, **{"savepoint": NAME, **facts})


def test_a_running_job_stops_with_a_savepoint() -> None:
    decision = decide(
        world(steady(RUN), wish=wish(A, suspend=True), pods=(driver(RUN),), agent=running(RUN))
    )

    assert decision.actions == (RequestStop(run=RUN, operation="suspend-7", savepoint=NAME),)


def test_it_is_suspended_when_nothing_of_it_is_left() -> None:
    wished = wish(A, suspend=True)
    pods = (stopped(RUN, NAME), executor(RUN))

    waiting = decide(world(suspending(Phase.STOP), wish=wished, pods=pods))
    done = decide(world(waiting.record, wish=wished, pods=pods[:1]))

    assert not waiting.record.suspended
    assert done.record.suspended
    assert done.record.last is not None
    assert done.record.last.savepoint == NAME
    assert done.actions == ()


def test_a_savepoint_that_cannot_be_taken_does_not_keep_it_from_being_suspended() -> None:
    failed = worker("visits-suspend-7-capture-1-3", state=WorkerState.FAILED)

    decision = decide(
        world(suspending(Phase.CAPTURE, tries=3), wish=wish(A, suspend=True), workers=(failed,))
    )

    assert decision.record.suspended
    assert "SavepointFailed" in [event.reason for event in decision.events]


def test_without_a_repository_it_stops_without_savepoint() -> None:
    wished = wish(A, suspend=True, mode="LastCommit", repository=False)

    decision = decide(world(steady(RUN), wish=wished, pods=(driver(RUN),), agent=running(RUN)))

    assert decision.actions == (RequestStop(run=RUN, operation="suspend-7", savepoint=None),)


def test_a_pod_that_appears_while_the_job_is_suspended_is_deleted() -> None:
    record = steady(RUN, suspended=True)

    decision = decide(world(record, wish=wish(A, suspend=True), pods=(driver(RUN),)))

    assert decision.actions == (DeletePod(name="visits-e1-a1", uid="uid-visits-e1-a1"),)


def test_resuming_goes_on_in_the_directory() -> None:
    record = steady(RUN, suspended=True)

    decision = decide(world(record, wish=wish(A), pods=(stopped(RUN, NAME),)))

    assert decision.record.run == continuing(RUN)
    assert not decision.record.suspended
    assert decision.actions == (StartDriver(run=continuing(RUN), expect="restored"),)


def test_resuming_leaves_the_directory_to_a_pod_that_may_live_on() -> None:
    record = steady(RUN, suspended=True)
    zombie = lost(driver(RUN, deleting=True))

    decision = decide(world(record, wish=wish(A), pods=(zombie,)))

    operation = decision.record.operation
    assert operation is not None
    assert operation.target is not None
    assert operation.target.epoch == 2
    task = Capture(run=RUN, savepoint="visits-resume-7-1", revision=A)
    assert decision.actions == (StartWorker(name="visits-resume-7-capture-1-0", task=task),)


def test_resuming_while_the_wished_revision_is_held_runs_what_ran() -> None:
    held = Held(revision=B.name, restore=None, reason="RolledBack", message="")
    record = steady(RUN, suspended=True, held=held)

    resumed = decide(world(record, wish=wish(B))).record
    assert resumed.run is not None
    run = replace(resumed.run, opened=True)
    proven = decide(
        world(resumed, wish=wish(B), pods=(driver(run),), agent=running(run, batch=12))
    ).record

    assert run.revision == A
    assert proven.operation is None
    assert proven.held == held


def test_what_was_suspended_before_its_gate_opened_begins_with_the_same_savepoint() -> None:
    unopened = from_savepoint("s5", A, opened=False)
    record = steady(unopened, suspended=True)

    decision = decide(world(record, wish=wish(A)))

    run = replace(unopened, attempt=3)
    assert decision.actions == (StartDriver(run=run, expect="restored"),)
