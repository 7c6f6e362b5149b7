"""What kopf calls: watches feed the caches and give turns.

Nothing is decided here, and nothing waited for: kopf calls for one resource in order, so that a
handler that waits holds up the event which tells that the resource is gone. One that fails is
logged by kopf and forgotten, so none does anything that can fail. kopf has no loop for each
resource: with its daemons, ten thousand savepoints that nothing is to be done to take 300 MB
(docs/scale.md).
"""

from datetime import timedelta
from typing import Any, Final, cast

import kopf

from sparkpoint.api.common import GROUP, VERSION
from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import JOBS, SAVEPOINTS, Object, metadata
from sparkpoint.controller.keys import JOB, SAVEPOINT, Key, job_of, key_of
from sparkpoint.controller.podfacts import label, parse_time, slim
from sparkpoint.controller.savepointfacts import (
    has_ended,
    is_at_rest,
    is_looked_after,
    of_job,
    status_of,
)
from sparkpoint.controller.spreading import FIRST_LOOK, FIRST_LOOK_AT_REST, spread
from sparkpoint.controller.wiring import Operator, utc_now

__all__ = ["register"]

_NEW: Final = timedelta(seconds=30)


def register(registry: kopf.OperatorRegistry, operator: Operator) -> None:
    """Let kopf call this operator."""
    _watch_jobs(registry, operator)
    _watch_pods(registry, operator)
    _watch_savepoints(registry, operator)


def _watch_jobs(registry: kopf.OperatorRegistry, operator: Operator) -> None:
    @kopf.on.event(GROUP, VERSION, JOBS.plural, id="notice-job", registry=registry)
    async def notice_job(event: kopf.RawEvent, **_: Any) -> None:
        body = _object(event)
        key = key_of(body)
        is_news = _learn(operator.job_cache, key, event, body)
        if event["type"] == "DELETED":
            # By its uid, as the cache has forgotten it already.
            operator.jobs.forget(key, metadata(body)["uid"])
            operator.job_turns.forget(key)
        elif is_news:
            operator.job_turns.notify(key, within=_patience(event, body, FIRST_LOOK))
            operator.jobs.hasten(key)
        # What waits for the job: it may have begun to run, or ended an operation.
        for savepoint in operator.savepoint_cache.of(key):
            if not is_at_rest(savepoint, job=body, now=utc_now()):
                operator.savepoint_turns.notify(key_of(savepoint))


def _watch_pods(registry: kopf.OperatorRegistry, operator: Operator) -> None:
    @kopf.on.event("v1", "pods", id="notice-pod", labels={JOB: kopf.PRESENT}, registry=registry)
    async def notice_pod(event: kopf.RawEvent, **_: Any) -> None:
        body = slim(_object(event))
        key = job_of(body)
        if key is None:
            return
        _learn(operator.pod_cache, key, event, body)
        if event["type"] == "DELETED":
            operator.last_words.hear(key, body)
        operator.job_turns.notify(key, within=_patience(event, body, FIRST_LOOK))
        savepoint = label(body, SAVEPOINT)
        if savepoint:
            operator.savepoint_turns.notify(Key(key.namespace, savepoint))


def _watch_savepoints(registry: kopf.OperatorRegistry, operator: Operator) -> None:
    @kopf.on.event(GROUP, VERSION, SAVEPOINTS.plural, id="notice-savepoint", registry=registry)
    async def notice_savepoint(event: kopf.RawEvent, **_: Any) -> None:
        body = _object(event)
        key, job = key_of(body), of_job(body)
        known = operator.job_cache.get(job, job.name) if job is not None else None
        rests = is_at_rest(body, job=known, now=utc_now())
        patience = _patience(event, body, FIRST_LOOK_AT_REST if rests else FIRST_LOOK)
        is_news = True
        if job is not None:
            is_news = _learn(operator.savepoint_cache, job, event, body)
            # Also what a pass over it wrote: an operation may wait for it, or retention judge it.
            if operator.savepoints.wrote(body) or is_news:
                operator.job_turns.notify(job, within=min(patience, FIRST_LOOK.total_seconds()))
        if event["type"] == "DELETED":
            operator.savepoints.forget(key)
            operator.savepoint_turns.forget(key)
            return
        if has_ended(body):
            operator.metrics.seen("savepoint", key, str(status_of(body)["phase"]))
        # One that a pass over its job has made is no news, and yet nobody has looked after it.
        if is_news or not is_looked_after(body):
            operator.savepoint_turns.notify(key, within=patience)


def _patience(event: kopf.RawEvent, body: Object, over: timedelta) -> float:
    """Changes at once; the many that are there when the operator starts one after another."""
    born = parse_time(metadata(body).get("creationTimestamp"))
    is_change = event["type"] is not None or metadata(body).get("deletionTimestamp") is not None
    if is_change or (born is not None and utc_now() - born < _NEW):
        return 0.0
    return spread(str(metadata(body).get("uid")), over).total_seconds()


def _learn(cache: ObjectCache, owner: Key, event: kopf.RawEvent, body: Object) -> bool:
    """Whether it was not known before: what we wrote ourselves comes back through the watch."""
    if event["type"] == "DELETED":
        cache.remove(owner, body)
        return True
    return cache.put(owner, body)


def _object(event: kopf.RawEvent) -> Object:
    """Without the notes of the API server about who wrote which field, which are half of it.

    They are taken from kopf, too, which keeps the event for a while.
    """
    body: Object = cast("Object", event["object"])
    metadata(body).pop("managedFields", None)
    return body
