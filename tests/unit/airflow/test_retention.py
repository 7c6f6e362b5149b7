"""A cleanup never removes the last good savepoint, one that is needed, or one that is young."""

import json
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkpoint.airflow.decisions.drills import DRILL
from sparkpoint.airflow.decisions.due import is_good, newest_good
from sparkpoint.airflow.decisions.errors import RulesError
from sparkpoint.airflow.decisions.retention import (
    Cleanup,
    JobPlan,
    describe,
    plan_job,
    rules_of,
)
from sparkpoint.airflow.work.cleanup import apply_plan, cleanup_of, results, total
from tests.unit.airflow.world import NOW, Object, cluster, job, savepoint
from tests.unit.cli.jobs.apiserver import ApiServer

_DAY = timedelta(days=1)
_GRACE = timedelta(hours=24)
_CLEANUP = Cleanup(rules=rules_of({"last": 1}), grace=_GRACE, most=1.0)


def _plan(
    savepoints: list[Object],
    *others: Object,
    cleanup: Cleanup = _CLEANUP,
    body: Object | None = None,
) -> JobPlan:
    own = body or job()
    return plan_job(own, jobs=[own, *others], savepoints=savepoints, cleanup=cleanup, now=NOW)


def _gone(plan: JobPlan) -> set[str]:
    return {each.name for each in plan.remove}


_SAVEPOINTS: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.builds(
        dict,
        age=st.integers(0, 60 * 24 * 40).map(lambda minutes: timedelta(minutes=minutes)),
        phase=st.sampled_from(["Completed", "Completed", "Failed", "InProgress", "Pending"]),
        trigger=st.sampled_from(["Periodic", "Manual", "Upgrade", "Final"]),
        damaged=st.booleans(),
        tagged=st.booleans(),
        drilled=st.sampled_from([None, True, False]),
    ),
    max_size=12,
)
_RULES = st.fixed_dictionaries(
    {},
    optional={
        "last": st.integers(0, 5),
        "hourly": st.integers(0, 5),
        "daily": st.integers(0, 5),
        "weekly": st.integers(0, 2),
        "monthly": st.integers(0, 2),
        "max_age": st.sampled_from(["1h", "3d", "30d"]),
    },
)


def _made(drawn: list[dict[str, Any]]) -> list[Object]:
    found = []
    for number, each in enumerate(drawn):
        verified = {"verified": {"good": False}} if each["damaged"] else {}
        notes = (
            {DRILL: json.dumps({"good": each["drilled"]})} if each["drilled"] is not None else {}
        )
        found.append(
            savepoint(
                f"s{number}",
                age=each["age"],
                phase=each["phase"],
                trigger=each["trigger"],
                status=verified if each["phase"] == "Completed" else {},
                spec={"tags": ["keep"]} if each["tagged"] else {},
                annotations=notes,
            )
        )
    return found


@given(
    drawn=_SAVEPOINTS,
    rules=_RULES,
    manual=st.booleans(),
    named=st.integers(0, 11),
    most=st.sampled_from([0.5, 1.0]),
)
def test_whatever_the_rules_say_what_must_stay_stays(
    drawn: list[dict[str, Any]], rules: dict[str, Any], manual: bool, named: int, most: float
) -> None:
    made = _made(drawn)
    fork = job("fork", spec={"restoreFrom": {"savepoint": f"s{named}", "sink": "Fork"}})
    cleanup = Cleanup(rules=rules_of(rules, include_manual=manual), grace=_GRACE, most=most)

    plan = _plan(made, fork, cleanup=cleanup)

    gone = _gone(plan)
    by_name = {body["metadata"]["name"]: body for body in made}
    newest = newest_good(job(), made)
    assert newest is None or newest["metadata"]["name"] not in gone
    assert f"s{named}" not in gone
    assert {kept.name for kept in plan.keep} | gone == set(by_name)
    for name in gone:
        body = by_name[name]
        assert body["status"]["phase"] in ("Completed", "Failed")
        assert not body["spec"].get("tags")
        assert drawn[int(name[1:])]["age"] >= _GRACE
        assert manual or body["spec"]["trigger"] != "Manual"
    good = [body for body in made if is_good(body)]
    left = [body for body in good if body["metadata"]["name"] not in gone]
    assert not good or left
    if not plan.refused:
        assert len(good) - len(left) <= most * len(good)


@given(drawn=_SAVEPOINTS, rules=_RULES)
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(
    drawn: list[dict[str, Any]], rules: dict[str, Any]
) -> None:
    cleanup = Cleanup(rules=rules_of(rules), grace=_GRACE, most=1.0)
    made = _made(drawn)
    gone = _gone(_plan(made, cleanup=cleanup))

    left = [body for body in made if body["metadata"]["name"] not in gone]

    assert not _gone(_plan(left, cleanup=cleanup))


@pytest.mark.parametrize(
    ("older", "status", "words"),
    [
        (savepoint("old", age=3 * _DAY, annotations={DRILL: '{"good": true}'}), {}, "drill"),
        (
            savepoint("old", age=3 * _DAY, annotations={"sparkpoint.dev/paused": "true"}),
            {},
            "paused",
        ),
        (savepoint("old", age=400 * _DAY), {}, "earlier job"),
        (savepoint("old", age=_DAY / 2), {}, "grace"),
        (savepoint("old", age=3 * _DAY), {"operation": {"savepoint": "old"}}, "used by visits"),
        (savepoint("old", age=3 * _DAY), {"restoredFrom": {"name": "old"}}, "used by visits"),
        (savepoint("old", age=3 * _DAY, spec={"retention": {"keepForever": True}}), {}, "Forever"),
    ],
)
def test_an_old_one_stays_for_a_reason(older: Object, status: Object, words: str) -> None:
    plan = _plan([savepoint("new"), older], body=job(status=status))

    assert not _gone(plan)
    (reasons,) = [kept.reasons for kept in plan.keep if kept.name == "old"]
    assert any(words in reason for reason in reasons)


def test_the_newest_that_no_drill_has_refuted_stays_beside_the_newest() -> None:
    refuted = savepoint("refuted", age=2 * _DAY, annotations={DRILL: '{"good": false}'})

    plan = _plan([refuted, savepoint("before", age=3 * _DAY), savepoint("old", age=4 * _DAY)])

    assert _gone(plan) == {"old"}


def test_one_that_is_being_checked_stays() -> None:
    existing = {"existing": {"repository": "r", "job": "visits", "name": "old"}}
    check = savepoint("check", phase="InProgress", of="visits", spec=existing)

    plan = _plan([savepoint("new"), savepoint("old", age=3 * _DAY), check])

    assert not _gone(plan)


def test_a_plan_that_removes_too_much_is_refused() -> None:
    cleanup = Cleanup(rules=rules_of({"last": 1}), grace=_GRACE, most=0.5)
    made = [savepoint(f"s{number}", age=(2 + number) * _DAY) for number in range(4)]

    plan = _plan(made, cleanup=cleanup)

    assert "3 of 4" in plan.refused
    assert "NOTHING IS REMOVED" in describe(plan)[0]


def test_nothing_is_removed_while_a_clock_is_wrong() -> None:
    plan = _plan([savepoint("tomorrow", age=-_DAY), savepoint("old", age=3 * _DAY)])

    assert "future" in plan.refused


@pytest.mark.parametrize(
    "params", [{"last": -1}, {"max_age": "long"}, {"max_fraction": 2}, {"grace": "soon"}]
)
def test_rules_that_make_no_sense_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(RulesError):
        cleanup_of(params)


def _api(*bodies: Object) -> ApiServer:
    api = ApiServer()
    for body in (job(), *bodies):
        api.put(body)
    return api


def _shown(api: ApiServer) -> dict[str, Any]:
    bodies = list(api.objects.values())
    made = [body for body in bodies if body["kind"] == "SparkSavepoint"]
    return _plan(made).document()


def _names(api: ApiServer) -> set[str]:
    return {key[2] for key in api.objects if key[0] == "sparksavepoints"}


def _apply(api: ApiServer, shown: dict[str, Any]) -> Any:
    return apply_plan(lambda _: cluster(api), shown, cleanup=_CLEANUP, data=True, now=NOW)


def test_what_was_shown_is_removed_with_its_data_and_twice_is_once() -> None:
    api = _api(savepoint("new"), savepoint("old", age=3 * _DAY))
    shown = _shown(api)

    done, again = _apply(api, shown), _apply(api, shown)

    assert done.asked == {"old": "uid-of-old"}
    assert set(done.since) == {"old"}
    assert (again.asked, again.left) == ({}, {})
    assert _names(api) == {"new"}
    patches = [body["spec"] for verb, _, body in api.asked if verb == "PATCH"]
    assert patches == [{"onDelete": "Delete"}]


def test_a_second_try_waits_for_what_the_first_has_asked_for() -> None:
    api = _api(savepoint("new"), savepoint("old", age=3 * _DAY))
    api.holds_deleted = True
    shown = _shown(api)

    done, again = _apply(api, shown), _apply(api, shown)

    assert again.asked == done.asked == {"old": "uid-of-old"}
    assert again.left == {}


def test_what_is_needed_by_now_stays_although_it_was_shown() -> None:
    api = _api(savepoint("new"), savepoint("old", age=3 * _DAY))
    shown = _shown(api)
    api.put(job("fork", spec={"restoreFrom": {"savepoint": "old", "sink": "Fork"}}))

    done = _apply(api, shown)

    assert "used by fork" in done.left["old"]
    assert _names(api) == {"new", "old"}


def test_another_one_of_the_same_name_stays() -> None:
    api = _api(savepoint("new"), savepoint("old", age=3 * _DAY))
    shown = _shown(api)
    api.put(savepoint("old", age=3 * _DAY, uid="another"))

    done = _apply(api, shown)

    assert not done.asked
    assert _names(api) == {"new", "old"}


def test_one_that_somebody_changes_meanwhile_is_looked_at_again() -> None:
    api = _api(savepoint("new"), savepoint("old", age=3 * _DAY))
    shown = _shown(api)
    tagged = savepoint("old", age=3 * _DAY, spec={"tags": ["keep"]})

    def tag(_: Object) -> None:
        api.before_patch = lambda _: None
        api.put(tagged, what="MODIFIED")

    api.before_patch = tag
    done = _apply(api, shown)

    assert done.left == {"old": "tag keep"}
    assert _names(api) == {"new", "old"}


@pytest.mark.parametrize("on_delete", ["Delete", "Retain"])
def test_one_that_stays_after_all_keeps_its_data_when_it_is_deleted_later(on_delete: str) -> None:
    old = savepoint("old", age=3 * _DAY, spec={"onDelete": on_delete})
    api = _api(savepoint("new"), old)
    shown, answer = _shown(api), api.answer

    def tag_at_the_last_moment(method: str, path: str, body: Any) -> Object:
        if method == "DELETE":
            tagged = api.objects["sparksavepoints", "shop", "old"]
            tagged["spec"]["tags"] = ["keep"]
            api.put(tagged, what="MODIFIED")
        return answer(method, path, body)

    api.answer = tag_at_the_last_moment  # type: ignore[method-assign]
    done = _apply(api, shown)

    assert done.left == {"old": "tag keep"}
    assert api.objects["sparksavepoints", "shop", "old"]["spec"]["onDelete"] == on_delete


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("moment", range(7))
def test_two_cleanups_at_once_remove_each_once_and_no_other(moment: int, held: bool) -> None:
    old = [savepoint(f"old-{age}", age=age * _DAY) for age in (3, 4)]
    api = _api(savepoint("new"), *old)
    api.holds_deleted = held
    shown, answer, asked = _shown(api), api.answer, count()
    others: list[Any] = []

    def overtaken(method: str, path: str, body: Any) -> Object:
        if next(asked) == moment:
            others.append(_apply(api, shown))
        return answer(method, path, body)

    api.answer = overtaken  # type: ignore[method-assign]
    done = _apply(api, shown)

    [other] = others
    assert {*done.asked, *other.asked} == {"old-3", "old-4"}
    going = {key[2] for key, body in api.objects.items() if "deletionTimestamp" in body["metadata"]}
    assert _names(api) - going == {"new"}
    # Neither takes back what the other one is about to do.
    for name in going:
        assert api.objects["sparksavepoints", "shop", name]["spec"]["onDelete"] == "Delete"


@pytest.mark.parametrize("several", [True, False])
def test_a_report_adds_up_what_tasks_left_in_whatever_form(several: bool) -> None:
    left = {"b": "It is young."}
    applied = {"namespace": "shop", "asked": {"a": "1"}, "left": left, "new_bytes": 10}
    freed = '{"bytes": 7, "unknown": ["c"]}'

    done = total(results([applied] if several else applied), results([freed] if several else freed))

    assert done == {
        "removed": ["shop/a"],
        "left": {"b": "It is young."},
        "new_bytes": 10,
        "freed_bytes": 7,
        "unknown": ["c"],
    }
    assert total(results(None), results([None]))["removed"] == []
