"""Pods on nodes that do not answer: who cannot be known to have ended keeps its directory."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sparkpoint.lifecycle import decide
from sparkpoint.lifecycle.actions import (
    Capture,
    DeletePod,
    OpenGate,
    RequestStop,
    StartDriver,
    StartWorker,
)
from sparkpoint.lifecycle.conditions import Aspect, Circumstances, Reason, conditions
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Record, Run
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
    executor,
    from_savepoint,
    gated,
    lost,
    running,
    stable,
    standing,
    steady,
    wish,
    worker,
    world,
)

RUN = empty(A)
MOVED = from_savepoint("visits-recover-7-1", A, opened=False)
ZOMBIE = lost(driver(RUN))
CAPTURE = "visits-recover-7-capture-1-0"


def deletion(pod: PodFact) -> DeletePod:
    return DeletePod(name=pod.name, uid=pod.uid)


def left_behind(**facts: object) -> Record:
    facts = {"target": MOVED, "savepoint": "visits-recover-7-1", "fenced": True, **facts}
    return during(Kind.RECOVER, Phase.CAPTURE, RUN, **facts)


def test_a_node_may_be_away_for_a_moment() -> None:
    decision = decide(world(steady(RUN), pods=(lost(driver(RUN), minutes=0.5),)))

    assert decision.record == steady(RUN)
    assert decision.actions == ()
    assert decision.wake is not None


def test_a_lost_driver_is_left_behind_and_its_last_commit_captured() -> None:
    decision = decide(world(steady(RUN), pods=(ZOMBIE, lost(executor(RUN)))))

    operation = decision.record.operation
    assert operation is not None
    assert operation.fenced
    assert operation.target == MOVED
    assert decision.record.failures == 0
    task = Capture(run=RUN, savepoint="visits-recover-7-1", revision=A)
    assert StartWorker(name=CAPTURE, task=task) in decision.actions


def test_what_is_left_behind_is_to_end_when_its_node_returns() -> None:
    decision = decide(world(left_behind(), pods=(ZOMBIE,)))

    assert deletion(ZOMBIE) in decision.actions


def test_what_has_returned_is_ended_before_it_is_captured() -> None:
    returned = driver(RUN, deleting=True)

    decision = decide(world(left_behind(), pods=(returned,)))

    assert decision.actions == ()
    assert decision.record.operation is not None
    assert "visits-e1-a1" in decision.record.operation.message


def test_the_next_run_gets_a_directory_of_its_own() -> None:
    captured = worker(CAPTURE, "Captured", batches={"visits": 12})

    decision = decide(world(left_behind(), pods=(ZOMBIE,), workers=(captured,)))

    assert decision.record.run == MOVED
    assert StartDriver(run=MOVED, expect="restored") in decision.actions


def test_a_job_without_commits_begins_empty_in_another_directory() -> None:
    nothing = worker(CAPTURE, "NothingCommitted")

    decision = decide(world(left_behind(progressed=False), pods=(ZOMBIE,), workers=(nothing,)))

    run = empty(A, epoch=2, attempt=2, opened=False)
    assert decision.record.run == run
    assert StartDriver(run=run, expect="empty") in decision.actions


def test_a_run_whose_gate_was_never_opened_begins_again_elsewhere_from_its_source() -> None:
    unopened = from_savepoint("s5", A, opened=False)

    decision = decide(world(steady(unopened), pods=(lost(driver(unopened)),)))

    run = from_savepoint("s5", A, epoch=3, attempt=3, opened=False)
    assert decision.record.run == run


@pytest.mark.parametrize("seen", [running(RUN), gated(RUN)], ids=["running", "gated"])
def test_a_driver_whose_agent_answers_is_not_lost_with_its_node(seen: object) -> None:
    decision = decide(world(steady(RUN), pods=(ZOMBIE,), agent=seen))

    assert decision.record.operation is None


def test_a_driver_whose_agent_answers_can_be_stopped_whatever_its_node_does() -> None:
    record = during(Kind.SUSPEND, Phase.STOP, RUN, savepoint="s7")
    wished = wish(A, suspend=True)

    asked = decide(world(record, wish=wished, pods=(ZOMBIE,), agent=running(RUN)))
    late = asked.record.with_operation(phase_started=ago(minutes=9))
    given_up = decide(world(late, wish=wished, pods=(ZOMBIE,), agent=running(RUN)))

    assert asked.actions == (RequestStop(run=RUN, operation="suspend-7", savepoint="s7"),)
    assert given_up.record.operation is not None
    assert given_up.record.operation.fenced


def test_a_savepoint_that_was_taken_before_the_node_was_lost_counts() -> None:
    facts = {"target": from_savepoint("s7", B, opened=False), "savepoint": "s7"}
    record = during(Kind.UPGRADE, Phase.STOP, RUN, **facts)
    seen = standing(RUN, "upgrade-7", "Done", savepoint="s7")

    told = decide(world(record, wish=wish(B), pods=(driver(RUN),), agent=seen)).record
    decision = decide(world(told, wish=wish(B), pods=(ZOMBIE,)))

    assert decision.record.run == facts["target"]


def test_executors_that_can_be_reached_are_ended_before_the_driver_is_left_behind() -> None:
    record = during(Kind.RECOVER, Phase.STOP, RUN, target=continuing(RUN))

    decision = decide(world(record, pods=(ZOMBIE, executor(RUN))))

    assert decision.actions == (deletion(executor(RUN)),)


def test_without_a_repository_a_lost_node_is_waited_for() -> None:
    record = during(Kind.RECOVER, Phase.STOP, RUN, target=continuing(RUN))
    wished = wish(A, mode="LastCommit", repository=False)

    decision = decide(world(record, wish=wished, pods=(ZOMBIE,)))

    assert decision.record.operation is not None
    assert decision.record.operation.phase is Phase.STOP
    assert "spec.savepoints.repository" in decision.record.operation.message
    degraded = next(
        each
        for each in conditions(world(decision.record, wish=wished, pods=(ZOMBIE,)), Circumstances())
        if each.aspect is Aspect.DEGRADED
    )
    assert degraded.reason is Reason.NODE_LOST
    assert "delete the pods by force" in degraded.message


@pytest.mark.parametrize("phase", [Phase.LAUNCH, Phase.OBSERVE])
@pytest.mark.parametrize("deleting", [False, True])
def test_a_new_driver_whose_node_is_lost_is_not_waited_for(phase: Phase, deleting: bool) -> None:
    new = from_savepoint("s7", B)
    record = during(Kind.UPGRADE, phase, new, target=new, stable=stable(A, "s7"))

    decision = decide(world(record, wish=wish(B), pods=(lost(driver(new, deleting=deleting)),)))

    assert decision.record.operation is not None
    assert decision.record.operation.launches == 2
    assert decision.record.operation.fenced


def test_a_capture_that_fails_for_long_is_begun_anew_so_that_newer_wishes_are_heard() -> None:
    failed = worker("visits-recover-7-capture-1-3", state=WorkerState.FAILED)
    wished = wish(B, generation=2, compatibility="Skip")

    decision = decide(world(left_behind(tries=3), wish=wished, pods=(ZOMBIE,), workers=(failed,)))

    operation = decision.record.operation
    assert operation is not None
    assert operation.kind is Kind.UPGRADE
    assert operation.fenced
    assert decision.record.run == RUN


# --- pods that vanish ----------------------------------------------------------------------------


def vanished(run: Run, *, seconds: float, **facts: object) -> Record:
    """A stop whose driver's pod was there so many seconds ago, and ran."""
    facts = {"target": continuing(run), "vanished": ago(seconds=seconds), **facts}
    return during(Kind.RECOVER, Phase.STOP, run, **facts)


def test_a_driver_whose_pod_vanishes_is_given_a_moment_to_end() -> None:
    decision = decide(world(steady(RUN)))

    assert decision.record.vanished == NOW
    assert decision.record.operation is not None
    assert decision.record.operation.phase is Phase.STOP
    assert decision.actions == ()
    assert decision.wake == timedelta(seconds=10)


def test_a_driver_whose_pod_vanished_keeps_its_directory() -> None:
    decision = decide(world(vanished(RUN, seconds=10)))

    operation = decision.record.operation
    assert operation is not None
    assert operation.fenced
    assert operation.target == MOVED
    task = Capture(run=RUN, savepoint="visits-recover-7-1", revision=A)
    assert decision.actions == (StartWorker(name=CAPTURE, task=task),)
    assert "LeftBehind" in [event.reason for event in decision.events]


@pytest.mark.parametrize(("seconds", "reused"), [(119, False), (120, True)])
def test_without_a_repository_a_directory_is_used_again_after_the_grace_period(
    seconds: float, reused: bool
) -> None:
    wished = wish(A, mode="LastCommit", repository=False)

    decision = decide(world(vanished(RUN, seconds=seconds), wish=wished))

    again = StartDriver(run=continuing(RUN), expect="restored")
    assert (again in decision.actions) is reused
    assert decision.wake is not None


def test_an_end_that_was_seen_counts_when_the_pod_is_gone() -> None:
    record = during(Kind.RECOVER, Phase.STOP, RUN, target=continuing(RUN))
    seen = decide(world(record, pods=(ended(RUN), executor(RUN)))).record

    decision = decide(world(seen))

    assert not seen.writing
    assert decision.actions == (StartDriver(run=continuing(RUN), expect="restored"),)


def test_a_pod_that_was_not_listed_for_a_moment_has_not_vanished() -> None:
    record = vanished(RUN, seconds=5)

    decision = decide(world(record, pods=(driver(RUN),), agent=running(RUN)))

    assert decision.record.vanished is None
    assert decision.record.writing


def test_a_driver_that_was_never_let_in_vanishes_without_a_trace() -> None:
    again = continuing(RUN)
    record = during(Kind.RECOVER, Phase.STOP, again, target=continuing(again), writing=False)

    decision = decide(world(record))

    assert decision.actions == (StartDriver(run=continuing(again), expect="restored"),)


def test_a_driver_that_is_let_in_is_written_down_as_one_that_writes() -> None:
    record = during(Kind.RECOVER, Phase.LAUNCH, RUN, target=RUN, writing=False)

    launched = decide(world(record, pods=(driver(RUN),), agent=gated(RUN)))
    late = decide(world(steady(RUN, writing=False), pods=(driver(RUN),), agent=gated(RUN)))

    assert launched.record.writing
    assert late.record.writing


def test_a_job_that_was_suspended_without_its_end_goes_on_elsewhere() -> None:
    record = steady(RUN, suspended=True, writing=True, vanished=ago(minutes=9))

    decision = decide(world(record))

    operation = decision.record.operation
    assert operation is not None
    assert (operation.kind, operation.fenced) == (Kind.RESUME, True)
    assert operation.target is not None
    assert operation.target.epoch == RUN.epoch + 1


# --- the gate ------------------------------------------------------------------------------------

NEW = from_savepoint("s7", B, opened=False)


def at_the_gate(run: Run, phase: Phase = Phase.LAUNCH) -> Record:
    return during(Kind.UPGRADE, phase, run, target=run, stable=stable(A, "s7"))


@pytest.mark.parametrize("phase", [Phase.LAUNCH, Phase.OBSERVE])
def test_the_gate_stays_shut_while_a_former_driver_can_still_be_ended(phase: Phase) -> None:
    former = driver(RUN)
    pods = (former, driver(NEW))

    decision = decide(world(at_the_gate(NEW, phase), wish=wish(B), pods=pods, agent=gated(NEW)))

    assert decision.actions == (deletion(former),)
    assert decision.record.operation is not None
    assert "visits-e1-a1" in decision.record.operation.message


def test_the_gate_opens_beside_a_pod_that_was_left_its_own_directory() -> None:
    pods = (lost(driver(RUN, deleting=True)), driver(NEW))

    decision = decide(world(at_the_gate(NEW), wish=wish(B), pods=pods, agent=gated(NEW)))

    assert decision.actions == (OpenGate(run=replace(NEW, opened=True)),)


def test_the_gate_never_opens_into_a_directory_that_a_lost_pod_may_write_to() -> None:
    again = continuing(replace(NEW, opened=True))
    pods = (lost(driver(NEW, deleting=True)), driver(again))

    decision = decide(world(at_the_gate(again), wish=wish(B), pods=pods, agent=gated(again)))

    assert not any(isinstance(action, OpenGate) for action in decision.actions)
    assert decision.record.operation is not None
    assert decision.record.operation.phase is Phase.STOP


def test_a_driver_that_comes_up_late_is_not_let_in_beside_a_lost_one() -> None:
    again = continuing(RUN)
    pods = (lost(driver(RUN, deleting=True)), driver(again))

    decision = decide(world(steady(again), pods=pods, agent=gated(again)))

    assert not any(isinstance(action, OpenGate) for action in decision.actions)
    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.RECOVER


def test_what_comes_back_from_a_former_epoch_is_ended() -> None:
    run = replace(NEW, opened=True)
    returned = driver(RUN)
    record = steady(run, healthy_since=ago(minutes=1))

    decision = decide(world(record, wish=wish(B), pods=(returned, driver(run)), agent=running(run)))

    assert decision.actions == (deletion(returned),)


def test_an_answer_of_another_attempt_counts_for_nothing() -> None:
    again = continuing(RUN)
    record = during(Kind.RECOVER, Phase.LAUNCH, again, target=again)

    decision = decide(world(record, pods=(driver(again),), agent=gated(RUN)))

    assert decision.actions == ()
    assert decision.record.operation is not None
    assert decision.record.operation.phase is Phase.LAUNCH


def test_the_image_of_a_capture_is_the_most_trusted_one() -> None:
    run = continuing(RUN, C)
    record = during(Kind.RECOVER, Phase.STOP, run, target=continuing(run), stable=stable(A))

    decision = decide(world(record, wish=wish(C), pods=(lost(driver(run, deleting=True)),)))

    [action] = decision.actions
    assert isinstance(action, StartWorker)
    assert action.task.revision == A
