"""The trigger follows a resource through whatever a network and an API server can do."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from sparkpoint.airflow import triggers
from sparkpoint.airflow.decisions import goals
from sparkpoint.airflow.triggers import ResourceTrigger
from tests.airflow.conftest import Ground
from tests.unit.airflow.world import job, savepoint


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Clients that a first wait would have to import, which takes seconds."""
    import_module("airflow.providers.cncf.kubernetes.hooks.kubernetes")
    import_module("kubernetes_asyncio.watch")


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggers, "_SETTLE", 0.0)
    monkeypatch.setattr(triggers, "_SHORTEST", 0.05)
    monkeypatch.setattr(triggers, "_WITHOUT_WATCH", 0.05)


def _trigger(**more: Any) -> ResourceTrigger:
    given = {
        "plural": "sparksavepoints",
        "namespace": "shop",
        "names": ["a"],
        "goal": goals.taken(checked=False),
        "kubernetes_conn_id": "kubernetes_default",
        **more,
    }
    return ResourceTrigger(**given)


def _event(trigger: ResourceTrigger) -> Any:
    async def first() -> Any:
        return await asyncio.wait_for(anext(trigger.run()), 300)

    return asyncio.run(first())


def _end(trigger: ResourceTrigger) -> str:
    """What it ends the task with."""
    return str(_event(trigger).payload)


def _on_watches(ground: Ground, *actions: Callable[[], Any]) -> None:
    """Do the first of it when a watch begins, the next when another one does, and so on."""
    left = iter(actions)
    ground.api.on_watch = lambda: next(left, _nothing)()


def _nothing() -> None:
    return


def _in_place_of_asyncio(monkeypatch: pytest.MonkeyPatch, **instead: Any) -> None:
    """For the trigger alone: its clients measure their own times."""
    monkeypatch.setattr(triggers, "asyncio", SimpleNamespace(**{**vars(asyncio), **instead}))


def _said(trigger: ResourceTrigger) -> str:
    """The sentence that it fails with; `trigger` is one that does not end the task itself."""
    payload = _event(trigger).payload
    assert payload["end"] == "failed"
    return str(payload["message"])


def _complete(ground: Ground) -> None:
    ground.api.put_status("SparkSavepoint", "a", {"phase": "Completed"})


def _looks(ground: Ground) -> list[str]:
    """What was asked, but for watches."""
    asked = [path for method, path, _ in ground.api.asked if method == "GET"]
    return [path for path in asked if "watch" not in path]


def test_it_is_rebuilt_from_what_it_says_of_itself_also_by_an_older_version() -> None:
    path, given = _trigger().serialize()

    again = ResourceTrigger(**given, something_newer=1)

    assert path == "sparkpoint.airflow.triggers.ResourceTrigger"
    assert again.serialize() == (path, given)


def test_a_change_ends_the_wait_by_a_watch_and_not_by_asking_again(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    _on_watches(ground, lambda: _complete(ground))

    assert _end(_trigger()) == "success"
    assert len(_looks(ground)) == 1


def test_a_savepoint_that_fails_fails_the_task_with_its_reason(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    told = {"phase": "Failed", "message": "The bucket is full."}
    _on_watches(ground, lambda: ground.api.put_status("SparkSavepoint", "a", told))

    assert _end(_trigger()) == "failed"
    assert _said(_trigger(end_from_trigger=False)) == "a: The bucket is full."


@pytest.mark.parametrize("kind", ["SparkSavepoint", "StatefulSparkJob"])
def test_what_is_deleted_meanwhile_fails_the_task(ground: Ground, kind: str) -> None:
    of_job = kind == "StatefulSparkJob"
    change = {"image": "runtime:2"}
    unfinished = job("a", spec=change, status={"observedGeneration": 0})
    ground.api.put(unfinished if of_job else savepoint("a", phase="InProgress"))
    _on_watches(ground, lambda: ground.api.delete(kind, "a"))
    goal = goals.changed(change) if of_job else goals.taken(checked=False)
    plural = "statefulsparkjobs" if of_job else "sparksavepoints"

    said = _said(_trigger(plural=plural, goal=goal, end_from_trigger=False))

    assert said == "a was deleted while it was waited for."


def test_a_watch_that_breaks_begins_anew(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))

    def drop() -> None:
        ground.api.dropped += 1

    _on_watches(ground, drop, lambda: _complete(ground))

    assert _end(_trigger()) == "success"


def test_a_version_that_is_too_old_begins_anew(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    ground.api.oldest = 10**9

    def remember() -> None:
        ground.api.oldest = 0
        _complete(ground)

    _on_watches(ground, _nothing, remember)

    assert _end(_trigger()) == "success"


def test_what_has_not_changed_for_long_is_watched_all_the_same(ground: Ground) -> None:
    """An API server remembers what happened of late, or since it was started."""
    ground.api.put(savepoint("a", phase="InProgress"))
    ground.api.oldest = int(ground.api.put(savepoint("b"))["metadata"]["resourceVersion"])
    _on_watches(ground, lambda: _complete(ground))

    assert _end(_trigger()) == "success"
    assert len(_looks(ground)) == 1


def test_a_server_that_forgets_at_once_is_not_asked_in_a_circle(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    ground.api.oldest = 10**9
    pauses: list[float] = []

    async def pass_quickly(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            _complete(ground)
        await asyncio.sleep(0)

    _in_place_of_asyncio(monkeypatch, sleep=pass_quickly)
    # Whoever asks without a pause is stopped.
    _on_watches(ground, *[_nothing] * 20, lambda: _complete(ground))

    assert _end(_trigger()) == "success"
    assert len(_looks(ground)) == 4


def test_without_the_right_to_watch_it_is_looked_at_now_and_then(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    ground.api.forbidden.add("WATCH")
    ground.api.before_answer = lambda _verb, _answer: _complete(ground)

    assert _end(_trigger()) == "success"


def test_without_the_right_to_look_the_task_fails(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    ground.api.forbidden.add("GET")

    assert _end(_trigger()) == "failed"


def test_a_server_that_is_away_for_ten_minutes_is_waited_for(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    token, ground.api.token = ground.api.token, "another"
    monkeypatch.setattr(triggers, "_SHORTEST", 1.0)
    pauses: list[float] = []

    async def pass_quickly(seconds: float) -> None:
        pauses.append(seconds)
        if sum(pauses) >= 600:
            ground.api.token = token
            _complete(ground)
        await asyncio.sleep(0)

    _in_place_of_asyncio(monkeypatch, sleep=pass_quickly)

    assert _end(_trigger()) == "success"
    # Asked less and less often, but never less than twice a minute.
    assert pauses[:6] == [1, 2, 4, 8, 16, 30]
    assert max(pauses) == 30


def _in(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def test_a_wait_that_takes_too_long_says_what_it_waited_for(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.api.put({**savepoint("a"), "status": {}})
    given: list[float] = []

    def over_when_it_watches(seconds: float) -> asyncio.Timeout:
        given.append(seconds)
        made, loop = asyncio.timeout(None), asyncio.get_running_loop()
        ground.api.on_watch = lambda: loop.call_soon_threadsafe(made.reschedule, loop.time())
        return made

    _in_place_of_asyncio(monkeypatch, timeout=over_when_it_watches)

    assert _end(_trigger(deadline=_in(3600))) == "failed"
    assert 3500 < given[0] <= 3600
    assert _said(_trigger(deadline=_in(3600), end_from_trigger=False)) == (
        "It took too long. Last seen: a: the operator has not looked at it yet. It was not called "
        "off: a next try finds it."
    )


def test_a_triggerer_that_comes_after_the_deadline_looks_once(ground: Ground) -> None:
    ground.api.put(savepoint("a"))

    assert _end(_trigger(deadline=_in(-3600))) == "success"


def test_it_waits_until_all_are_gone_and_another_of_the_name_does_not_count(
    ground: Ground,
) -> None:
    ground.api.put(savepoint("a"))
    ground.api.put(savepoint("b", uid="of-another"))
    _on_watches(ground, lambda: ground.api.delete("SparkSavepoint", "a"))
    goal = goals.gone({"a": "uid-of-a", "b": "uid-of-b"})

    assert _end(_trigger(names=["a", "b"], goal=goal)) == "success"


def test_what_was_freed_is_told_of_what_is_gone_as_far_as_it_was_seen(ground: Ground) -> None:
    ground.api.put(savepoint("a"))
    ground.api.put(savepoint("b", uid="of-another", status={"freedBytes": 9}))

    def go() -> None:
        ground.api.put_status("SparkSavepoint", "a", {"freedBytes": 700})
        ground.api.delete("SparkSavepoint", "a")

    _on_watches(ground, go)
    goal = goals.gone({"a": "uid-of-a", "b": "uid-of-b"})

    event = _event(_trigger(names=["a", "b"], goal=goal))

    assert event.xcoms == {"freed": {"bytes": 700, "unknown": ["b"]}}


@pytest.mark.parametrize("forgotten", [False, True])
def test_what_was_gone_before_is_asked_for_its_last_state(ground: Ground, forgotten: bool) -> None:
    version = ground.api.put(savepoint("a"))["metadata"]["resourceVersion"]
    ground.api.put_status("SparkSavepoint", "a", {"freedBytes": 700})
    ground.api.delete("SparkSavepoint", "a")
    ground.api.oldest = 10**9 if forgotten else 0
    goal = goals.gone({"a": "uid-of-a"}, since={"a": version})

    event = _event(_trigger(goal=goal))

    known, unknown = {"bytes": 700, "unknown": []}, {"bytes": 0, "unknown": ["a"]}
    assert event.xcoms == {"freed": unknown if forgotten else known}


def test_a_connection_that_is_not_there_fails_the_task(ground: Ground) -> None:
    assert _end(_trigger(kubernetes_conn_id="no_such_connection")) == "failed"
