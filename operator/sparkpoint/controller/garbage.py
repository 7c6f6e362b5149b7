"""What earlier attempts and operations left behind: what nobody needs any more is deleted.

The newest driver that ended stays for its logs, and so do the workers of the last operation.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sparkpoint.api.job import JobSpec
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
from sparkpoint.controller.errors import RecordError
from sparkpoint.controller.jobs import Job
from sparkpoint.controller.keys import ATTEMPT, EPOCH, JOB, ROLE, SAVEPOINT
from sparkpoint.controller.observer import Observation
from sparkpoint.controller.podfacts import created_at, is_over, label, lingers
from sparkpoint.controller.savepointviews import read_savepoint
from sparkpoint.controller.spreading import spread
from sparkpoint.lifecycle.naming import worker_name
from sparkpoint.lifecycle.phases import Phase
from sparkpoint.lifecycle.record import Record

__all__ = [
    "Garbage",
    "abandoned_workers",
    "answered_workers",
    "lingering_pods",
    "orphaned_configurations",
    "stale_objects",
    "stale_pods",
    "stale_revisions",
]

_REVISIONS: Final = 10
"""Revisions that stay besides those that the record names."""
_ORPHANED: Final = timedelta(hours=1)
"""What was made so long ago and has no pod will have none."""
_FIRST_SWEEP: Final = timedelta(hours=1)
"""Over which an operator that starts looks for what the one before it left, job by job."""


@dataclass(frozen=True, slots=True)
class _Swept:
    sequence: int
    """Operations of the job when it was looked at last."""
    due: datetime | None
    """When it is to be looked at although nothing was done to it."""


class Garbage:
    """Collects it: pods as they are seen, the rest once per operation."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._swept: dict[str, _Swept] = {}

    async def collect(self, seen: Observation, record: Record) -> None:
        """Delete what is stale; `record` is written down, so that what it waits for is known."""
        job = seen.job
        for pod in _unneeded(seen, record):
            await self._delete(PODS, pod)
        if record.operation is not None or record.run is None or job.deleting is not None:
            return
        for pod in stale_pods(job, seen.pods, record):
            await self._delete(PODS, pod)
        if self._is_due(job, record, seen.world.now):
            await self._sweep(seen, record)
            self._swept[job.uid] = _Swept(record.sequence, None)

    def _is_due(self, job: Job, record: Record, now: datetime) -> bool:
        first = _Swept(record.sequence, now + spread(job.uid, _FIRST_SWEEP))
        known = self._swept.setdefault(job.uid, first)
        return known.sequence != record.sequence or (known.due is not None and now >= known.due)

    async def _sweep(self, seen: Observation, record: Record) -> None:
        namespace, labels = seen.job.key.namespace, {JOB: seen.job.key.name}
        for kind in (CONFIG_MAPS, SECRETS, BUDGETS):
            found = await self._cluster.list(kind, namespace, labels=labels)
            for body in (
                *stale_objects(seen.job, found, seen.pods, record),
                *orphaned_configurations(seen.job, found, seen.pods, seen.world.now),
            ):
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


def _unneeded(seen: Observation, record: Record) -> Iterator[Object]:
    """Pods that go whether or not something is being done to the job."""
    yield from abandoned_workers(seen.job, seen.pods, record)
    yield from lingering_pods(seen.job, seen.pods, record)
    yield from answered_workers(seen.job, seen.pods, seen.stock.everything, seen.intent.spec)


def abandoned_workers(job: Job, pods: Iterable[Object], record: Record) -> list[Object]:
    """Workers that have not ended, and whose operation or try nobody waits for any more.

    They may never have started: an image that is not there, or no node with room for them.
    """
    operation = record.operation
    awaited = worker_name(job.key.name, operation) if operation is not None else None
    return [
        pod
        for pod in pods
        if _is_operations_worker(job, pod)
        and not is_over(pod)
        and not _is_leaving(pod)
        and metadata(pod)["name"] != awaited
        # One of a later operation than is written down here: what we know of the job is old.
        and _sequence(job, pod) <= record.sequence
    ]


def lingering_pods(job: Job, pods: Iterable[Object], record: Record) -> list[Object]:
    """Pods of attempts whose end is written down, and which other containers keep running."""
    return [
        pod
        for pod in pods
        if label(pod, ROLE) in ("driver", "executor")
        and _is_numbered(pod)
        and lingers(pod)
        and not _is_leaving(pod)
        and (label(pod, ROLE) == "executor" or owner_uid(pod) == job.uid)
        and _is_read(pod, record)
    ]


def _is_read(pod: Object, record: Record) -> bool:
    """Whether nobody needs the last word of this attempt any more."""
    run, operation = record.run, record.operation
    if run is None:
        return False
    if (_epoch(pod), _attempt(pod)) != (run.epoch, run.attempt):
        return (_epoch(pod), _attempt(pod)) < (run.epoch, run.attempt)
    if operation is None:
        return record.finished or record.suspended
    # Whatever is captured or removed now, the stop before it has noted how the driver ended.
    return operation.phase in (Phase.CAPTURE, Phase.MODIFY, Phase.CLEAN)


def answered_workers(
    job: Job, pods: Iterable[Object], savepoints: Iterable[Object], spec: JobSpec | None
) -> list[Object]:
    """Workers of savepoints that need none any more; who noted their answer did not live on."""
    workers = [
        pod
        for pod in pods
        if label(pod, SAVEPOINT) and owner_uid(pod) == job.uid and not _is_leaving(pod)
    ]
    names = {label(pod, SAVEPOINT) for pod in workers}
    known = [body for body in savepoints if metadata(body)["name"] in names]
    settled = {metadata(body)["name"] for body in known if _is_settled(body, spec)}
    return [pod for pod in workers if label(pod, SAVEPOINT) in settled]


def _is_settled(savepoint: Object, spec: JobSpec | None) -> bool:
    try:
        view = read_savepoint(savepoint)
    except RecordError:
        return False
    return view.deleting is None and view.record.is_settled(verify=view.wish(spec).verify)


def stale_pods(job: Job, pods: Iterable[Object], record: Record) -> list[Object]:
    """Pods of ours that have ended and whose logs nobody will look for."""
    ours = [
        pod for pod in pods if is_over(pod) and owner_uid(pod) == job.uid and not _is_leaving(pod)
    ]
    drivers = [pod for pod in ours if label(pod, ROLE) == "driver" and _is_numbered(pod)]
    newest = max((_attempt(pod) for pod in drivers), default=0)
    recent = f"{job.key.name}-{record.last.id}-" if record.last is not None else None
    workers = [pod for pod in ours if _is_operations_worker(job, pod)]
    return [
        *(pod for pod in drivers if _attempt(pod) < newest),
        *(
            pod
            for pod in workers
            if recent is None or not str(metadata(pod)["name"]).startswith(recent)
        ),
    ]


def _is_operations_worker(job: Job, pod: Object) -> bool:
    ours = label(pod, ROLE) == "worker" and owner_uid(pod) == job.uid
    return ours and not label(pod, SAVEPOINT)


def _sequence(job: Job, pod: Object) -> int:
    """The number of the operation that a worker is named after."""
    rest = str(metadata(pod)["name"]).removeprefix(f"{job.key.name}-")
    _, number, *_ = [*rest.split("-"), "", ""]
    return int(number) if number.isdecimal() else 0


def _is_leaving(pod: Object) -> bool:
    return metadata(pod).get("deletionTimestamp") is not None


def stale_objects(
    job: Job, found: Iterable[Object], pods: Iterable[Object], record: Record
) -> list[Object]:
    """ConfigMaps, Secrets and budgets of attempts that are over, and of workers of operations."""
    run = record.run
    if run is None:
        return []
    alive = {
        (_epoch(pod), _attempt(pod))
        for pod in pods
        if label(pod, ROLE) in ("driver", "executor") and not is_over(pod) and _is_numbered(pod)
    }
    present = alive | {(run.epoch, run.attempt)}
    ours = [body for body in found if owner_uid(body) == job.uid and _is_numbered(body)]
    return [body for body in ours if _is_stale(job, body, present, record)]


def _is_stale(job: Job, body: Object, present: set[tuple[int, int]], record: Record) -> bool:
    if label(body, ROLE) == "worker":
        return _sequence(job, body) <= record.sequence
    if label(body, ATTEMPT):
        return (_epoch(body), _attempt(body)) not in present
    return _epoch(body) not in {epoch for epoch, _ in present}


def orphaned_configurations(
    job: Job, found: Iterable[Object], pods: Iterable[Object], now: datetime
) -> list[Object]:
    """ConfigMaps of savepoints' workers whose pods are gone; they are made before the pods."""
    present = {metadata(pod)["name"] for pod in pods}
    return [
        body
        for body in found
        if owner_uid(body) == job.uid
        and label(body, SAVEPOINT)
        and metadata(body)["name"] not in present
        and now - (created_at(body) or now) > _ORPHANED
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


def _is_numbered(body: Object) -> bool:
    """Whether its labels are as we write them: anybody may make a pod with labels like ours, and
    one that means nothing to us must neither go nor keep others from going."""
    return label(body, EPOCH).isdecimal() and (label(body, ATTEMPT) or "0").isdecimal()


def _epoch(body: Object) -> int:
    return int(label(body, EPOCH) or 0)


def _attempt(body: Object) -> int:
    return int(label(body, ATTEMPT) or 0)
