"""What kopf is told: its settings, and what it calls. All of it runs in a real cluster, too."""

import asyncio
import logging

import kopf

from sparkpoint.controller.handlers import register
from sparkpoint.controller.keys import FINALIZER, Key
from sparkpoint.controller.settings import configure
from sparkpoint.controller.wiring import put_together
from tests.unit.controller.simulation import World


def test_kopf_is_set_up_for_many_jobs_and_one_operator() -> None:
    settings = configure(kopf.OperatorSettings())

    assert settings.peering.standalone
    assert settings.scanning.disabled
    assert settings.persistence.finalizer == FINALIZER
    assert settings.posting.loggers is False
    assert settings.posting.level == logging.INFO
    assert settings.networking.request_timeout == 30
    assert settings.networking.connect_timeout == 10
    assert settings.watching.label_selectors["v1", "pods"] == "sparkpoint.dev/job"
    assert settings.watching.chunk_size == 500
    assert settings.execution.default_backoff == 15
    assert settings.execution.max_workers == 4
    assert settings.background.cancellation_polling == 10
    assert settings.queueing.worker_limit is None


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

    async def story() -> None:
        await found["notice-pod"](event={"type": "ADDED", "object": pod})  # type: ignore[operator]
        await operator.job_wakeups.wait(key, seconds=None)
        await operator.savepoint_wakeups.wait(Key("shop", "mine"), seconds=None)

    asyncio.run(story())

    [known] = operator.pod_cache.of(key)
    assert known["spec"] == {"containers": [{"name": "main"}]}
    assert "managedFields" not in known["metadata"]
    assert set(found) == {
        "notice-job",
        "notice-pod",
        "notice-savepoint",
        "keep-statefulsparkjobs",
        "finalize-statefulsparkjobs",
        "keep-sparksavepoints",
        "finalize-sparksavepoints",
    }


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
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"jobRef": {"name": "visits"}},
            "status": {"phase": phase},
        }
        operator.savepoint_cache.put(job, body)

    async def story() -> bool:
        body = {"metadata": {"name": "visits", "namespace": "shop", "uid": "u"}}
        await notice(event={"type": "MODIFIED", "object": body})  # type: ignore[operator]
        await operator.savepoint_wakeups.wait(Key("shop", "waits"), seconds=None)
        resting = asyncio.create_task(
            operator.savepoint_wakeups.wait(Key("shop", "rests"), seconds=None)
        )
        await asyncio.sleep(0)
        woken = resting.done()
        resting.cancel()
        return woken

    assert asyncio.run(story()) is False
