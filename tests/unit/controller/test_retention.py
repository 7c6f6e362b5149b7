"""Schedules and retention: what is due, and what has had its time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sparkpoint.api.cron import Cron
from sparkpoint.api.policies import Retention, RetentionOverrides, RetentionRule
from sparkpoint.api.scalars import Duration
from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import Key
from sparkpoint.controller.retention import Verdict, judge
from sparkpoint.controller.schedules import (
    late_since,
    newest_due,
    periodic_name,
    periodic_times,
)

NOW = datetime(2026, 11, 16, 12, 5, tzinfo=UTC)
JOB = Key("shop", "visits")


def savepoint(
    age: int, *, trigger: str = "Periodic", phase: str = "Completed", **spec: Any
) -> Object:
    moment = NOW - timedelta(hours=age)
    return {
        "metadata": {
            "name": f"{trigger.lower()}-{age}",
            "namespace": "shop",
            "creationTimestamp": moment.isoformat(),
        },
        "spec": {"jobRef": {"name": "visits"}, "trigger": trigger, **spec},
        "status": {"phase": phase, "completedAt": moment.isoformat()},
    }


def names(found: list[Object]) -> list[str]:
    return sorted(metadata(body)["name"] for body in found)


def verdicts(savepoints: list[Object], rules: Retention, *used: str) -> dict[str, Verdict]:
    users = dict.fromkeys(used, ("fork",))
    found = judge(JOB, savepoints, rules, users=users, now=NOW)
    return {metadata(verdict.savepoint)["name"]: verdict for verdict in found}


def gone(savepoints: list[Object], rules: Retention, *used: str) -> list[str]:
    found = verdicts(savepoints, rules, *used).values()
    return names([verdict.savepoint for verdict in found if not verdict.kept_because])


def why(savepoints: list[Object], rules: Retention, *used: str) -> dict[str, tuple[str, ...]]:
    found = verdicts(savepoints, rules, *used)
    return {name: verdict.kept_because for name, verdict in found.items() if verdict.kept_because}


def test_the_last_ones_stay() -> None:
    found = gone([savepoint(age) for age in (1, 2, 3, 4)], Retention(last=2))

    assert found == ["periodic-3", "periodic-4"]


def test_what_a_job_may_go_back_to_stays() -> None:
    found = gone([savepoint(age) for age in (1, 2, 3)], Retention(last=1), "periodic-3")

    assert found == ["periodic-2"]


def test_what_has_a_tag_stays() -> None:
    savepoints = [savepoint(1), savepoint(2, tags=["gold"]), savepoint(3)]

    assert gone(savepoints, Retention(last=1)) == ["periodic-3"]


def test_what_a_person_asked_for_stays_unless_a_rule_says_otherwise() -> None:
    savepoints = [savepoint(1), savepoint(2, trigger="Manual"), savepoint(3, trigger="Final")]
    rule = RetentionOverrides(manual=RetentionRule(max_age=Duration("1h")))

    assert gone(savepoints, Retention(last=1)) == []
    # A rule keeps the newest of its own, whatever its age.
    older = [*savepoints, savepoint(9, trigger="Manual")]
    assert gone(older, Retention(last=1, overrides=rule)) == ["manual-9"]


def test_savepoints_of_the_schedule_and_of_operations_share_a_rule() -> None:
    savepoints = [savepoint(1), savepoint(2, trigger="Upgrade"), savepoint(3), savepoint(4)]

    assert gone(savepoints, Retention(last=2)) == ["periodic-3", "periodic-4"]


def test_the_newest_of_all_stays_whatever_the_rules_say() -> None:
    rules = Retention(max_age=Duration("1h"))

    assert gone([savepoint(30), savepoint(20)], rules) == ["periodic-30"]
    assert gone([savepoint(30, retention={"ttl": "1h"})], rules) == []


@pytest.mark.parametrize(
    ("retention", "goes"),
    [
        ({"ttl": "1h"}, True),
        ({"ttl": "30d"}, False),
        ({"keepUntil": "2026-11-16T12:00:00Z"}, True),
        ({"keepUntil": "2027-01-01T00:00:00Z"}, False),
        ({"keepForever": True}, False),
    ],
)
def test_a_savepoint_may_say_itself_how_long_it_stays(
    retention: dict[str, Any], goes: bool
) -> None:
    savepoints = [savepoint(1), savepoint(2), savepoint(5, retention=retention)]

    assert gone(savepoints, Retention(last=1)) == sorted(
        ["periodic-2", *(["periodic-5"] if goes else [])]
    )


def test_every_reason_to_keep_one_is_told() -> None:
    savepoints = [
        savepoint(1),
        savepoint(2, tags=["gold", "blue"]),
        savepoint(30),
        savepoint(40, trigger="Manual"),
        savepoint(50, retention={"keepForever": True}),
        savepoint(60),
        savepoint(70),
    ]

    assert why(savepoints, Retention(last=2, daily=2), "periodic-60") == {
        "periodic-1": ("newest", "newest of its rule", "last", "daily"),
        "periodic-2": ("tag gold", "tag blue", "last"),
        "periodic-30": ("daily",),
        "manual-40": ("trigger Manual",),
        "periodic-50": ("keepForever",),
        "periodic-60": ("used by fork",),
    }


def test_the_end_of_a_savepoint_is_told_where_it_is_known() -> None:
    savepoints = [
        savepoint(1),
        savepoint(2),
        savepoint(3, tags=["gold"]),
        savepoint(4, retention={"ttl": "1d"}),
        savepoint(5, retention={"keepUntil": "2027-01-01T00:00:00Z"}),
        savepoint(6, trigger="Manual"),
    ]

    found = verdicts(savepoints, Retention(last=3, max_age=Duration("10h")))

    assert {name: verdict.expires for name, verdict in found.items()} == {
        "periodic-1": None,
        "periodic-2": NOW + timedelta(hours=8),
        "periodic-3": None,
        "periodic-4": NOW + timedelta(hours=20),
        "periodic-5": datetime(2027, 1, 1, tzinfo=UTC),
        "manual-6": None,
    }


def test_the_newest_of_the_schedule_stays_so_that_it_is_not_taken_again() -> None:
    scheduled = savepoint(2)
    scheduled["metadata"]["name"] = "visits-periodic-202611161000"

    found = why([savepoint(1, trigger="Upgrade"), scheduled], Retention(last=1))

    assert found["visits-periodic-202611161000"] == ("newest of the schedule",)


def test_failures_that_nobody_asked_for_stay_for_a_day() -> None:
    savepoints = [
        savepoint(1),
        savepoint(2, phase="Failed"),
        savepoint(25, phase="Failed"),
        savepoint(26, phase="Failed", trigger="Upgrade"),
        savepoint(27, phase="Failed", trigger="Manual"),
        savepoint(28, phase="Failed", tags=["look at this"]),
        savepoint(29, phase="Failed", retention={"keepForever": True}),
    ]

    assert gone(savepoints, Retention(last=1)) == ["periodic-25", "upgrade-26"]
    failed = verdicts(savepoints, Retention(last=1))["periodic-2"]
    assert failed.kept_because == ("failed lately",)
    assert failed.expires == NOW + timedelta(hours=22)
    assert failed.failed


def test_of_many_failures_the_last_ones_stay() -> None:
    savepoints = [savepoint(0), *(savepoint(age, phase="Failed") for age in range(1, 15))]

    assert gone(savepoints, Retention(last=1)) == [f"periodic-{age}" for age in (11, 12, 13, 14)]


def test_the_failure_that_the_condition_speaks_of_stays_until_a_savepoint_succeeds() -> None:
    savepoints = [savepoint(100), savepoint(50, phase="Failed"), savepoint(60, phase="Failed")]

    assert gone(savepoints, Retention(last=1)) == ["periodic-60"]


@pytest.mark.parametrize("phase", ["Pending", "InProgress", "Failed"])
def test_what_is_not_complete_is_not_counted(phase: str) -> None:
    savepoints = [savepoint(1, phase=phase), savepoint(2), savepoint(3)]

    assert gone(savepoints, Retention(last=1)) == ["periodic-3"]


def test_what_is_on_its_way_out_is_not_counted() -> None:
    leaving = savepoint(3)
    leaving["metadata"]["deletionTimestamp"] = "2026-11-16T12:00:00Z"

    assert gone([savepoint(1), savepoint(2), leaving], Retention(last=2)) == []


@pytest.mark.parametrize(
    ("schedule", "due"),
    [
        ("0 * * * *", datetime(2026, 11, 16, 12, 0, tzinfo=UTC)),
        ("*/5 * * * *", datetime(2026, 11, 16, 12, 5, tzinfo=UTC)),
        ("0 3 * * *", datetime(2026, 11, 16, 3, 0, tzinfo=UTC)),
        ("0 3 1 * *", datetime(2026, 11, 1, 3, 0, tzinfo=UTC)),
        ("0 0 29 2 *", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_the_newest_time_that_is_due_is_found(schedule: str, due: datetime) -> None:
    assert newest_due(Cron(schedule), NOW) == due


def test_a_time_of_the_schedule_can_be_read_from_the_name() -> None:
    moment = datetime(2026, 11, 16, 3, 0, tzinfo=UTC)
    bodies = [
        {"metadata": {"name": name}}
        for name in (periodic_name("visits", moment), "visits-periodic-x", "visits-upgrade-2")
    ]

    assert periodic_times("visits", bodies) == [moment]


def test_a_schedule_is_late_if_its_savepoint_is_not_there_in_time() -> None:
    schedule, born = Cron("0 * * * *"), NOW - timedelta(days=1)
    due = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)

    early = late_since(schedule, NOW, running_since=born, last=due - timedelta(hours=1))
    late = late_since(
        schedule, NOW + timedelta(minutes=15), running_since=born, last=due - timedelta(hours=1)
    )

    assert (early, late) == (None, due)
    assert late_since(schedule, NOW, running_since=None, last=None) is None
