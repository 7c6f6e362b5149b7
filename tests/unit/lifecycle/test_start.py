"""A job's first start, and what becomes of one that does not come up."""

from datetime import timedelta

from sparkpoint.lifecycle import decide
from sparkpoint.lifecycle.actions import OpenGate, StartDriver, StoreRevision
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Begin, Record, Result
from tests.unit.lifecycle.worlds import (
    NOW,
    A,
    agent,
    ago,
    driver,
    during,
    empty,
    gated,
    restore,
    running,
    steady,
    wish,
    world,
)

RUN = empty(A, opened=False)


def test_the_revision_is_kept_before_anything_names_it() -> None:
    decision = decide(world(Record(), revisions=frozenset()))

    assert decision.record == Record()
    assert decision.actions == (StoreRevision(name=A.name),)


def test_the_first_driver_starts_in_an_empty_directory_and_is_written_down_before() -> None:
    decision = decide(world(Record()))

    operation = decision.record.operation
    assert operation is not None
    assert (operation.kind, operation.phase, operation.id) == (Kind.START, Phase.LAUNCH, "start-1")
    assert decision.record.run == RUN
    assert decision.actions == (StartDriver(run=RUN, expect="empty"),)


def test_a_first_driver_may_begin_with_a_savepoint() -> None:
    wished = wish(A, restore=restore("s1", sink="Fork"), compatibility="Skip")
    decision = decide(world(Record(), wish=wished))

    run = decision.record.run
    assert run is not None
    assert (run.source.begin, run.source.savepoint, run.source.sink) == (
        Begin.SAVEPOINT,
        "s1",
        "Fork",
    )
    assert decision.record.restored == "s1#1"
    assert decision.actions == (StartDriver(run=run, expect="restored"),)


def test_a_start_waits_for_the_savepoint_it_begins_with() -> None:
    wished = wish(A, restore=restore("s1", ready=False))

    decision = decide(world(Record(), wish=wished))

    assert decision.record == Record()
    assert decision.actions == ()
    assert decision.wake is not None


def test_an_open_gate_is_written_down_before_it_is_opened() -> None:
    record = during(Kind.START, Phase.LAUNCH, RUN, target=RUN, stable=None, progressed=False)

    decision = decide(world(record, pods=(driver(RUN),), agent=gated(RUN)))

    assert decision.record.run == empty(A, opened=True)
    assert decision.actions == (OpenGate(run=empty(A, opened=True)),)


def test_one_commit_proves_a_first_revision() -> None:
    run = empty(A)
    record = during(Kind.START, Phase.OBSERVE, run, target=run, stable=None, progressed=False)

    decision = decide(world(record, pods=(driver(run),), agent=running(run, batch=0)))

    assert decision.record.operation is None
    assert decision.record.last is not None
    assert decision.record.last.result is Result.SUCCEEDED
    assert decision.record.stable is not None
    assert decision.record.stable.revision == A
    assert decision.record.progressed


def test_a_driver_that_does_not_come_up_in_time_ends_the_start() -> None:
    record = during(
        Kind.START, Phase.LAUNCH, RUN, target=RUN, stable=None, phase_started=ago(minutes=11)
    )

    decision = decide(world(record, pods=(driver(RUN, stuck="ImagePullBackOff"),)))

    assert decision.record.operation is None
    assert decision.record.last is not None
    assert decision.record.last.result is Result.FAILED
    assert "ImagePullBackOff" in decision.record.last.message


def test_the_time_of_a_launch_does_not_begin_before_its_pause_is_over() -> None:
    record = during(
        Kind.RECOVER,
        Phase.LAUNCH,
        RUN,
        target=RUN,
        phase_started=ago(minutes=11),
        due=ago(minutes=2),
    )

    decision = decide(world(record, pods=(driver(RUN),), agent=agent(RUN, "starting")))

    assert decision.record.operation is not None


def test_a_driver_that_comes_up_after_all_is_let_in() -> None:
    record = steady(RUN, stable=None, progressed=False)

    decision = decide(world(record, pods=(driver(RUN),), agent=gated(RUN)))

    assert decision.record.run == empty(A, opened=True)
    assert decision.actions == (OpenGate(run=empty(A, opened=True)),)


def test_a_healthy_job_is_left_alone() -> None:
    run = empty(A)
    record = steady(run, healthy_since=ago(minutes=1))

    decision = decide(world(record, pods=(driver(run),), agent=running(run)))

    assert decision.record == record
    assert decision.actions == ()
    assert decision.events == ()
    assert decision.wake == timedelta(seconds=15)


def test_failures_are_forgotten_after_a_time_of_health() -> None:
    run = empty(A)
    record = steady(run, healthy_since=ago(minutes=11), failures=3)

    decision = decide(world(record, pods=(driver(run),), agent=running(run), now=NOW))

    assert decision.record.failures == 0


def test_a_start_that_commits_nothing_has_not_succeeded_and_runs_on() -> None:
    run, began = empty(A), ago(minutes=11)
    record = during(Kind.START, Phase.OBSERVE, run, target=run, stable=None, phase_started=began)

    decision = decide(world(record, pods=(driver(run),), agent=running(run, batch=None, busy=True)))

    assert decision.record.last is not None
    assert decision.record.last.result is Result.FAILED
    assert "not committed" in decision.record.last.message
    assert (decision.record.run, decision.record.healthy_since) == (run, began)
    assert decision.actions == ()
    assert decision.record.operation is None


def test_a_start_without_input_succeeds() -> None:
    run = empty(A)
    record = during(
        Kind.START, Phase.OBSERVE, run, target=run, stable=None, phase_started=ago(seconds=30)
    )

    decision = decide(
        world(record, pods=(driver(run),), agent=running(run, batch=None, busy=False))
    )

    assert decision.record.last is not None
    assert decision.record.last.result is Result.SUCCEEDED
