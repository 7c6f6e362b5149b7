"""An upgrade from its trial to its proof, and everything that may come in between."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.lifecycle import decide
from sparkpoint.lifecycle.actions import (
    Capture,
    DeletePod,
    OpenGate,
    Rehearse,
    RequestStop,
    StartDriver,
    StartWorker,
)
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Begin, Origin, Record, Result
from sparkpoint.lifecycle.world import QueryFact, StopFact, WorkerState
from tests.unit.lifecycle.worlds import (
    NOW,
    A,
    B,
    C,
    agent,
    ago,
    continuing,
    driver,
    during,
    empty,
    executor,
    from_savepoint,
    gated,
    revision,
    running,
    stable,
    standing,
    steady,
    stopped,
    wish,
    worker,
    world,
)

OLD = empty(A)
NEW = from_savepoint("visits-upgrade-7", B, opened=False)
CAPTURED = replace(NEW, before="visits-upgrade-7")
"""The same once it is known where sinks stand."""
HEALTHY = {"pods": (driver(OLD), executor(OLD)), "agent": running(OLD)}
TRIAL = "visits-upgrade-7-prepare-1-0"


def upgrading(phase: Phase, **facts: object) -> Record:
    facts = {"target": NEW, "savepoint": "visits-upgrade-7", **facts}
    return during(Kind.UPGRADE, phase, OLD, **facts)


def observed(batch: int | None = None, **facts: object) -> Record:
    run = replace(NEW, opened=True)
    facts = {"target": run, "captured": True, "base": (("visits", 9),), **facts}
    kept = {"stable": stable(A, "visits-upgrade-7"), "progressed": False}
    return during(Kind.UPGRADE, Phase.OBSERVE, run, **{**kept, **facts})


# --- prepare -------------------------------------------------------------------------------------


def test_new_code_is_tried_on_the_newest_savepoint_while_the_job_runs_on() -> None:
    decision = decide(world(steady(OLD), wish=wish(B), newest="s5", **HEALTHY))

    task = Rehearse(run=NEW, savepoint="s5")
    assert decision.record.operation is not None
    assert decision.record.operation.phase is Phase.PREPARE
    assert decision.record.run == OLD
    assert decision.actions == (StartWorker(name=TRIAL, task=task),)


def test_without_a_savepoint_one_of_what_runs_is_taken_for_the_trial() -> None:
    decision = decide(world(steady(OLD), wish=wish(B), newest=None, **HEALTHY))

    (started,) = decision.actions
    assert isinstance(started, StartWorker)
    assert isinstance(started.task, Rehearse)
    assert (started.task.run, started.task.captured_from) == (NEW, OLD)
    assert "trial" in started.task.savepoint
    assert decision.record.run == OLD


def test_a_trial_that_captured_first_and_takes_too_long_holds_nothing_up() -> None:
    late = upgrading(Phase.PREPARE, phase_started=ago(minutes=11))
    seen: dict[str, Any] = {"workers": (worker(TRIAL),), **HEALTHY}

    decision = decide(world(late, wish=wish(B), newest=None, **seen))
    with_savepoint = decide(world(late, wish=wish(B), newest="s5", **seen))

    assert decision.record.operation is not None
    assert decision.record.operation.phase is Phase.STOP
    assert [event.reason for event in decision.events] == ["CompatibilityUnknown"]
    assert with_savepoint.record.operation is None


def test_a_trial_pod_that_is_refused_holds_the_upgrade_back() -> None:
    refused = worker(TRIAL, state=WorkerState.FAILED, message="quota", refused=True)

    decision = decide(
        world(upgrading(Phase.PREPARE), wish=wish(B), newest="s5", workers=(refused,), **HEALTHY)
    )

    assert decision.record.operation is None
    assert decision.record.run == OLD
    assert decision.record.held is not None
    assert (decision.record.held.reason, "quota" in decision.record.held.message) == (
        "NotPrepared",
        True,
    )


def test_without_a_repository_code_is_not_tried() -> None:
    wished = wish(B, repository=False, mode="LastCommit")

    decision = decide(world(steady(OLD), wish=wished, newest=None, **HEALTHY))

    assert decision.record.operation is not None
    assert decision.record.operation.phase is Phase.STOP


def test_incompatible_code_is_refused_and_the_job_runs_on() -> None:
    seen = world(
        upgrading(Phase.PREPARE),
        wish=wish(B),
        newest="s5",
        workers=(worker(TRIAL, "Incompatible", message="a column is gone"),),
        **HEALTHY,
    )

    decision = decide(seen)

    assert decision.record.operation is None
    assert decision.record.run == OLD
    assert decision.record.held is not None
    assert (decision.record.held.reason, decision.record.held.until) == ("Incompatible", None)
    assert decision.actions == ()


def test_incompatible_code_is_tried_again_with_another_policy_and_only_once() -> None:
    refused = (worker(TRIAL, "Incompatible", message="a column is gone"),)
    record = decide(
        world(upgrading(Phase.PREPARE), wish=wish(B), newest="s5", workers=refused, **HEALTHY)
    ).record

    warned = wish(B, generation=2, compatibility="Warn")
    same = decide(world(record, wish=wish(B, generation=2), newest="s5", **HEALTHY))
    again = decide(world(record, wish=warned, newest="s5", **HEALTHY))

    assert same.record.operation is None
    assert again.record.operation is not None
    assert again.record.operation.kind is Kind.UPGRADE


@pytest.mark.parametrize(
    ("policy", "answer", "reason"),
    [
        ({"compatibility": "Warn"}, "Incompatible", "Incompatible"),
        ({}, "Unknown", "CompatibilityUnknown"),
        ({}, "Compatible", None),
    ],
)
def test_any_other_verdict_is_told_and_the_upgrade_goes_on(
    policy: dict[str, Any], answer: str, reason: str | None
) -> None:
    workers = (worker(TRIAL, answer),)
    wished = wish(B, **policy)

    decision = decide(
        world(upgrading(Phase.PREPARE), wish=wished, newest="s5", workers=workers, **HEALTHY)
    )

    assert decision.record.operation is not None
    assert decision.record.operation.phase is Phase.STOP
    assert [event.reason for event in decision.events] == ([reason] if reason else [])


def test_what_is_not_known_to_fit_does_not_stop_a_job_that_is_strict() -> None:
    told = "query visits: STATE_DIFFERS: 3 keys changed"
    workers = (worker(TRIAL, "Unknown", message=told),)
    wished = wish(B, compatibility="Strict")

    decision = decide(
        world(
            upgrading(Phase.PREPARE, strict=True),
            wish=wished,
            newest="s5",
            workers=workers,
            **HEALTHY,
        )
    )
    enforced = decide(
        world(decision.record, wish=wish(B, generation=2), newest="s5", **HEALTHY)
    ).record

    held = decision.record.held
    assert (decision.record.operation, decision.record.run) == (None, OLD)
    assert held is not None
    assert (held.reason, held.message) == ("CompatibilityUnknown", told)
    assert held.until is not None
    # Who has seen what differs, and wants it, says so.
    assert enforced.operation is not None


@pytest.mark.parametrize("changes", [("Enforce", "Strict"), ("Strict", "Enforce")])
def test_a_trial_does_not_count_once_another_strictness_is_asked_for(
    changes: tuple[str, str],
) -> None:
    """One that was begun for another has not done the last batch again, or did so for nothing."""
    first, then = (wish(B, generation=n + 2, compatibility=c) for n, c in enumerate(changes))
    seen: dict[str, Any] = {"newest": "s5", **HEALTHY}
    begun = decide(world(steady(OLD), wish=first, **seen))
    (started,) = begun.actions
    assert isinstance(started, StartWorker)
    tried = worker(started.name, "Compatible")

    decision = decide(world(begun.record, wish=then, workers=(tried,), **seen))
    same = decide(world(begun.record, wish=first, workers=(tried,), **seen))

    (again,) = decision.actions
    assert isinstance(again, StartWorker)
    assert again.name != started.name
    assert [outcome.result for outcome in decision.ended] == [Result.SUPERSEDED]
    assert same.record.operation is not None
    assert same.record.operation.phase is Phase.STOP


@pytest.mark.parametrize(
    ("policy", "answer"), [({"compatibility": "Strict"}, "Compatible"), ({}, "Unknown")]
)
def test_what_is_known_to_fit_goes_on_also_if_it_is_strict(
    policy: dict[str, Any], answer: str
) -> None:
    decision = decide(
        world(
            upgrading(Phase.PREPARE, strict=bool(policy) or None),
            wish=wish(B, **policy),
            newest="s5",
            workers=(worker(TRIAL, answer),),
            **HEALTHY,
        )
    )

    assert decision.record.operation is not None
    assert decision.record.operation.phase is Phase.STOP


@pytest.mark.parametrize(
    ("kind", "reason"), [("SavepointUnreadable", "NotPrepared"), ("ScriptRaises", "ScriptFailed")]
)
def test_what_is_certain_to_fail_does_not_stop_the_job_and_is_tried_again_later(
    kind: str, reason: str
) -> None:
    workers = (worker(TRIAL, "Unknown", kind=kind, message="NameError: x (job.py:3)"),)
    record = upgrading(Phase.PREPARE)

    decision = decide(world(record, wish=wish(B), newest="s5", workers=workers, **HEALTHY))
    warned = decide(
        world(
            record,
            wish=wish(B, compatibility="Warn"),
            newest="s5",
            workers=workers,
            **HEALTHY,
        )
    )

    held = decision.record.held
    assert (decision.record.operation, decision.record.run) == (None, OLD)
    assert held is not None
    assert (held.reason, held.message) == (reason, "NameError: x (job.py:3)")
    assert held.until is not None
    assert warned.record.operation is not None
    assert warned.record.operation.phase is Phase.STOP
    assert [event.reason for event in warned.events] == ["CompatibilityUnknown"]


def test_code_that_begins_without_state_need_not_read_any() -> None:
    decision = decide(world(steady(OLD), wish=wish(B, mode="Stateless"), newest="s5", **HEALTHY))

    assert decision.record.operation is not None
    assert decision.record.operation.phase is Phase.STOP


def test_a_trial_that_does_not_end_is_given_up_and_repeated_later() -> None:
    record = upgrading(Phase.PREPARE, phase_started=ago(minutes=11))
    workers = (worker(TRIAL, stuck="Unschedulable"),)

    decision = decide(world(record, wish=wish(B), newest="s5", workers=workers, **HEALTHY))

    assert decision.record.operation is None
    assert decision.record.held is not None
    assert decision.record.held.until == NOW + timedelta(seconds=5)
    assert decision.actions == ()


@pytest.mark.parametrize(
    "wished",
    [
        pytest.param(wish(C, generation=2), id="other code"),
        pytest.param(wish(A, generation=2), id="back"),
        pytest.param(wish(B, generation=2, suspend=True), id="suspend"),
        pytest.param(wish(B, generation=2, mode="Stateless"), id="without state"),
        pytest.param(wish(B, generation=2, mode="LastCommit"), id="without savepoint"),
    ],
)
def test_any_newer_wish_takes_over_while_nothing_was_touched(wished: object) -> None:
    decision = decide(world(upgrading(Phase.PREPARE), wish=wished, newest="s5", **HEALTHY))

    assert decision.record.last is not None
    assert decision.record.last.result is Result.SUPERSEDED
    assert decision.record.run == OLD


def test_a_change_of_something_else_does_not_disturb_a_trial() -> None:
    record = upgrading(Phase.PREPARE)
    wished = wish(B, generation=2, deadline=timedelta(minutes=20))

    decision = decide(world(record, wish=wished, newest="s5", workers=(worker(TRIAL),), **HEALTHY))

    assert decision.record.operation is not None
    assert decision.record.operation.id == "upgrade-7"


# --- stop ----------------------------------------------------------------------------------------


def test_the_driver_is_asked_to_stop_and_to_capture_at_its_boundary() -> None:
    decision = decide(world(upgrading(Phase.STOP), wish=wish(B), **HEALTHY))

    ask = RequestStop(run=OLD, operation="upgrade-7", savepoint="visits-upgrade-7")
    assert decision.actions == (ask,)


def test_an_agent_that_does_not_take_a_stop_is_told_of() -> None:
    seen = {"wish": wish(B), "pods": HEALTHY["pods"], "agent": running(OLD)}
    soon, late = (
        decide(world(upgrading(Phase.STOP, phase_started=ago(seconds=since)), **seen))
        for since in (20, 40)
    )

    assert soon.actions == late.actions
    told = [each.record.operation for each in (soon, late)]
    assert ["does not take it" in each.message for each in told if each] == [False, True]


def test_a_stop_that_fails_beforehand_leaves_the_job_as_it_was() -> None:
    fact = StopFact(operation="upgrade-7", state="Failed", message="no such bucket")

    decision = decide(
        world(
            upgrading(Phase.STOP), wish=wish(B), pods=HEALTHY["pods"], agent=running(OLD, stop=fact)
        )
    )

    assert decision.record.operation is None
    assert decision.record.run == OLD
    assert decision.record.held is not None
    assert decision.record.held.until is not None
    assert decision.actions == ()


def test_a_capture_that_fails_at_the_boundary_is_tried_again_there() -> None:
    seen = standing(OLD, "upgrade-7", "Failed", message="timeout")

    decision = decide(world(upgrading(Phase.STOP), wish=wish(B), pods=HEALTHY["pods"], agent=seen))

    assert decision.actions == (
        RequestStop(run=OLD, operation="upgrade-7", savepoint="visits-upgrade-7"),
    )


@pytest.mark.parametrize(
    ("empty_", "began"), [(True, ago(seconds=1)), (False, ago(minutes=3))], ids=["nothing", "late"]
)
def test_a_capture_that_cannot_succeed_there_is_left_to_a_worker(
    empty_: bool, began: object
) -> None:
    seen = standing(OLD, "upgrade-7", "Failed", empty=empty_)
    record = upgrading(Phase.STOP, phase_started=began)

    decision = decide(world(record, wish=wish(B), pods=HEALTHY["pods"], agent=seen))

    assert decision.actions == (RequestStop(run=OLD, operation="upgrade-7-bare", savepoint=None),)


def test_what_the_agent_says_at_last_is_written_down_before_its_pod_is_gone() -> None:
    seen = standing(OLD, "upgrade-7", "Done", savepoint="visits-upgrade-7", batches={"visits": 12})

    decision = decide(world(upgrading(Phase.STOP), wish=wish(B), pods=HEALTHY["pods"], agent=seen))

    assert decision.record.operation is not None
    assert decision.record.operation.captured
    assert decision.record.operation.base == (("visits", 12),)


@pytest.mark.parametrize(
    ("minutes", "seen"), [(3, None), (5, running(OLD))], ids=["silent", "too slow"]
)
def test_a_driver_that_does_not_stop_in_time_is_deleted(minutes: int, seen: object) -> None:
    record = upgrading(Phase.STOP, phase_started=ago(minutes=minutes))

    decision = decide(world(record, wish=wish(B), pods=(driver(OLD),), agent=seen))

    assert decision.actions == (DeletePod(name="visits-e1-a1", uid="uid-visits-e1-a1"),)
    assert [event.reason for event in decision.events] == ["StopTimedOut"]


def test_a_driver_at_its_gate_is_not_asked_for_a_boundary() -> None:
    decision = decide(
        world(upgrading(Phase.STOP), wish=wish(B), pods=(driver(OLD),), agent=gated(OLD))
    )

    assert decision.actions == (DeletePod(name="visits-e1-a1", uid="uid-visits-e1-a1"),)


def test_the_next_driver_waits_for_the_last_executor() -> None:
    pods = (stopped(OLD, "visits-upgrade-7"), executor(OLD))

    decision = decide(world(upgrading(Phase.STOP), wish=wish(B), pods=pods))

    name = "visits-e1-a1-exec-1"
    assert decision.actions == (DeletePod(name=name, uid=f"uid-{name}"),)


def test_a_stop_that_captured_is_followed_by_the_launch_at_once() -> None:
    pods = (stopped(OLD, "visits-upgrade-7"),)

    decision = decide(world(upgrading(Phase.STOP), wish=wish(B), pods=pods))

    assert decision.record.run == CAPTURED
    assert decision.record.stable == stable(A, "visits-upgrade-7")
    assert not decision.record.progressed
    assert decision.actions == (StartDriver(run=CAPTURED, expect="restored"),)


def test_a_savepoint_of_another_stop_is_not_taken_for_this_one() -> None:
    seen = standing(OLD, "suspend-6", "Done", savepoint="visits-suspend-6")

    decision = decide(world(upgrading(Phase.STOP), wish=wish(B), pods=HEALTHY["pods"], agent=seen))

    assert decision.record.operation is not None
    assert not decision.record.operation.captured


def test_an_agent_that_answers_to_the_stop_is_not_silent_any_more() -> None:
    record = upgrading(Phase.STOP, silent_since=ago(minutes=4))

    decision = decide(world(record, wish=wish(B), **HEALTHY))

    assert decision.record.silent_since is None


# --- capture -------------------------------------------------------------------------------------

CAPTURE = "visits-upgrade-7-capture-1-0"


def test_what_the_stop_did_not_capture_a_worker_does() -> None:
    pods = (stopped(OLD, None),)

    decision = decide(world(upgrading(Phase.STOP), wish=wish(B), pods=pods))

    task = Capture(run=OLD, savepoint="visits-upgrade-7", revision=A)
    assert decision.actions == (StartWorker(name=CAPTURE, task=task),)


def test_a_worker_gets_another_image_if_it_does_not_start_with_the_first() -> None:
    missing = continuing(OLD, C)
    record = during(
        Kind.UPGRADE,
        Phase.CAPTURE,
        missing,
        target=NEW,
        savepoint="visits-upgrade-7",
        stable=stable(A),
        tries=1,
    )

    decision = decide(world(record, wish=wish(B)))

    [action] = decision.actions
    assert isinstance(action, StartWorker)
    assert isinstance(action.task, Capture)
    assert action.task.revision == B


@pytest.mark.parametrize("answer", ["", "Captured"])
def test_only_a_clear_answer_counts_as_captured(answer: str) -> None:
    found = worker(CAPTURE, "Captured", state=WorkerState.SUCCEEDED)
    found = replace(found, answer=answer, batches={"visits": 12} if answer else {})

    decision = decide(world(upgrading(Phase.CAPTURE), wish=wish(B), workers=(found,)))

    assert decision.record.operation is not None
    assert decision.record.operation.captured is bool(answer)
    assert (decision.record.run == CAPTURED) is bool(answer)


def test_a_job_that_never_committed_goes_on_in_its_directory() -> None:
    record = upgrading(Phase.CAPTURE, progressed=False)

    decision = decide(world(record, wish=wish(B), workers=(worker(CAPTURE, "NothingCommitted"),)))

    run = continuing(OLD, B)
    assert decision.record.run == run
    assert decision.actions == (StartDriver(run=run, expect="any"),)


def test_state_that_was_seen_cannot_have_become_nothing() -> None:
    record = upgrading(Phase.CAPTURE, progressed=True)

    decision = decide(world(record, wish=wish(B), workers=(worker(CAPTURE, "NothingCommitted"),)))

    assert decision.record.run == OLD
    assert decision.record.operation is not None
    assert decision.record.operation.tries == 1


@pytest.mark.parametrize("restart", ["OnFailure", "Never"])
def test_a_job_that_cannot_be_captured_runs_on_as_it_was(restart: str) -> None:
    record = upgrading(Phase.CAPTURE, tries=3, writing=False)
    failed = worker("visits-upgrade-7-capture-1-3", state=WorkerState.FAILED, message="no space")

    decision = decide(world(record, wish=wish(B, restart=restart), workers=(failed,)))

    again = continuing(OLD, A)
    assert decision.record.operation is not None
    assert decision.record.operation.kind is Kind.RECOVER
    assert decision.record.failures == 0
    assert decision.record.held is not None
    assert decision.actions == (StartDriver(run=again, expect="restored"),)


def test_nothing_was_written_behind_a_gate_that_was_never_opened() -> None:
    unopened = from_savepoint("s5", A, opened=False)
    target = from_savepoint("visits-upgrade-7", B, epoch=3, attempt=3, opened=False)
    record = during(Kind.UPGRADE, Phase.STOP, unopened, target=target, savepoint="visits-upgrade-7")

    decision = decide(world(record, wish=wish(B)))

    run = from_savepoint("s5", B, epoch=3, attempt=3, opened=False)
    assert decision.record.run == run
    assert decision.record.stable == stable(A, "s5")
    assert decision.actions == (StartDriver(run=run, expect="restored"),)


# --- launch and observe --------------------------------------------------------------------------


def test_an_upgrade_from_the_last_commit_goes_on_in_the_directory() -> None:
    record = steady(OLD, finished=True)

    decision = decide(world(record, wish=wish(B, mode="LastCommit", compatibility="Skip")))

    run = continuing(OLD, B)
    assert decision.actions == (StartDriver(run=run, expect="restored"),)


def test_a_former_pause_does_not_hold_the_users_wish_up() -> None:
    record = steady(OLD, failures=9, due=NOW + timedelta(minutes=5), writing=False)

    decision = decide(world(record, wish=wish(B, mode="LastCommit", compatibility="Skip")))

    assert [type(action) for action in decision.actions] == [StartDriver]
    assert (decision.record.failures, decision.record.due) == (0, None)


@pytest.mark.parametrize(
    ("batch", "busy", "seconds", "proven"),
    [
        (None, True, 10, False),
        (11, True, 10, False),
        (12, True, 10, True),
        (10, False, 10, False),
        (10, False, 25, True),
        (None, False, 25, True),
    ],
)
def test_commits_or_idleness_prove_a_new_revision(
    batch: int | None, busy: bool, seconds: int, proven: bool
) -> None:
    record = observed(phase_started=ago(seconds=seconds))
    run = record.run
    assert run is not None

    decision = decide(
        world(record, wish=wish(B), pods=(driver(run),), agent=running(run, batch, busy=busy))
    )

    assert (decision.record.operation is None) is proven
    assert (decision.record.stable == stable(B)) is proven


def test_a_query_without_input_does_not_fail_the_trial_of_a_busy_one() -> None:
    record = observed(phase_started=ago(seconds=30), base=(("visits", 9), ("alarms", 3)))
    run = record.run
    assert run is not None
    busy = QueryFact(name="visits", batch=15, active=True, busy=True)
    idle = QueryFact(name="alarms", batch=None, active=True, busy=False)

    decision = decide(
        world(record, wish=wish(B), pods=(driver(run),), agent=agent(run, "running", busy, idle))
    )

    assert decision.record.operation is None


@pytest.mark.parametrize(
    "origin",
    [
        Origin(begin=Begin.EMPTY),
        Origin(begin=Begin.SAVEPOINT, savepoint="s2", sink="Rewind"),
    ],
    ids=["empty", "rewound"],
)
def test_commits_are_not_counted_from_batches_that_were_given_up(origin: Origin) -> None:
    target = replace(NEW, origin=origin, source=origin)
    record = upgrading(Phase.STOP, target=target)
    pods = (stopped(OLD, "visits-upgrade-7", batch=900),)

    launched = decide(world(record, wish=wish(B), pods=pods)).record

    assert launched.operation is not None
    assert launched.operation.base == ()


def test_one_commit_of_a_restored_query_is_one_commit() -> None:
    record = observed(base=())
    run = record.run
    assert run is not None

    decision = decide(
        world(record, wish=wish(B), pods=(driver(run),), agent=running(run, batch=501))
    )

    assert decision.record.operation is not None
    assert decision.record.operation.base == (("visits", 500),)
    assert decision.record.operation.message == "1 of 3 commits."


def test_downtime_is_counted_from_the_last_commit_to_the_first() -> None:
    record = observed(stopped=ago(seconds=9))
    run = record.run
    assert run is not None

    decision = decide(world(record, wish=wish(B), pods=(driver(run),), agent=running(run, 12)))

    assert decision.record.last is not None
    assert decision.record.last.downtime == 8.0


def test_clocks_of_two_drivers_that_differ_make_no_downtime_of_less_than_nothing() -> None:
    record = observed(stopped=ago(seconds=-60))
    run = record.run
    assert run is not None

    decision = decide(world(record, wish=wish(B), pods=(driver(run),), agent=running(run, 12)))

    assert decision.record.last is not None
    assert decision.record.last.downtime == 0.0


# --- newer wishes --------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [Phase.STOP, Phase.CAPTURE])
def test_a_job_on_its_way_to_a_savepoint_is_not_interrupted(phase: Phase) -> None:
    seen = {"pods": (driver(OLD),), "agent": running(OLD)} if phase is Phase.STOP else {}

    decision = decide(world(upgrading(phase), wish=wish(C, generation=2), **seen))

    assert decision.record.operation is not None
    assert decision.record.operation.id == "upgrade-7"


def test_a_newer_wish_takes_over_before_the_next_driver_is_made() -> None:
    pods = (stopped(OLD, "visits-upgrade-7"),)
    wished = wish(C, generation=2, compatibility="Skip")

    decision = decide(world(upgrading(Phase.STOP), wish=wished, pods=pods))

    run = from_savepoint("visits-upgrade-7", C, epoch=3, attempt=3, opened=False)
    run = replace(run, before="visits-upgrade-7")
    assert decision.record.last is not None
    assert decision.record.last.result is Result.SUPERSEDED
    assert decision.actions == (StartDriver(run=run, expect="restored"),)


def test_a_suspension_takes_over_a_launch() -> None:
    record = upgrading(Phase.STOP)
    pods = (stopped(OLD, "visits-upgrade-7"),)

    decision = decide(world(record, wish=wish(B, generation=2, suspend=True), pods=pods))

    assert decision.record.suspended
    assert decision.record.operation is None
    assert decision.record.run == CAPTURED
    assert decision.actions == ()


def test_a_wish_that_waits_does_not_interrupt_a_recovery() -> None:
    again = continuing(OLD)
    record = during(Kind.RECOVER, Phase.LAUNCH, again, target=again)

    decision = decide(world(record, wish=wish(B)))

    assert decision.actions == (StartDriver(run=again, expect="restored"),)


def test_who_thinks_better_of_giving_up_the_state_gets_it_back() -> None:
    unopened = replace(empty(B, epoch=2, attempt=2, opened=False), left="visits-upgrade-7")
    record = during(
        Kind.UPGRADE, Phase.LAUNCH, unopened, target=unopened, stable=stable(A, "visits-upgrade-7")
    )

    decision = decide(world(record, wish=wish(A, generation=2, compatibility="Skip")))

    run = from_savepoint("visits-upgrade-7", A, epoch=3, attempt=3, opened=False)
    assert decision.record.run == run
    assert decision.actions == (StartDriver(run=run, expect="restored"),)


def test_who_gives_up_the_state_twice_can_still_think_better_of_it() -> None:
    unopened = replace(empty(B, epoch=2, attempt=2, opened=False), left="visits-upgrade-7")
    record = during(Kind.UPGRADE, Phase.LAUNCH, unopened, target=unopened)

    decision = decide(world(record, wish=wish(C, generation=2, mode="Stateless")))

    assert decision.record.run is not None
    assert decision.record.run.revision == C
    assert decision.record.run.left == "visits-upgrade-7"


def test_state_that_cannot_be_captured_is_given_up_only_if_that_is_still_wished() -> None:
    stateless = empty(B, epoch=2, attempt=2, opened=False)
    record = upgrading(Phase.CAPTURE, target=stateless, tries=3, writing=False)
    failed = worker("visits-upgrade-7-capture-1-3", state=WorkerState.FAILED)

    still = decide(world(record, wish=wish(B, mode="Stateless"), workers=(failed,))).record
    no_longer = decide(world(record, wish=wish(A, generation=2), workers=(failed,))).record

    assert still.run == stateless
    assert no_longer.run == continuing(OLD)


def test_state_that_is_given_up_is_referred_to_until_the_gate_opens() -> None:
    wished = wish(B, mode="Stateless")
    record = upgrading(Phase.STOP, target=empty(B, epoch=2, attempt=2, opened=False))

    launched = decide(world(record, wish=wished, pods=(stopped(OLD, "visits-upgrade-7"),))).record
    run = launched.run
    assert run is not None
    opened = decide(world(launched, wish=wished, pods=(driver(run),), agent=gated(run)))

    assert run.left == "visits-upgrade-7"
    assert "visits-upgrade-7" in launched.references()
    assert opened.record.run is not None
    assert opened.record.run.left is None
    assert opened.actions == (OpenGate(run=opened.record.run),)


def test_executors_change_without_savepoint_and_without_a_new_directory() -> None:
    larger = revision("a", size="9")
    record = steady(OLD, finished=True)

    decision = decide(world(record, wish=wish(larger), revisions=frozenset({larger.name})))

    assert decision.record.run == continuing(OLD, larger)
    assert decision.record.operation is not None
    assert decision.record.operation.savepoint is None
