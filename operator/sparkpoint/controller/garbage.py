"""What earlier attempts and operations left behind: what nobody needs any more is deleted.

The newest driver that ended stays for its logs, and so do the workers of the last operation.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from sparkpoint.controller.cluster import (
    BUDGETS,
    CONFIG_MAPS,
    PODS,
    REVISIONS,
    SECRETS,
    Cluster,
    Kind,
    Object,
    metadata,
    owner_uid,
)
from sparkpoint.controller.jobs import Job
from sparkpoint.controller.keys import ATTEMPT, EPOCH, JOB, ROLE, SAVEPOINT
from sparkpoint.controller.observer import Observation
from sparkpoint.controller.podfacts import is_over, label
from sparkpoint.lifecycle.record import Record

__all__ = ["Garbage", "stale_objects", "stale_pods", "stale_revisions"]

_REVISIONS: Final = 10
"""Revisions that stay besides those that the record names."""


class Garbage:
    """Collects it: pods as they are seen, the rest once per attempt."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._swept: dict[str, int] = {}

    async def collect(self, seen: Observation, record: Record) -> None:
        """Delete what is stale, of a job that nothing is being done to."""
        job = seen.job
        if record.operation is not None or record.run is None or job.deleting is not None:
            return
        for pod in stale_pods(job, seen.pods, record):
            await self._delete(PODS, pod)
        if self._swept.get(job.uid) == record.run.attempt:
            return
        await self._sweep(seen, record)
        self._swept[job.uid] = record.run.attempt

    async def _sweep(self, seen: Observation, record: Record) -> None:
        namespace, labels = seen.job.key.namespace, {JOB: seen.job.key.name}
        for kind in (CONFIG_MAPS, SECRETS, BUDGETS):
            found = await self._cluster.list(kind, namespace, labels=labels)
            for body in stale_objects(seen.job, found, seen.pods, record):
                await self._delete(kind, body)
        revisions = await self._cluster.list(REVISIONS, namespace, labels=labels)
        for body in stale_revisions(seen.job, revisions, record):
            await self._delete(REVISIONS, body)

    async def _delete(self, kind: Kind, body: Object) -> None:
        about = metadata(body)
        await self._cluster.delete(kind, about["namespace"], about["name"], uid=about["uid"])

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._swept.pop(uid, None)


def stale_pods(job: Job, pods: Iterable[Object], record: Record) -> list[Object]:
    """Pods of ours that have ended and whose logs nobody will look for."""
    ours = [
        pod
        for pod in pods
        if is_over(pod)
        and owner_uid(pod) == job.uid
        and metadata(pod).get("deletionTimestamp") is None
    ]
    drivers = [pod for pod in ours if label(pod, ROLE) == "driver"]
    newest = max((_attempt(pod) for pod in drivers), default=0)
    recent = f"{job.key.name}-{record.last.id}-" if record.last is not None else None
    workers = [pod for pod in ours if label(pod, ROLE) == "worker" and not label(pod, SAVEPOINT)]
    return [
        *(pod for pod in drivers if _attempt(pod) < newest),
        *(
            pod
            for pod in workers
            if recent is None or not str(metadata(pod)["name"]).startswith(recent)
        ),
    ]


def stale_objects(
    job: Job, found: Iterable[Object], pods: Iterable[Object], record: Record
) -> list[Object]:
    """ConfigMaps, Secrets and budgets of attempts that are over."""
    run = record.run
    if run is None:
        return []
    alive = {(_epoch(pod), _attempt(pod)) for pod in pods if not is_over(pod)}
    epochs = {epoch for epoch, _ in alive} | {run.epoch}
    present = alive | {(run.epoch, run.attempt)}
    return [
        body
        for body in found
        if owner_uid(body) == job.uid
        and label(body, EPOCH)
        and (
            (_epoch(body), _attempt(body)) not in present
            if label(body, ATTEMPT)
            else _epoch(body) not in epochs
        )
    ]


def stale_revisions(job: Job, found: Iterable[Object], record: Record) -> list[Object]:
    """All but those that the record names, and a few of the newest."""
    ours = [body for body in found if owner_uid(body) == job.uid]
    newest_first: Sequence[Object] = sorted(
        ours, key=lambda body: int(body.get("revision", 0)), reverse=True
    )
    named = {f"{job.key.name}-{name}" for name in _named(record)}
    return [body for body in newest_first[_REVISIONS:] if metadata(body)["name"] not in named]


def _named(record: Record) -> set[str]:
    target = record.operation.target if record.operation is not None else None
    names = {run.revision.name for run in (record.run, target) if run is not None}
    if record.stable is not None:
        names.add(record.stable.revision.name)
    if record.held is not None:
        names.add(record.held.revision)
    return names


def _epoch(body: Object) -> int:
    return int(label(body, EPOCH) or 0)


def _attempt(body: Object) -> int:
    return int(label(body, ATTEMPT) or 0)
