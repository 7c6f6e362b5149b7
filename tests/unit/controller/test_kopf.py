"""What kopf is told: its settings, and what it calls. All of it runs in a real cluster, too."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import kopf
import pytest

from sparkpoint.controller.handlers import register
from sparkpoint.controller.keys import FINALIZER, SAVEPOINT, Key
from sparkpoint.controller.savepointfacts import is_at_rest
from sparkpoint.controller.settings import configure
from sparkpoint.controller.turns import Turns
from sparkpoint.controller.wiring import put_together
from tests.unit.controller.simulation import KEY, World
from tests.unit.controller.test_upkeep import add_savepoint, running


def test_kopf_is_set_up_for_many_jobs_and_one_operator() -> None:
    settings = configure(kopf.OperatorSettings())

    assert settings.peering.standalone
    assert settings.scanning.disabled
    # What no handler of ours asks for is taken off by kopf.
    assert settings.persistence.finalizer != FINALIZER
    body = kopf.Body({"spec": {"a": 1}})
    assert settings.persistence.diffbase_storage.build(body=body) == {}
    assert settings.posting.loggers is False
    assert settings.posting.level == logging.INFO
    assert settings.networking.request_timeout == 30
    assert settings.networking.connect_timeout == 10
    assert settings.watching.label_selectors["v1", "pods"] == "sparkpoint.dev/job"
    assert settings.watching.chunk_size == 100
    assert settings.execution.default_backoff == 15
    assert settings.execution.max_workers == 4
    assert settings.background.cancellation_polling == 10
    assert settings.queueing.worker_limit is None
    assert settings.queueing.idle_timeout == 0.1


def handlers(registry: kopf.OperatorRegistry) -> dict[str, object]:
    kinds = (registry._watching, registry._spawning, registry._changing)
    return {str(handler.id): handler.fn for kind in kinds for handler in kind._handlers}


def test_watches_feed_the_caches_and_wake_the_loops() -> None:
    world, registry = World(), kopf.OperatorRegistry()
    operator = put_together(world.cluster, world.dial)
    register(registry, operator)
    found = handlers(registry)
    key = Key("shop", "visits")
    pod = {
        "spec": {"containers": [{"name": "main", "image": "i"}], "volumes": []},
        "metadata": {
            "managedFields": [{}],
            "name": "p",
            "namespace": "shop",
            "uid": "u",
            "labels": {"sparkpoint.dev/job": "visits", "sparkpoint.dev/savepoint": "mine"},
        },
    }

    async def story() -> tuple[set[Key], set[Key]]:
        await found["notice-pod"](event={"type": "ADDED", "object": pod})  # type: ignore[operator]
        return set(operator.job_turns._turns), set(operator.savepoint_turns._turns)

    assert asyncio.run(story()) == ({key}, {Key("shop", "mine")})

    [known] = operator.pod_cache.of(key)
    assert known["spec"] == {"containers": [{"name": "main"}]}
    assert "managedFields" not in known["metadata"]
    # None that kopf waits for, or writes to resources for.
    assert set(found) == {"notice-job", "notice-pod", "notice-savepoint"}
    assert not registry._changing._handlers
    assert not registry._spawning._handlers


def test_the_end_of_a_pod_is_kept_when_it_is_deleted() -> None:
    world, registry = World(), kopf.OperatorRegistry()
    operator = put_together(world.cluster, world.dial)
    register(registry, operator)
    notice = handlers(registry)["notice-pod"]
    job = {"metadata": {"name": "visits", "namespace": "shop", "uid": "j"}}
    operator.job_cache.put(Key("shop", "visits"), job)
    owner = {"apiVersion": "v1", "kind": "Job", "name": "visits", "uid": "j", "controller": True}
    labels = {"job": "visits", "role": "driver", "epoch": "1", "attempt": "1"}
    pod = {
        "spec": {"containers": [{"name": "driver"}]},
        "status": {
            "containerStatuses": [{"name": "driver", "state": {"terminated": {"exitCode": 0}}}]
        },
        "metadata": {
            "name": "visits-e1-a1",
            "namespace": "shop",
            "uid": "p",
            "labels": {f"sparkpoint.dev/{name}": value for name, value in labels.items()},
            "ownerReferences": [owner],
        },
    }

    asyncio.run(notice(event={"type": "MODIFIED", "object": pod}))  # type: ignore[operator]
    there = operator.last_words.of("j")
    asyncio.run(notice(event={"type": "DELETED", "object": pod}))  # type: ignore[operator]

    assert there == ()
    assert operator.last_words.of("j") == (pod,)

    gone = handlers(registry)["notice-job"]
    asyncio.run(gone(event={"type": "DELETED", "object": job}))  # type: ignore[operator]
    assert operator.last_words.of("j") == ()


def test_a_job_that_changes_wakes_the_savepoints_that_wait_for_it() -> None:
    world, registry = World(), kopf.OperatorRegistry()
    operator = put_together(world.cluster, world.dial)
    register(registry, operator)
    notice = handlers(registry)["notice-job"]
    job = Key("shop", "visits")
    for name, phase in (("waits", "Pending"), ("rests", "Completed")):
        body = {
            "metadata": {"name": name, "namespace": "shop", "finalizers": [FINALIZER]},
            "spec": {"jobRef": {"name": "visits"}},
            "status": {"phase": phase, "id": name, "record": {}},
        }
        operator.savepoint_cache.put(job, body)

    async def story() -> set[Key]:
        body = {"metadata": {"name": "visits", "namespace": "shop", "uid": "u"}}
        await notice(event={"type": "MODIFIED", "object": body})  # type: ignore[operator]
        return set(operator.savepoint_turns._turns)

    assert asyncio.run(story()) == {Key("shop", "waits")}


def test_what_we_wrote_ourselves_is_no_news() -> None:
    world, registry = World(), kopf.OperatorRegistry()
    operator = put_together(world.cluster, world.dial)
    register(registry, operator)
    notice = handlers(registry)["notice-job"]
    key = Key("shop", "visits")

    def version(number: int) -> dict[str, object]:
        about = {"name": "visits", "namespace": "shop", "uid": "u", "resourceVersion": str(number)}
        return {"metadata": about}

    async def story() -> list[set[Key]]:
        operator.job_cache.put(key, version(7))
        seen = []
        for number in (6, 7, 8):
            await notice(event={"type": "MODIFIED", "object": version(number)})  # type: ignore[operator]
            seen.append(set(operator.job_turns._turns))
        return seen

    assert asyncio.run(story()) == [set(), set(), {key}]


@pytest.mark.parametrize(
    ("finalizers", "status", "is_looked_after"),
    [
        ([], {}, False),
        ([FINALIZER], {}, False),
        # An operation has written it alone.
        ([FINALIZER], {"phase": "Completed"}, False),
        ([FINALIZER], {"phase": "Pending", "record": {"tries": 0}}, True),
    ],
)
def test_a_savepoint_that_a_job_has_made_is_looked_after_though_it_is_no_news(
    finalizers: list[str], status: dict[str, object], is_looked_after: bool
) -> None:
    """Such as one of the schedule: nothing else may ever happen to it, or to its job."""
    world, registry = World(), kopf.OperatorRegistry()
    operator = put_together(world.cluster, world.dial)
    register(registry, operator)
    notice = handlers(registry)["notice-savepoint"]
    about = {"name": "made", "namespace": "shop", "uid": "u", "resourceVersion": "7"}
    body = {
        "metadata": {**about, "finalizers": finalizers},
        "spec": {"jobRef": {"name": "visits"}, "trigger": "Periodic"},
        "status": status,
    }
    operator.savepoint_cache.put(Key("shop", "visits"), body)

    async def story() -> set[Key]:
        await notice(event={"type": "ADDED", "object": body})  # type: ignore[operator]
        return set(operator.savepoint_turns._turns)

    assert asyncio.run(story()) == (set() if is_looked_after else {Key("shop", "made")})


@pytest.mark.parametrize("writer", ["job", "savepoint"])
def test_a_job_is_woken_by_what_passes_over_its_savepoints_write_and_not_by_its_own(
    writer: str,
) -> None:
    simulation, registry = running(), kopf.OperatorRegistry()
    add_savepoint(simulation, "kept", age=timedelta(hours=1), trigger="Manual")
    operator = simulation.operator
    register(registry, operator)
    notice = handlers(registry)["notice-savepoint"]
    if writer == "savepoint":
        simulation.run_savepoints()
    else:
        simulation.run_pass()
    body = simulation.savepoint("kept")

    async def story() -> list[bool]:
        woken = []
        for _ in range(2):
            await notice(event={"type": "MODIFIED", "object": body})  # type: ignore[operator]
            woken.append(KEY in operator.job_turns._turns)
            operator.job_turns.forget(KEY)
        return woken

    assert ("keptBecause" in body["status"]) == (writer == "job")
    assert ("conditions" in body["status"]) == (writer == "savepoint")
    assert asyncio.run(story()) == [writer == "savepoint", False]


def test_the_many_that_are_there_at_the_start_are_looked_at_one_after_another() -> None:
    world, registry = World(), kopf.OperatorRegistry()
    operator = put_together(world.cluster, world.dial)
    register(registry, operator)
    found = handlers(registry)
    old, taken = "2020-01-01T00:00:00Z", {"phase": "Completed", "id": "ab" * 32, "record": {}}

    def listed(name: str, **more: object) -> dict[str, object]:
        about = {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": old}
        guarded = {**about, "finalizers": [FINALIZER]}
        body = {"metadata": guarded, "spec": {"jobRef": {"name": "j1"}}, **more}
        return {"type": None, "object": body}

    async def story() -> tuple[list[float], list[float]]:
        now = asyncio.get_running_loop().time()
        for number in range(20):
            await found["notice-job"](event=listed(f"j{number}"))  # type: ignore[operator]
            event = listed(f"s{number}", status=taken)
            await found["notice-savepoint"](event=event)  # type: ignore[operator]
        return due(operator.job_turns, now), due(operator.savepoint_turns, now)

    jobs, savepoints = asyncio.run(story())
    assert len(jobs) == len(savepoints) == 20
    assert 0 <= min(jobs) < 2.5 < max(jobs) < 6
    # Nothing is to be done to them, and they are counted all the same.
    assert 60 < max(savepoints) < 3700
    page = operator.metrics.render()
    assert 'sparkpoint_operator_resources{kind="savepoint",phase="Completed"} 20' in page


def test_an_operator_that_takes_over_looks_at_jobs_before_savepoints() -> None:
    world, old = World(), "2020-01-01T00:00:00Z"
    operator = put_together(world.cluster, world.dial)
    job = Key("shop", "j1")
    for number in range(20):
        about = {"name": f"s{number}", "namespace": "shop", "uid": f"{number}"}
        taken = (
            {"phase": "Completed", "id": "ab" * 32, "record": {}}
            if number
            else {"phase": "Pending"}
        )
        more = {"creationTimestamp": old, "finalizers": [FINALIZER]}
        body = {"metadata": {**about, **more}, "status": taken}
        operator.savepoint_cache.put(job, body)

    patience = operator.savepoint_turns._patience()

    assert operator.job_turns._patience() == {}
    first, *others = sorted(patience.values())
    assert first == patience[Key("shop", "s0")]
    # Jobs are resumed after a second at the latest.
    assert 1 < first < 7
    assert len(others) == 19
    assert 60 < max(others) < 3700


def test_an_operator_that_takes_over_goes_on_with_what_the_one_before_it_had_begun() -> None:
    world, now = World(), datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    operator = put_together(world.cluster, world.dial, clock=lambda: now)
    job, born = Key("shop", "j1"), "2020-01-01T00:00:00Z"
    about = {"namespace": "shop", "creationTimestamp": born, "finalizers": [FINALIZER]}
    spec = {"jobRef": {"name": "j1"}, "verify": "Content"}
    taken = {"phase": "Completed", "id": "ab" * 32, "record": {}}
    for name, status in {
        "settled": {**taken, "record": {"checked": True}},
        "long-ago": taken,
        "just-now": {**taken, "completedAt": "2026-11-16T11:58:00Z"},
        "not-looked-into": {"phase": "Completed", "record": {}},
        "being-checked": taken,
    }.items():
        body = {"metadata": {**about, "name": name, "uid": "5"}, "spec": spec, "status": status}
        operator.savepoint_cache.put(job, body)
    labels = {SAVEPOINT: "being-checked"}
    operator.pod_cache.put(job, {"metadata": {**about, "name": "w", "uid": "w", "labels": labels}})

    patience = operator.savepoint_turns._patience()

    soon = {key.name for key, seconds in patience.items() if seconds < 10}
    assert soon == {"just-now", "not-looked-into", "being-checked"}


@pytest.mark.parametrize(
    ("wanted", "of_the_job", "status", "rests"),
    [
        (None, "Skip", {}, True),
        (None, "Content", {}, False),
        ("Skip", "Content", {}, True),
        ("Deep", "Skip", {}, False),
        (None, "Content", {"record": {"checked": True}}, True),
        # One of many that a job was told to check afterwards.
        (None, "Content", {"completedAt": "2026-11-16T10:00:00Z"}, True),
        (None, "Skip", {"id": None}, False),
        (None, "Skip", {"id": None, "record": {"described": True}}, True),
        (None, "Content", {"phase": "Failed"}, True),
        (None, "Skip", {"phase": "InProgress"}, False),
        # Filled in by an operation, and nobody has looked after it yet.
        (None, "Skip", {"record": None}, False),
    ],
)
def test_a_savepoint_is_at_rest_once_it_is_looked_into_and_checked_if_that_is_wanted(
    wanted: str | None, of_the_job: str, status: dict[str, object], rests: bool
) -> None:
    now = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    known = {"phase": "Completed", "id": "ab" * 32, "completedAt": "2026-11-16T11:59:00Z"}
    told = {
        key: value for key, value in {**known, "record": {}, **status}.items() if value is not None
    }
    guard = {"finalizers": [FINALIZER]}
    body = {"metadata": guard, "spec": {"verify": wanted}, "status": told}
    job = {"spec": {"savepoints": {"verify": of_the_job}}}
    going = {**body, "metadata": {"deletionTimestamp": "2026-11-16T12:00:00Z"}}

    assert is_at_rest(body, job=job, now=now) is rests
    assert not is_at_rest(going, job=job, now=now)


def test_a_replica_that_waits_keeps_nothing_of_what_is_deleted_meanwhile() -> None:
    world, registry = World(), kopf.OperatorRegistry()
    operator = put_together(world.cluster, world.dial, may_act=lambda: False)
    register(registry, operator)
    found = handlers(registry)

    def savepoint(change: str) -> dict[str, object]:
        about = {"name": "s", "namespace": "shop", "uid": "u", "deletionTimestamp": "2026-11-18"}
        return {"type": change, "object": {"metadata": about, "spec": {"jobRef": {"name": "j"}}}}

    def job(change: str) -> dict[str, object]:
        about = {"name": "j", "namespace": "shop", "uid": "j", "deletionTimestamp": "2026-11-18"}
        return {"type": change, "object": {"metadata": about}}

    async def story() -> list[int]:
        counts = []
        for change in ("MODIFIED", "DELETED"):
            await found["notice-savepoint"](event=savepoint(change))  # type: ignore[operator]
            await found["notice-job"](event=job(change))  # type: ignore[operator]
            await asyncio.sleep(0.01)
            held = [
                each
                for turns in (operator.job_turns, operator.savepoint_turns)
                for each in (*turns._turns, *turns._held)
            ]
            counts += [len(held), len(operator.savepoint_cache) + len(operator.job_cache)]
        await operator.close()
        return counts

    assert asyncio.run(story()) == [4, 2, 0, 0]
    assert world.cluster.calls == []


def due(turns: Turns, now: float) -> list[float]:
    timers = [turn.timer for turn in turns._turns.values()]
    return [timer.when() - now for timer in timers if timer is not None]
