"""The trigger follows a resource through whatever a network and an API server can do."""

import asyncio
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from sparkpoint.airflow import triggers
from sparkpoint.airflow.decisions import goals
from sparkpoint.airflow.triggers import ResourceTrigger
from tests.airflow.conftest import Ground
from tests.unit.airflow.world import savepoint


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
        return await asyncio.wait_for(anext(trigger.run()), 60)

    return asyncio.run(first())


def _end(trigger: ResourceTrigger) -> str:
    """What it ends the task with."""
    return str(_event(trigger).payload)


def _later(action: Callable[[], None], seconds: float = 0.5) -> None:
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()


def _complete(ground: Ground) -> None:
    ground.api.put_status("SparkSavepoint", "a", {"phase": "Completed"})


def test_it_is_rebuilt_from_what_it_says_of_itself_also_by_an_older_version() -> None:
    path, given = _trigger().serialize()

    again = ResourceTrigger(**given, something_newer=1)

    assert path == "sparkpoint.airflow.triggers.ResourceTrigger"
    assert again.serialize() == (path, given)


def test_a_change_ends_the_wait_by_a_watch_and_not_by_asking_again(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    _later(lambda: _complete(ground), 1.0)

    assert _end(_trigger()) == "success"

    asked = [path for method, path, _ in ground.api.asked if method == "GET"]
    assert len([path for path in asked if "watch" not in path]) == 1


def test_a_savepoint_that_fails_fails_the_task(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    _later(lambda: ground.api.put_status("SparkSavepoint", "a", {"phase": "Failed"}))

    assert _end(_trigger()) == "failed"


def test_a_savepoint_that_is_deleted_fails_the_task(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    _later(lambda: ground.api.delete("SparkSavepoint", "a"))

    assert _end(_trigger()) == "failed"


def test_a_watch_that_breaks_begins_anew(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))

    def drop() -> None:
        ground.api.dropped += 1
        _later(lambda: _complete(ground))

    _later(drop)

    assert _end(_trigger()) == "success"


def test_a_version_that_is_too_old_begins_anew(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    ground.api.oldest = 10**9

    def remember() -> None:
        ground.api.oldest = 0
        _complete(ground)

    _later(remember)

    assert _end(_trigger()) == "success"


def test_without_the_right_to_watch_it_is_looked_at_now_and_then(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    ground.api.forbidden.add("WATCH")
    _later(lambda: _complete(ground))

    assert _end(_trigger()) == "success"


def test_without_the_right_to_look_the_task_fails(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    ground.api.forbidden.add("GET")

    assert _end(_trigger()) == "failed"


def test_a_server_that_does_not_answer_is_waited_for(ground: Ground) -> None:
    ground.api.put(savepoint("a", phase="InProgress"))
    token, ground.api.token = ground.api.token, "another"

    def come_back() -> None:
        ground.api.token = token
        _complete(ground)

    _later(come_back)

    assert _end(_trigger()) == "success"


def test_it_waits_until_all_are_gone_and_another_of_the_name_does_not_count(
    ground: Ground,
) -> None:
    ground.api.put(savepoint("a"))
    ground.api.put(savepoint("b", uid="of-another"))
    _later(lambda: ground.api.delete("SparkSavepoint", "a"))
    goal = goals.gone({"a": "uid-of-a", "b": "uid-of-b"})

    assert _end(_trigger(names=["a", "b"], goal=goal)) == "success"


def test_what_was_freed_is_told_of_what_is_gone_as_far_as_it_was_seen(ground: Ground) -> None:
    ground.api.put(savepoint("a"))
    ground.api.put(savepoint("b", uid="of-another", status={"freedBytes": 9}))

    def go() -> None:
        ground.api.put_status("SparkSavepoint", "a", {"freedBytes": 700})
        ground.api.delete("SparkSavepoint", "a")

    _later(go)
    goal = goals.gone({"a": "uid-of-a", "b": "uid-of-b"})

    event = _event(_trigger(names=["a", "b"], goal=goal))

    assert event.xcoms == {"freed": {"bytes": 700, "unknown": ["b"]}}


def test_a_connection_that_is_not_there_fails_the_task(ground: Ground) -> None:
    assert _end(_trigger(kubernetes_conn_id="no_such_connection")) == "failed"
