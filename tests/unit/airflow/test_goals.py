"""Whether what a task waits for has come, will come, or will not."""

from typing import Any

import pytest

from sparkpoint.airflow.decisions import goals
from sparkpoint.airflow.decisions.goals import End, judge, progress
from tests.unit.airflow.world import NOW, Object, job, savepoint, time

_CHANGE = goals.changed({"image": "runtime:2"})


def _degraded(reason: str) -> list[Object]:
    return [{"type": "Degraded", "status": "True", "reason": reason, "message": "Why."}]


@pytest.mark.parametrize(
    ("goal", "body", "end"),
    [
        (goals.taken(checked=False), savepoint("a"), End.REACHED),
        (goals.taken(checked=False), savepoint("a", phase="InProgress"), End.WAITING),
        (goals.taken(checked=False), savepoint("a", phase="Failed"), End.FAILED),
        (goals.taken(checked=False), None, End.FAILED),
        (goals.taken(checked=True), savepoint("a"), End.WAITING),
        (
            goals.taken(checked=True),
            savepoint("a", status={"verified": {"good": True}}),
            End.REACHED,
        ),
        (
            goals.taken(checked=True),
            savepoint("a", status={"verified": {"good": False}}),
            End.FAILED,
        ),
        (
            goals.taken(checked=False),
            savepoint("a", phase="Pending", deletionTimestamp=time(NOW)),
            End.FAILED,
        ),
        (_CHANGE, job(spec={"image": "runtime:2"}), End.REACHED),
        (_CHANGE, job(spec={"image": "runtime:2"}, generation=2), End.WAITING),
        (_CHANGE, job(spec={"image": "runtime:3"}), End.FAILED),
        (
            _CHANGE,
            job(spec={"image": "runtime:2"}, status={"conditions": _degraded("RolledBack")}),
            End.FAILED,
        ),
        (
            _CHANGE,
            job(spec={"image": "runtime:2"}, status={"operation": {"kind": "Upgrade"}}),
            End.WAITING,
        ),
        (goals.runs(), job(), End.REACHED),
        (goals.runs(), job(status={"phase": "Failed", "conditions": []}), End.FAILED),
        (goals.holds("Ready"), job(), End.REACHED),
        (goals.holds("Degraded"), job(), End.WAITING),
        (goals.gone({"a": "uid-of-a"}), None, End.REACHED),
        (goals.gone({"a": "uid-of-a"}), savepoint("a"), End.WAITING),
        (goals.gone({"a": "uid-of-a"}), savepoint("a", uid="another"), End.REACHED),
    ],
)
def test_how_a_wait_stands(goal: dict[str, Any], body: Object | None, end: End) -> None:
    outcome = judge(goal, "a", body)

    assert outcome.end is end
    assert bool(outcome.message) is (end is End.FAILED)


def test_progress_says_how_far_it_is_and_what_is_waited_for() -> None:
    busy = {"operation": {"kind": "Upgrade", "phase": "Launch", "message": "Waiting for a node."}}

    assert progress(job(status=busy)) == "visits: Running, Upgrade/Launch, Waiting for a node."
    assert "not looked at it" in progress({**savepoint("a"), "status": {}})


def test_what_is_gone_leaves_what_was_freed_as_far_as_it_is_known() -> None:
    last = {"a": savepoint("a", status={"freedBytes": 0}), "b": savepoint("b"), "c": None}

    found = goals.left_behind(goals.gone({"a": "1", "b": "2", "c": "3"}), last)

    assert found == {"freed": {"bytes": 0, "unknown": ["b", "c"]}}
    assert goals.left_behind(goals.runs(), last) == {}
