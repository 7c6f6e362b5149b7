"""Schedules and retention: what is due, and what has had its time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sparkpoint.api.cron import Cron
from sparkpoint.api.policies import Retention, RetentionOverrides, RetentionRule
from sparkpoint.api.scalars import Duration
from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import Key
from sparkpoint.controller.retention import expired
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
        "metadata": {"name": f"{trigger.lower()}-{age}", "namespace": "shop"},
        "spec": {"jobRef": {"name": "visits"}, "trigger": trigger, **spec},
        "status": {"phase": phase, "completedAt": moment.isoformat()},
    }


def names(found: list[Object]) -> list[str]:
    return sorted(metadata(body)["name"] for body in found)


def gone(savepoints: list[Object], rules: Retention, *used: str) -> list[str]:
    return names(expired(JOB, savepoints, rules, used=frozenset(used), now=NOW))


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
