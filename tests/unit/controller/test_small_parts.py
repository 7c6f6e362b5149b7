"""Caches, wake-ups, events, passes, pages and logs."""

import asyncio
import io
import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import EVENTS, Object
from sparkpoint.controller.errors import (
    ConflictError,
    ForbiddenError,
    RecordError,
    ThrottledError,
    UnavailableError,
)
from sparkpoint.controller.events import Events
from sparkpoint.controller.keys import Key
from sparkpoint.controller.logs import configure_logs
from sparkpoint.controller.metrics import Metrics
from sparkpoint.controller.passes import Gate, Passes, Requeue, Throttling
from sparkpoint.lifecycle.actions import Event
from tests.unit.controller.fakecluster import FakeCluster

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
KEY = Key("shop", "visits")


def version(number: int, uid: str = "u1") -> Object:
    return {"metadata": {"name": "a", "uid": uid, "resourceVersion": str(number)}}


def test_a_cache_never_goes_back() -> None:
    cache = ObjectCache()

    cache.put(KEY, version(10))
    cache.put(KEY, version(9))

    assert cache.get(KEY, "a") == version(10)


def test_a_cache_forgets_what_was_deleted() -> None:
    cache = ObjectCache()
    cache.put(KEY, version(10))

    cache.remove(KEY, version(11))

    assert cache.of(KEY) == ()
    assert list(cache.owners()) == []


def test_the_end_of_an_object_does_not_touch_its_namesake() -> None:
    cache = ObjectCache()
    cache.put(KEY, version(12, uid="u2"))

    cache.remove(KEY, version(11, uid="u1"))

    assert cache.get(KEY, "a") == version(12, uid="u2")


def test_what_a_cache_has_of_an_owner_is_the_same_until_something_changes() -> None:
    cache = ObjectCache()
    cache.put(KEY, version(10))
    first = cache.of(KEY)

    cache.put(KEY, version(9))
    second = cache.of(KEY)
    cache.put(KEY, version(11))
    third = cache.of(KEY)
    cache.drop(KEY, "a")

    assert second is first
    assert third == (version(11),)
    assert cache.of(KEY) == ()


def test_words_that_objects_have_in_common_are_there_once() -> None:
    cache = ObjectCache()

    def parsed(name: str) -> Object:
        about = {"name": name, "resourceVersion": "1", "labels": {"team": "shop and garden"}}
        body: Object = json.loads(json.dumps({"metadata": about, "args": [9 * "--long-option "]}))
        return body

    for name in ("a", "b"):
        cache.put(KEY, parsed(name))

    one, other = cache.of(KEY)
    assert (one, other) == (parsed("a"), parsed("b"))
    assert one["metadata"]["labels"]["team"] is other["metadata"]["labels"]["team"]


@pytest.mark.parametrize("field", ["resourceVersion", "uid", "completedAt", "lastTransitionTime"])
def test_what_no_other_version_says_again_is_not_kept_as_a_word(field: str) -> None:
    cache = ObjectCache()
    for name in ("a", "b"):
        text = json.dumps({"metadata": {"name": name}, "status": [{field: "2026-11-17T10:00:00Z"}]})
        cache.put(KEY, json.loads(text))

    one, other = cache.of(KEY)

    assert one["status"][0][field] is not other["status"][0][field]


JOB: Object = {
    "apiVersion": "sparkpoint.dev/v1alpha1",
    "kind": "StatefulSparkJob",
    "metadata": {"name": "visits", "namespace": "shop", "uid": "u1"},
}
TOLD = Event(reason="Upgrade", message="Upgrading.", warning=True)


def tell(cluster: FakeCluster, *occasions: str) -> None:
    """Each time another operator, that knows nothing of the one before."""
    for occasion in occasions:
        asyncio.run(Events(cluster).tell(JOB, TOLD, occasion=occasion, now=NOW))


def test_the_same_occasion_is_told_once() -> None:
    cluster = FakeCluster(lambda: NOW)

    tell(cluster, "operation 1", "operation 1", "operation 2")

    found = cluster.all(EVENTS, "shop")
    assert len(found) == 2
    assert found[0]["type"] == "Warning"
    assert found[0]["involvedObject"]["uid"] == "u1"


def test_what_was_told_is_not_sent_again() -> None:
    cluster = FakeCluster(lambda: NOW)
    events = Events(cluster)

    for _ in range(3):
        asyncio.run(events.tell(JOB, TOLD, occasion="1", now=NOW))

    assert len(cluster.calls) == 1


def test_what_fails_over_and_over_is_told_a_few_times_an_hour() -> None:
    cluster = FakeCluster(lambda: NOW)
    events = Events(cluster)

    def tell_at(minute: int, about: Object = JOB) -> None:
        moment = NOW + timedelta(minutes=minute)
        asyncio.run(events.tell(about, TOLD, occasion=f"operation {minute}", now=moment))

    for minute in range(30):
        tell_at(minute)
    assert len(cluster.all(EVENTS, "shop")) == 3
    tell_at(61)
    assert len(cluster.all(EVENTS, "shop")) == 4
    tell_at(61, {**JOB, "metadata": {**JOB["metadata"], "generation": 2}})

    # Another spec is another matter; the same occasion is still the same Event.
    assert len(cluster.all(EVENTS, "shop")) == 4
    tell_at(62, {**JOB, "metadata": {**JOB["metadata"], "generation": 2}})
    assert len(cluster.all(EVENTS, "shop")) == 5


def test_an_event_that_is_not_let_through_holds_nothing_up() -> None:
    cluster = FakeCluster(lambda: NOW)
    cluster.refuse = lambda verb, what: ForbiddenError("no")

    tell(cluster, "1")


def test_an_event_waits_for_an_api_server_that_is_away() -> None:
    cluster = FakeCluster(lambda: NOW)
    cluster.refuse = lambda verb, what: UnavailableError("down")

    with pytest.raises(UnavailableError):
        tell(cluster, "1")


def run_pass(passes: Passes, error: Exception | None) -> Requeue:
    async def work(_: Key) -> Requeue:
        if error is not None:
            raise error
        return Requeue(seconds=7)

    return asyncio.run(passes.run(KEY, work))


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (None, 7),
        (ConflictError("modified"), 0.5),
        (UnavailableError("down"), 1),
        (UnavailableError("busy", retry_after=30), 30),
        (ThrottledError("429", retry_after=17), 17),
        (ThrottledError("429", retry_after=86400), 60),
        (ThrottledError("429"), 1),
        (RecordError("damaged"), 60),
        (ZeroDivisionError(), 1),
    ],
)
def test_every_error_becomes_a_delay(error: Exception | None, seconds: float) -> None:
    passes = Passes("job", Gate(1), Metrics())

    assert run_pass(passes, error).seconds == seconds


def test_an_api_server_that_holds_us_back_is_told_once_and_not_by_every_pass(
    caplog: pytest.LogCaptureFixture,
) -> None:
    throttling = Throttling()
    for kind in ("job", "savepoint"):
        passes = Passes(kind, Gate(1), Metrics(), throttling=throttling)
        for _ in range(50):
            run_pass(passes, ThrottledError("429: too many requests", retry_after=1))

    [told] = [record.getMessage() for record in caplog.records]
    assert "429: too many requests. If it stays so, lower --concurrency" in told


def test_a_pass_that_succeeds_makes_failures_forgotten() -> None:
    passes = Passes("job", Gate(1), Metrics())
    for _ in range(5):
        run_pass(passes, UnavailableError("down"))

    run_pass(passes, None)

    assert run_pass(passes, UnavailableError("down")).seconds == 1


def test_only_so_many_passes_run_at_once() -> None:
    running, most = 0, 0

    async def work(_: Key) -> Requeue:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return Requeue(seconds=0)

    async def story() -> None:
        passes = Passes("job", Gate(3), Metrics())
        await asyncio.gather(*(passes.run(Key("shop", str(n)), work) for n in range(20)))

    asyncio.run(story())

    assert most == 3


def test_logs_are_lines_of_json(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    try:
        configure_logs("json", verbose=False)
        try:
            raise ValueError("boom")
        except ValueError:
            logging.getLogger("sparkpoint").exception("It %s", "failed")
    finally:
        root.handlers, root.level = handlers, level

    line: dict[str, Any] = json.loads(stream.getvalue())
    assert (line["level"], line["message"]) == ("error", "It failed")
    assert "boom" in line["exception"]
