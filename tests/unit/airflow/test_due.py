"""Who is due, who is not and why, and when an alarm is given."""

from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.airflow.decisions.due import POLICY, Due, Skip, judge_due, newest_good, too_old
from tests.unit.airflow.world import NOW, Object, job, savepoint, time

_HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (job(deletionTimestamp=time(NOW)), "deleted"),
        (job(annotations={"sparkpoint.dev/paused": "true"}), "paused"),
        (job(spec={"savepoints": None}), "no repository"),
        (job(spec={"suspend": True}), "suspended"),
        (job(status={"phase": "Suspended"}), "suspended"),
        (job(status={"phase": "Upgrading"}), "Upgrading"),
        (job(status={"phase": "Failed"}), "Failed"),
        (job(status={"operation": {"kind": "Rescale"}}), "Rescale is under way"),
        (job(status={"phase": None}), "Pending"),
        (job(annotations={POLICY: "never"}), "policy"),
        (job(annotations={POLICY: "often"}), "'often'"),
        (job(annotations={POLICY: "0s"}), "longer than nothing"),
        (job(annotations={POLICY: "61 * * * *"}), "61"),
        (
            job(spec={"savepoints": {"repository": "s3://d/s", "schedule": "0 * * * *"}}),
            "The operator",
        ),
    ],
)
def test_a_job_is_left_out_with_a_reason(body: Object, words: str) -> None:
    verdict = judge_due(body, [], default="6h", now=NOW)

    assert isinstance(verdict, Skip)
    assert words in verdict.reason


@pytest.mark.parametrize(
    ("policy", "age", "due"),
    [
        ("6h", None, True),
        ("6h", 7 * _HOUR, True),
        ("6h", 5 * _HOUR, False),
        # The tick after one period comes a little sooner than a period after the capture.
        ("6h", 6 * _HOUR - timedelta(minutes=5), True),
        # But not a tick too soon, however long the period is.
        ("24h", 23 * _HOUR, False),
        ("24h", 24 * _HOUR - timedelta(minutes=20), True),
        ("0 */6 * * *", timedelta(minutes=1), True),
        ("0 */6 * * *", timedelta(), False),
        ("30 11 * * *", timedelta(minutes=29), False),
        ("30 11 * * *", timedelta(minutes=31), True),
    ],
)
def test_a_job_is_due_by_the_age_of_its_newest_savepoint(
    policy: str, age: timedelta | None, due: bool
) -> None:
    taken = [] if age is None else [savepoint("a", age=age)]

    for verdict in (
        judge_due(job(), taken, default=policy, now=NOW),
        judge_due(job(annotations={POLICY: policy}), taken, default="never", now=NOW),
    ):
        assert isinstance(verdict, Due) is due


@pytest.mark.parametrize(
    "body",
    [
        savepoint("a", phase="Failed"),
        savepoint("a", status={"verified": {"good": False}}),
        savepoint("a", of="other"),
        savepoint("a", spec={"existing": {"repository": "r", "job": "j", "name": "n"}}),
        savepoint("a", deletionTimestamp=time(NOW)),
        savepoint("a", age=timedelta(days=400)),
    ],
)
def test_what_is_no_good_savepoint_of_this_job_makes_it_no_fresher(body: Object) -> None:
    assert newest_good(job(), [body]) is None
    assert isinstance(judge_due(job(), [body], default="6h", now=NOW), Due)


@pytest.mark.parametrize("phase", ["Pending", "InProgress"])
@pytest.mark.parametrize("force", [False, True])
def test_a_savepoint_that_is_under_way_is_enough(phase: str, force: bool) -> None:
    verdict = judge_due(job(), [savepoint("a", phase=phase)], default="6h", now=NOW, force=force)

    assert verdict == Skip("Savepoint a is under way.")


def test_force_takes_one_of_a_job_that_is_fresh_but_not_of_one_that_is_suspended() -> None:
    fresh = judge_due(job(), [savepoint("a")], default="6h", now=NOW, force=True)
    stands = judge_due(job(spec={"suspend": True}), [], default="6h", now=NOW, force=True)

    assert isinstance(fresh, Due)
    assert isinstance(stands, Skip)


@pytest.mark.parametrize(
    ("body", "age", "alarm"),
    [
        (job(), 11 * _HOUR, False),
        (job(), 13 * _HOUR, True),
        (job(), None, True),
        (job(creationTimestamp=time(NOW - _HOUR)), None, False),
        (job(spec={"suspend": True}), 99 * _HOUR, False),
        (job(annotations={POLICY: "never"}), 99 * _HOUR, False),
        (job(annotations={POLICY: "1h"}), 3 * _HOUR, True),
        (job(annotations={POLICY: "0 * * * *"}), timedelta(minutes=59), False),
        (job(annotations={POLICY: "0 * * * *"}), timedelta(minutes=61), True),
        (job(status={"phase": "Upgrading"}), 13 * _HOUR, True),
    ],
)
def test_an_alarm_is_given_after_two_periods(
    body: Object, age: timedelta | None, alarm: bool
) -> None:
    taken: list[Any] = [] if age is None else [savepoint("a", age=age)]

    assert bool(too_old(body, taken, default="6h", now=NOW)) is alarm


def test_a_schedule_of_the_operator_that_nobody_can_read_is_told_and_stops_nothing() -> None:
    body = job(spec={"savepoints": {"repository": "s3://d/s", "schedule": "0 0 31 2 *"}})

    assert "spec.savepoints.schedule" in too_old(body, [], default="6h", now=NOW)


def test_the_alarm_names_the_job_the_savepoint_and_both_ages() -> None:
    sentence = too_old(job(), [savepoint("a", age=13 * _HOUR)], default="6h", now=NOW)

    assert sentence == "visits: its newest good savepoint a is 13h old; its policy allows 12h."
