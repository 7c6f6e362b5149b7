"""What kopf calls: watches feed the caches and wake the loops, one loop per resource.

Nothing is decided here. A handler that fails is logged by kopf and forgotten, so none does anything
that can fail.
"""

import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

import kopf

from sparkpoint.api.common import GROUP, VERSION
from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import JOBS, SAVEPOINTS, Object, metadata
from sparkpoint.controller.keys import JOB, SAVEPOINT, Key, job_of, key_of
from sparkpoint.controller.passes import Requeue
from sparkpoint.controller.podfacts import label, parse_time, slim
from sparkpoint.controller.savepointfacts import is_at_rest, of_job
from sparkpoint.controller.wakeups import Wakeups
from sparkpoint.controller.wiring import Operator, utc_now

__all__ = ["register"]

_SPREAD: Final = 5.0
"""Seconds over which the first passes are spread when the operator starts."""
_CANCELLATION: Final = 10.0
_NEW: Final = timedelta(seconds=30)
RunOnce = Callable[[Key], Awaitable[Requeue]]


def register(registry: kopf.OperatorRegistry, operator: Operator) -> None:
    """Let kopf call this operator."""
    _watch_jobs(registry, operator)
    _watch_pods(registry, operator)
    _watch_savepoints(registry, operator)
    _keep(registry, JOBS.plural, operator.jobs.run_once, operator.job_wakeups)
    _keep(registry, SAVEPOINTS.plural, operator.savepoints.run_once, operator.savepoint_wakeups)


def _watch_jobs(registry: kopf.OperatorRegistry, operator: Operator) -> None:
    @kopf.on.event(GROUP, VERSION, JOBS.plural, id="notice-job", registry=registry)
    async def notice_job(event: kopf.RawEvent, **_: Any) -> None:
        body = _object(event)
        key = key_of(body)
        _learn(operator.job_cache, key, event, body)
        operator.job_wakeups.notify(key)
        if event["type"] == "DELETED":
            # By its uid, as the cache has forgotten it already.
            operator.jobs.forget(key, metadata(body)["uid"])
            operator.job_wakeups.forget(key)
        # What waits for the job: it may have begun to run, or ended an operation.
        for savepoint in operator.savepoint_cache.of(key):
            if not is_at_rest(savepoint):
                operator.savepoint_wakeups.notify(key_of(savepoint))


def _watch_pods(registry: kopf.OperatorRegistry, operator: Operator) -> None:
    @kopf.on.event("v1", "pods", id="notice-pod", labels={JOB: kopf.PRESENT}, registry=registry)
    async def notice_pod(event: kopf.RawEvent, **_: Any) -> None:
        body = _object(event)
        key = job_of(body)
        if key is not None:
            _learn(operator.pod_cache, key, event, slim(body))
            if event["type"] == "DELETED":
                operator.last_words.hear(key, slim(body))
            operator.job_wakeups.notify(key)
            savepoint = label(body, SAVEPOINT)
            if savepoint:
                operator.savepoint_wakeups.notify(Key(key.namespace, savepoint))


def _watch_savepoints(registry: kopf.OperatorRegistry, operator: Operator) -> None:
    @kopf.on.event(GROUP, VERSION, SAVEPOINTS.plural, id="notice-savepoint", registry=registry)
    async def notice_savepoint(event: kopf.RawEvent, **_: Any) -> None:
        body = _object(event)
        job = of_job(body)
        if job is not None:
            _learn(operator.savepoint_cache, job, event, body)
            operator.job_wakeups.notify(job)
        operator.savepoint_wakeups.notify(key_of(body))
        if event["type"] == "DELETED":
            operator.savepoints.forget(key_of(body))
            operator.savepoint_wakeups.forget(key_of(body))


def _keep(
    registry: kopf.OperatorRegistry, plural: str, run_once: RunOnce, wakeups: Wakeups[Key]
) -> None:
    """One loop per resource; while it is being deleted, the loop of its finalizer instead."""

    @kopf.daemon(
        GROUP,
        VERSION,
        plural,
        id=f"keep-{plural}",
        registry=registry,
        initial_delay=_spread,
        cancellation_timeout=_CANCELLATION,
    )
    async def keep(namespace: str | None, name: str, stopped: Any, **_: Any) -> None:
        key = Key(namespace or "", name)
        while not stopped:
            requeue = await run_once(key)
            await wakeups.wait(key, seconds=requeue.seconds)

    @kopf.on.delete(
        GROUP, VERSION, plural, id=f"finalize-{plural}", registry=registry, when=_is_deleted
    )
    async def finalize(namespace: str | None, name: str, **_: Any) -> None:
        key = Key(namespace or "", name)
        while not (requeue := await run_once(key)).released:
            await wakeups.wait(key, seconds=requeue.seconds)


def _spread(meta: kopf.Meta, **_: Any) -> float:
    """New resources at once; the many that are there when the operator starts one after another."""
    born = parse_time(meta.get("creationTimestamp"))
    is_new = born is not None and utc_now() - born < _NEW
    return 0.0 if is_new else random.uniform(0, _SPREAD)  # noqa: S311 - not a secret


def _is_deleted(meta: kopf.Meta, **_: Any) -> bool:
    """Without this, kopf writes a copy of the spec into an annotation of every resource."""
    return meta.get("deletionTimestamp") is not None


def _learn(cache: ObjectCache, owner: Key, event: kopf.RawEvent, body: Object) -> None:
    if event["type"] == "DELETED":
        cache.remove(owner, body)
    else:
        cache.put(owner, body)


def _object(event: kopf.RawEvent) -> Object:
    """Without the notes of the API server about who wrote which field, which are half of it."""
    body: Object = {**event["object"]}
    about = {name: each for name, each in metadata(body).items() if name != "managedFields"}
    return {**body, "metadata": about}
