"""A job's state in a word and in conditions: every reason, and what a person is told to do."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sparkpoint.lifecycle.conditions import (
    Aspect,
    Circumstances,
    Condition,
    JobWord,
    Reason,
    SavepointHealth,
    Status,
    conditions,
    job_word,
    since_when,
)
from sparkpoint.lifecycle.phases import PLANS, Kind, Phase
from sparkpoint.lifecycle.record import (
    Begin,
    Held,
    Operation,
    Origin,
    Outcome,
    Record,
    Result,
    Revision,
    Run,
    Stable,
    Waiting,
)
from sparkpoint.lifecycle.world import AgentFact, Lack, QueryFact, RestoreWish, Wish, World

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
REVISION = Revision(name="r1", code="c1", state="s1")
EMPTY = Origin(begin=Begin.EMPTY)
RUN = Run(epoch=1, attempt=1, revision=REVISION, origin=EMPTY, source=EMPTY, opened=True)
QUERY = QueryFact(name="visits", batch=4, active=True, busy=True, last_commit=NOW)
AGENT = AgentFact(epoch=1, attempt=1, phase="running", queries=(QUERY,))
HEALTHY = World(
    job="visits",
    wish=Wish(generation=1, revision=REVISION),
    record=Record(run=RUN, stable=Stable(revision=REVISION)),
    now=NOW,
    agent=AGENT,
)


def operation(kind: Kind) -> Operation:
    return Operation(
        id=f"{kind.value.lower()}-2",
        kind=kind,
        phase=PLANS[kind][0],
        generation=2,
        started=NOW,
        phase_started=NOW,
    )


def held(reason: str, until: datetime | None = None) -> Held:
    return Held(revision="r1", reason=reason, message="It went wrong.", until=until)


def seen(aspect: Aspect, world: World = HEALTHY, around: Circumstances | None = None) -> Condition:
    found = conditions(world, around or Circumstances(savepoints=SavepointHealth(last="s1")))
    return next(each for each in found if each.aspect is aspect)


def recorded(**changes: object) -> World:
    # mypy cannot check keywords that are passed on.
    record = replace(HEALTHY.record, **changes)  # type: ignore[arg-type]
    return replace(HEALTHY, record=record)


@pytest.mark.parametrize("kind", Kind)
def test_every_operation_has_a_word(kind: Kind) -> None:
    word = job_word(Record(run=RUN, operation=operation(kind)), deleting=False)

    assert word in JobWord


@pytest.mark.parametrize(
    ("record", "word"),
    [
        (Record(), JobWord.PENDING),
        (Record(run=RUN), JobWord.RUNNING),
        (Record(run=RUN, suspended=True), JobWord.SUSPENDED),
        (Record(run=RUN, finished=True), JobWord.COMPLETED),
        (Record(run=RUN, finished=True, held=held("GaveUp")), JobWord.FAILED),
        (Record(removed=True), JobWord.DELETING),
    ],
)
def test_a_job_that_nothing_is_done_to_has_a_word(record: Record, word: JobWord) -> None:
    assert job_word(record, deleting=False) is word


def test_a_job_that_is_being_deleted_says_nothing_else() -> None:
    assert job_word(Record(run=RUN), deleting=True) is JobWord.DELETING


def test_a_healthy_job_is_all_well() -> None:
    found = {
        each.aspect: each.status
        for each in conditions(HEALTHY, Circumstances(savepoints=SavepointHealth(last="s1")))
    }

    assert found == {
        Aspect.ACCEPTED: Status.TRUE,
        Aspect.READY: Status.TRUE,
        Aspect.PROGRESSING: Status.FALSE,
        Aspect.DEGRADED: Status.FALSE,
        Aspect.COMPATIBLE: Status.TRUE,
        Aspect.SAVEPOINT_HEALTHY: Status.TRUE,
    }


def test_an_invalid_spec_is_not_accepted_and_told_whole() -> None:
    condition = seen(Aspect.ACCEPTED, around=Circumstances(invalid="spec.image: …\nspec.args: …"))

    assert (condition.status, condition.reason) == (Status.FALSE, Reason.INVALID_SPEC)
    assert "spec.args" in condition.message


def test_a_change_that_cannot_be_had_is_not_accepted() -> None:
    world = replace(HEALTHY, wish=replace(HEALTHY.wish, revision=Revision(name="r2", code="c1")))

    condition = seen(Aspect.ACCEPTED, world)

    assert condition.reason is Reason.CHANGE_REFUSED
    assert "spec.state" in condition.message


def test_a_job_that_runs_on_during_an_upgrade_is_ready() -> None:
    world = recorded(operation=operation(Kind.UPGRADE))

    assert seen(Aspect.READY, world).status is Status.TRUE
    assert seen(Aspect.PROGRESSING, world).reason is Reason.UNDER_WAY


@pytest.mark.parametrize(
    ("world", "status", "reason"),
    [
        (replace(HEALTHY, record=Record(), agent=None), Status.FALSE, Reason.NOT_STARTED),
        (replace(HEALTHY, agent=None), Status.UNKNOWN, Reason.AGENT_SILENT),
        (replace(recorded(suspended=True), agent=None), Status.FALSE, Reason.SUSPENDED),
        (replace(recorded(finished=True), agent=None), Status.FALSE, Reason.COMPLETED),
        (
            replace(recorded(finished=True, held=held("GaveUp")), agent=None),
            Status.FALSE,
            Reason.GAVE_UP,
        ),
        (
            replace(recorded(operation=operation(Kind.START)), agent=None),
            Status.FALSE,
            Reason.STARTING,
        ),
        (
            replace(recorded(operation=operation(Kind.RESCALE)), agent=None),
            Status.FALSE,
            Reason.STANDING,
        ),
        (replace(HEALTHY, agent=replace(AGENT, queries=())), Status.FALSE, Reason.STARTING),
        (
            replace(HEALTHY, agent=replace(AGENT, queries=(replace(QUERY, active=False),))),
            Status.FALSE,
            Reason.QUERY_ENDED,
        ),
    ],
)
def test_a_job_that_is_not_ready_says_why(world: World, status: Status, reason: Reason) -> None:
    condition = seen(Aspect.READY, world)

    assert (condition.status, condition.reason) == (status, reason)
    assert condition.message


def test_a_query_that_works_without_committing_stands_still() -> None:
    late = replace(QUERY, last_commit=NOW - timedelta(minutes=11))
    world = replace(HEALTHY, agent=replace(AGENT, queries=(late,)))

    condition = seen(Aspect.READY, world)

    assert condition.reason is Reason.NO_COMMITS
    assert "visits" in condition.message


@pytest.mark.parametrize(
    ("minutes", "reason"), [(1, Reason.STARTING), (9, Reason.STARTING), (11, Reason.NO_COMMITS)]
)
def test_a_query_that_works_is_not_ready_before_its_first_commit(
    minutes: int, reason: Reason
) -> None:
    busy = replace(QUERY, batch=None, last_commit=None)
    since = NOW - timedelta(minutes=minutes)
    observed = replace(operation(Kind.START), phase=Phase.OBSERVE, phase_started=since)
    agent = replace(AGENT, queries=(QUERY, busy))

    afterwards = replace(recorded(healthy_since=since), agent=agent)
    meanwhile = replace(recorded(operation=observed), agent=agent)

    for world in (afterwards, meanwhile):
        condition = seen(Aspect.READY, world)
        assert (condition.status, condition.reason) == (Status.FALSE, reason)


def test_a_query_that_never_had_anything_to_do_is_ready() -> None:
    idle = replace(QUERY, busy=False, batch=None, last_commit=None)
    world = replace(
        recorded(healthy_since=NOW - timedelta(days=2)), agent=replace(AGENT, queries=(idle,))
    )

    assert seen(Aspect.READY, world).status is Status.TRUE


def test_a_query_that_has_nothing_to_do_need_not_commit() -> None:
    idle = replace(QUERY, busy=False, last_commit=NOW - timedelta(days=2))
    world = replace(HEALTHY, agent=replace(AGENT, queries=(idle,)))

    assert seen(Aspect.READY, world).status is Status.TRUE


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("RolledBack", "Change the spec"),
        ("Incompatible", "spec.upgrade.compatibility"),
        ("SavepointFailed", "credentials"),
        ("NotPrepared", "scheduled"),
        ("ScriptFailed", "spec.upgrade.compatibility"),
        ("CompatibilityUnknown", "spec.upgrade.compatibility to Enforce"),
        ("GaveUp", "restartNonce"),
    ],
)
def test_what_is_held_degrades_the_job_and_says_what_to_do(reason: str, remedy: str) -> None:
    condition = seen(Aspect.DEGRADED, recorded(held=held(reason)))

    assert (condition.status, condition.reason.value) == (Status.TRUE, reason)
    assert condition.message.startswith("It went wrong.")
    assert remedy in condition.message


def test_a_rollback_that_fails_says_that_nothing_runs_and_what_to_do() -> None:
    origin = Origin(begin=Begin.SAVEPOINT, savepoint="visits-upgrade-7", sink="Rewind")
    run = replace(RUN, origin=origin, source=origin, opened=False)
    failed = Outcome(
        id="recover-9",
        kind=Kind.RECOVER,
        result=Result.FAILED,
        generation=1,
        started=NOW,
        finished=NOW,
        message="Refused: a delta table.",
    )

    stuck = seen(Aspect.DEGRADED, recorded(run=run, held=held("RolledBack"), last=failed))
    opened = recorded(run=replace(run, opened=True), held=held("RolledBack"), last=failed)
    crashing = seen(Aspect.DEGRADED, opened)
    runs = replace(failed, result=Result.SUCCEEDED)
    back = seen(Aspect.DEGRADED, recorded(run=run, held=held("RolledBack"), last=runs))

    assert stuck.reason is crashing.reason is Reason.NOT_ROLLED_BACK
    assert "Refused: a delta table." in stuck.message
    assert "set spec.restoreFrom to it" in stuck.message
    assert "to an earlier savepoint" in crashing.message
    assert back.reason is Reason.ROLLED_BACK


def test_what_is_held_of_another_wish_says_nothing_about_this_one() -> None:
    world = recorded(held=replace(held("RolledBack"), revision="r0"))

    assert seen(Aspect.DEGRADED, world).status is Status.FALSE


def test_a_driver_that_fails_degrades_the_job() -> None:
    condition = seen(Aspect.DEGRADED, recorded(failures=3))

    assert condition.reason is Reason.DRIVER_FAILING
    assert "3 times" in condition.message


def test_an_object_that_was_refused_degrades_the_job() -> None:
    condition = seen(Aspect.DEGRADED, around=Circumstances(obstacle="exceeded quota"))

    assert (condition.reason, condition.message) == (Reason.OBJECT_REFUSED, "exceeded quota")


def test_a_wish_that_is_tried_again_later_is_progressing() -> None:
    until = NOW + timedelta(minutes=2)

    condition = seen(Aspect.PROGRESSING, recorded(held=held("SavepointFailed", until)))

    assert condition.reason is Reason.HELD_BACK
    assert "12:02:00" in condition.message


def test_a_restore_waits_for_its_savepoint() -> None:
    restore = RestoreWish(key="k", savepoint="s", ready=False, problem="It is not complete.")
    world = replace(HEALTHY, wish=replace(HEALTHY.wish, restore=restore))

    assert seen(Aspect.PROGRESSING, world).reason is Reason.WAITING_FOR_SAVEPOINT
    assert seen(Aspect.ACCEPTED, world).status is Status.TRUE


@pytest.mark.parametrize(
    ("lack", "reason"),
    [
        (Lack.NOT_FOUND, Reason.SAVEPOINT_NOT_FOUND),
        (Lack.FAILED, Reason.SAVEPOINT_FAILED),
    ],
)
def test_a_savepoint_that_stays_missing_degrades_the_job(lack: Lack, reason: Reason) -> None:
    restore = RestoreWish(key="k", savepoint="s", ready=False, problem="There is no s.", lack=lack)
    since = Waiting(restore="k", since=NOW - timedelta(seconds=59))
    world = replace(recorded(waiting=since), wish=replace(HEALTHY.wish, restore=restore))

    at_once = seen(Aspect.DEGRADED, world)
    later = seen(Aspect.DEGRADED, replace(world, now=NOW + timedelta(seconds=1)))

    assert at_once.status is Status.FALSE
    assert (later.status, later.reason) == (Status.TRUE, reason)
    assert "There is no s." in later.message


def test_code_that_cannot_read_the_state_is_not_compatible() -> None:
    assert seen(Aspect.COMPATIBLE, recorded(held=held("Incompatible"))).status is Status.FALSE


def test_code_that_has_not_committed_yet_may_be_compatible() -> None:
    assert seen(Aspect.COMPATIBLE, recorded(stable=None)).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("health", "status", "reason"),
    [
        (None, Status.UNKNOWN, Reason.NO_REPOSITORY),
        (SavepointHealth(), Status.UNKNOWN, Reason.NONE_YET),
        (
            SavepointHealth(last="a", failed="b", failure="no"),
            Status.FALSE,
            Reason.SAVEPOINT_FAILED,
        ),
        (SavepointHealth(last="a", due=NOW), Status.FALSE, Reason.LATE),
        (SavepointHealth(last="a"), Status.TRUE, Reason.TAKEN),
    ],
)
def test_savepoints_are_healthy_if_the_last_one_is(
    health: SavepointHealth | None, status: Status, reason: Reason
) -> None:
    condition = seen(Aspect.SAVEPOINT_HEALTHY, around=Circumstances(savepoints=health))

    assert (condition.status, condition.reason) == (status, reason)


def test_the_time_of_the_last_change_is_kept_while_the_status_is() -> None:
    fresh = Condition(aspect=Aspect.READY, status=Status.FALSE, reason=Reason.STARTING)
    former = replace(fresh, reason=Reason.STANDING, since=NOW - timedelta(hours=1))
    other = replace(former, status=Status.TRUE)

    assert since_when([fresh], [former], NOW)[0].since == NOW - timedelta(hours=1)
    assert since_when([fresh], [other], NOW)[0].since == NOW
    assert since_when([fresh], [], NOW)[0].since == NOW
