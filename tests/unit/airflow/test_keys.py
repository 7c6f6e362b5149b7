"""However often a run asks, it has one savepoint: retries, clears, double runs, crashes."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sparkpoint.airflow.decisions.due import Skip
from sparkpoint.airflow.decisions.keys import (
    ATTEMPT,
    RUN_KEY,
    Adopt,
    Create,
    attempt_name,
    choose,
    run_key,
)
from sparkpoint.airflow.work.savepoints import Wanted, ensure_savepoint, made_by
from tests.unit.airflow.world import NOW, Object, cluster, job, savepoint
from tests.unit.cli.jobs.apiserver import ApiServer

_KEY = run_key(namespace="shop", job="visits", dag="d", task="savepoint", run="r")
_WANTED = Wanted(job="visits", key=_KEY, run="d r")


def _attempt(number: int, phase: str, **about: Any) -> Object:
    labels = {RUN_KEY: _KEY, ATTEMPT: str(number)}
    return savepoint(f"visits-{_KEY}-{number}", phase=phase, labels=labels, **about)


def test_nothing_was_made_yet() -> None:
    assert choose([]) == Create(0)


def test_what_is_complete_or_under_way_is_adopted() -> None:
    for phase in ("Pending", "InProgress", "Completed"):
        made = _attempt(0, phase)
        assert choose([made]) == Adopt(made)


def test_what_failed_is_followed_by_the_next_attempt() -> None:
    assert choose([_attempt(0, "Failed"), _attempt(1, "Failed")]) == Create(2)


def test_what_is_damaged_or_going_does_not_count() -> None:
    damaged = _attempt(0, "Completed")
    damaged["status"]["verified"] = {"good": False}
    going = _attempt(1, "Completed", deletionTimestamp="2026-11-17T12:00:00Z")

    assert choose([damaged, going]) == Create(2)


def test_what_is_complete_comes_before_what_is_under_way() -> None:
    done = _attempt(0, "Completed")
    assert choose([_attempt(1, "Pending"), done]) == Adopt(done)


def test_a_key_differs_with_each_of_its_parts() -> None:
    parts = {"namespace": "n", "job": "j", "dag": "d", "task": "t", "run": "r"}
    others = [run_key(**{**parts, part: "x"}) for part in parts]

    assert len({run_key(**parts), *others}) == len(parts) + 1


@given(
    job=st.from_regex(r"[a-z]([a-z0-9.-]{0,38}[a-z0-9])?", fullmatch=True), n=st.integers(0, 999)
)
def test_a_name_has_room_in_a_label(job: str, n: int) -> None:
    name = attempt_name(job, _KEY, n)

    assert len(name) <= 63
    assert name.endswith(f"-{_KEY}-{n}")


def _api() -> ApiServer:
    api = ApiServer()
    api.put(job())
    return api


def _living(api: ApiServer) -> list[Object]:
    return [
        body
        for (plural, _, _), body in api.objects.items()
        if plural == "sparksavepoints" and (body.get("status") or {}).get("phase") != "Failed"
    ]


@given(
    st.lists(
        st.sampled_from(["ask", "ask twice at once", "fail", "complete", "delete"]), max_size=12
    )
)
def test_a_run_never_has_two_savepoints(events: list[str]) -> None:
    api = _api()
    world = cluster(api)
    lost = 0

    for event in events:
        living = _living(api)
        if event == "ask":
            ensure_savepoint(world, _WANTED, now=NOW)
        elif event == "ask twice at once":
            _ask_at_once(api)
        elif event == "delete" and living:
            api.delete("SparkSavepoint", living[0]["metadata"]["name"])
            lost += 1
        elif living and "status" not in living[0]:
            phase = "Failed" if event == "fail" else "Completed"
            api.put_status("SparkSavepoint", living[0]["metadata"]["name"], {"phase": phase})
            lost += event == "fail"
        assert len(_living(api)) <= 1

    created = [each for each in api.asked if each[0] == "POST"]
    answered = {each[2]["metadata"]["name"] for each in created}
    assert len(answered) <= lost + 1


def _ask_at_once(api: ApiServer) -> None:
    """A second worker asks after the first has looked, and before it has created."""
    first = cluster(api)
    look = first.list

    def look_and_be_overtaken(*args: object, **kwargs: object) -> list[Object]:
        found = look(*args, **kwargs)  # type: ignore[arg-type]
        first.list = look  # type: ignore[method-assign]
        ensure_savepoint(cluster(api), _WANTED, now=NOW)
        return found

    first.list = look_and_be_overtaken  # type: ignore[method-assign]
    ensure_savepoint(first, _WANTED, now=NOW)


def test_another_run_makes_its_own() -> None:
    api = _api()
    other = Wanted(job="visits", key="0" * 16, run="d other")

    ensure_savepoint(cluster(api), _WANTED, now=NOW)
    ensure_savepoint(cluster(api), other, now=NOW)

    assert len(made_by(cluster(api), _KEY)) == len(made_by(cluster(api), "0" * 16)) == 1


def test_a_run_that_comes_late_finds_that_somebody_else_was_quicker() -> None:
    api = _api()
    api.put(savepoint("somebodys"))
    late = Wanted(job="visits", key=_KEY, run="r", fresh_since=NOW - timedelta(hours=1))

    found = ensure_savepoint(cluster(api), late, now=NOW)

    assert isinstance(found, Skip)
    assert "somebodys" in found.reason
    assert not made_by(cluster(api), _KEY)


def test_the_savepoint_is_what_the_job_keeps_and_carries_the_run() -> None:
    api = _api()

    made = ensure_savepoint(cluster(api), _WANTED, now=NOW)

    assert not isinstance(made, Skip)
    assert made["spec"] == {
        "jobRef": {"name": "visits"},
        "trigger": "Periodic",
        "onDelete": "Retain",
    }
    assert made["metadata"]["labels"]["sparkpoint.dev/job"] == "visits"
    assert made["metadata"]["annotations"] == {"airflow.sparkpoint.dev/run": "d r"}
