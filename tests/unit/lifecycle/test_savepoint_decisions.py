"""Decisions about savepoints, on worlds of every kind: what must never happen, and that it ends."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkpoint.lifecycle.savepoints import decide_savepoint
from sparkpoint.lifecycle.savepointworld import (
    AgentSavepoint,
    AskAgent,
    JobState,
    SavepointRecord,
    SavepointState,
    SavepointTask,
    SavepointWish,
    SavepointWorld,
    StartTask,
    Taker,
    task_name,
)
from sparkpoint.lifecycle.world import WorkerFact, WorkerState

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
TIMES = st.datetimes(
    min_value=datetime(2026, 11, 16, 11),
    max_value=datetime(2026, 11, 16, 13),
    timezones=st.just(UTC),
)
RECORDS = st.builds(
    SavepointRecord,
    tries=st.integers(0, 4),
    epoch=st.none() | st.integers(1, 2),
    started=st.none() | TIMES,
    due=st.none() | TIMES,
)
WISHES = st.builds(
    SavepointWish,
    operation=st.none() | st.just("upgrade-2"),
    backoff_limit=st.integers(0, 4),
    deleting=st.none() | TIMES,
)
WORKERS = st.builds(
    WorkerFact,
    name=st.builds(task_name, st.just("mine"), st.sampled_from(SavepointTask), st.integers(0, 4)),
    state=st.sampled_from(WorkerState),
    answer=st.sampled_from(["Captured", "NothingCommitted", "Inspected", "Verified", "Disposed"]),
    batches=st.just({}),
    created=st.none() | TIMES,
    stuck=st.sampled_from(["", "Unschedulable"]),
)
AGENTS = st.builds(AgentSavepoint, state=st.sampled_from(["Unknown", "Running", "Done", "Failed"]))
WORLDS = st.builds(
    SavepointWorld,
    name=st.just("mine"),
    wish=WISHES,
    record=RECORDS,
    now=st.just(NOW),
    job=st.sampled_from(JobState),
    epoch=st.none() | st.integers(1, 2),
    operation=st.none() | st.just("upgrade-2"),
    agent=st.none() | AGENTS,
    workers=st.lists(WORKERS, max_size=3).map(tuple),
)


@given(WORLDS)
@settings(max_examples=40, deadline=None)
def test_deciding_comes_to_rest_in_a_world_that_does_not_change(world: SavepointWorld) -> None:
    for _ in range(20):
        decision = decide_savepoint(world)
        if decision.record == world.record:
            break
        world = replace(world, record=decision.record)

    assert decide_savepoint(world) == decide_savepoint(world)
    assert decide_savepoint(world).record == world.record


@given(WORLDS)
@settings(max_examples=40, deadline=None)
def test_what_must_never_happen_does_not(world: SavepointWorld) -> None:
    decision = decide_savepoint(world)
    tasks = [each.task for each in decision.actions if isinstance(each, StartTask)]
    asks = any(isinstance(each, AskAgent) for each in decision.actions)
    deleting = world.wish.deleting is not None

    assert not decision.released or deleting
    assert not asks or (world.job is JobState.RUNNING and not deleting)
    assert not tasks or world.job is not JobState.MISSING
    if SavepointTask.DISPOSE in tasks:
        assert deleting
        assert not world.used
        assert world.wish.dispose or world.record.expired
    if SavepointTask.CAPTURE in tasks:
        assert world.wish.operation is None
        assert not world.wish.existing


@given(WORLDS)
@settings(max_examples=30, deadline=None)
def test_a_complete_savepoint_stays_complete(world: SavepointWorld) -> None:
    complete = replace(world.record, state=SavepointState.COMPLETED)

    decision = decide_savepoint(replace(world, record=complete))

    assert decision.record.state is SavepointState.COMPLETED


def test_a_savepoint_of_a_job_that_was_upgraded_meanwhile_begins_anew() -> None:
    record = SavepointRecord(state=SavepointState.IN_PROGRESS, taker=Taker.AGENT, epoch=1)
    world = SavepointWorld(
        name="mine",
        wish=SavepointWish(),
        record=record,
        now=NOW,
        job=JobState.RUNNING,
        epoch=2,
        agent=AgentSavepoint(state="Unknown"),
    )

    first = decide_savepoint(world)
    second = decide_savepoint(replace(world, record=first.record))

    assert first.record.state is SavepointState.PENDING
    assert (second.record.epoch, second.actions) == (2, (AskAgent(),))


@pytest.mark.parametrize("existing", [False, True])
def test_retention_never_removes_the_data_of_what_was_made_known(existing: bool) -> None:
    record = SavepointRecord(state=SavepointState.COMPLETED, described=True, expired=True)
    wish = SavepointWish(existing=existing, deleting=NOW)
    world = SavepointWorld(name="mine", wish=wish, record=record, now=NOW, job=JobState.RUNNING)

    decision = decide_savepoint(world)

    assert decision.released == existing
    assert bool(decision.actions) != existing


def test_a_savepoint_of_a_job_that_is_being_deleted_says_what_it_waits_for() -> None:
    world = SavepointWorld(
        name="mine", wish=SavepointWish(), record=SavepointRecord(), now=NOW, job=JobState.BUSY
    )

    decision = decide_savepoint(world)

    assert decision.record.message == "Waiting for the deletion of the job to end."
