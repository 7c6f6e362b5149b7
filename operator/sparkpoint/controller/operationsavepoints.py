"""The SparkSavepoints of operations: made before the job is stopped, filled in once captured."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sparkpoint.api.job import JobSpec
from sparkpoint.api.policies import Savepoints
from sparkpoint.controller import objects
from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import SAVEPOINTS, Cluster, Object, create_or_get, find
from sparkpoint.controller.keys import OPERATION
from sparkpoint.controller.objects import Repository
from sparkpoint.controller.observer import Observation
from sparkpoint.controller.podfacts import label, parse_time
from sparkpoint.controller.restores import find_restorable, held_by
from sparkpoint.controller.savepointfacts import status_of
from sparkpoint.controller.savepointobjects import (
    captured_status,
    completed_status,
    operation_savepoint,
)
from sparkpoint.controller.wishes import restore_key
from sparkpoint.controller.workerfacts import worker_answer
from sparkpoint.lifecycle.phases import Phase
from sparkpoint.lifecycle.record import Operation, Record, Run
from sparkpoint.runtime.model import SavepointSummary
from sparkpoint.worker.model import Details

__all__ = ["OperationSavepoints"]


class OperationSavepoints:
    """Keeps the resources of operations' savepoints."""

    def __init__(
        self, cluster: Cluster, cache: ObjectCache, *, clock: Callable[[], datetime]
    ) -> None:
        self._cluster, self._cache, self._clock = cluster, cache, clock

    async def announce(
        self, seen: Observation, spec: JobSpec, operation: Operation, name: str
    ) -> Object:
        """The SparkSavepoint that the operation is about to take."""
        owner = seen.job.owner
        body = await create_or_get(self._cluster, operation_savepoint(owner, spec, operation, name))
        if status_of(body).get("phase") is not None or label(body, OPERATION) != operation.id:
            return body
        repository = objects.repository_of(spec)
        status = {
            "phase": "InProgress",
            "name": name,
            "repository": repository.uri if repository is not None else None,
            "startedAt": _text(self._clock()),
            "message": f"Taken by {operation.id}.",
        }
        return await self._write(seen, body, status)

    async def complete(self, seen: Observation, after: Record) -> None:
        """Fill it in, if this pass has seen that it is captured, or made of one that was.

        Before the job's record says so: what was seen may be gone at the next look.
        """
        before = seen.job.record
        for name in (_captured_now(before.operation, after), _moved_now(before, after)):
            if name is not None:
                await self._complete(seen, name, after)

    async def _complete(self, seen: Observation, name: str, after: Record) -> None:
        before, spec = seen.job.record.operation, seen.intent.spec
        if before is None or spec is None:
            return
        body = await self.announce(seen, spec, before, name)
        former = status_of(body)
        if former.get("phase") == "Completed" or label(body, OPERATION) != before.id:
            return
        await self._write(seen, body, self._captured(seen, former, name, after))

    def _captured(
        self, seen: Observation, former: Mapping[str, Any], name: str, after: Record
    ) -> dict[str, Any]:
        repository, now = str(former.get("repository") or ""), self._clock()
        summary, details = _summary(seen, name)
        if summary is None:
            batches = _batches(seen, after)
            return captured_status(
                former, name=name, batches=batches, repository=repository, now=now
            )
        run = _captured_run(seen.job.record)
        return completed_status(
            former,
            summary,
            repository=repository,
            now=now,
            since=parse_time(former.get("startedAt")),
            details=details,
            revision=run.revision.name if run is not None else None,
            epoch=run.epoch if run is not None else None,
        )

    async def _write(self, seen: Observation, body: Object, status: dict[str, Any]) -> Object:
        fresh = {key: value for key, value in status.items() if value is not None}
        written = await self._cluster.replace_status({**body, "status": fresh})
        self._cache.put(seen.job.key, written)
        return written

    async def place_of(
        self, savepoint: str | None, seen: Observation, record: Record
    ) -> Repository | None:
        """Where a savepoint is that the job begins from; None: nowhere that is known."""
        place = await self._held_by(savepoint, seen, record) if savepoint is not None else None
        own = objects.repository_of(seen.intent.spec) if seen.intent.spec is not None else None
        if place is None or (own is not None and place.repository == own.uri):
            return own
        return Repository(place.repository, place.endpoint_url)

    async def _held_by(
        self, savepoint: str, seen: Observation, record: Record
    ) -> Savepoints | None:
        spec = seen.intent.spec
        wanted = spec.restore_from if spec is not None else None
        if wanted is not None:
            under_way = record.operation.restore if record.operation is not None else None
            found = await find_restorable(self._cluster, seen.job.key, wanted)
            carried_out = restore_key(wanted) in (record.restored, under_way)
            if carried_out and found.savepoint == savepoint:
                return found.place
        if "/" in savepoint:
            return None
        body = await find(self._cluster, SAVEPOINTS, seen.job.key.namespace, savepoint)
        return held_by(body) if body is not None else None


def _captured_now(before: Operation | None, after: Record) -> str | None:
    """The savepoint that this pass has seen to be complete."""
    if before is None or before.captured:
        return None
    if after.operation is not None and after.operation.id == before.id:
        return after.operation.savepoint if after.operation.captured else None
    ended = after.last
    return ended.savepoint if ended is not None and ended.id == before.id else None


def _moved_now(before: Record, after: Record) -> str | None:
    """What a worker was seen to have made of it, in other partitions: the job begins from it."""
    operation = before.operation
    if operation is None or operation.phase is not Phase.MODIFY or operation.target is None:
        return None
    made, begun = operation.target.origin.savepoint, after.run
    switched = begun is not None and begun != before.run
    return made if switched and begun is not None and begun.source.savepoint == made else None


def _captured_run(record: Record) -> Run | None:
    """Whose directory the operation that is under way captures."""
    former = record.operation.former if record.operation is not None else None
    return former or record.run


def _batches(seen: Observation, after: Record) -> Mapping[str, int]:
    """Where the driver stood, as its last word or what was kept of its agent's says."""
    run = _captured_run(seen.job.record)
    driver = seen.world.driver(run) if run is not None else None
    if driver is not None and driver.exit is not None:
        return driver.exit.batches
    return dict(after.operation.base) if after.operation is not None else {}


def _summary(seen: Observation, name: str) -> tuple[SavepointSummary | None, Details | None]:
    """What the agent or the worker said about it."""
    stop = seen.answer.stop if seen.answer is not None else None
    taken = stop.savepoint if stop is not None else None
    if taken is not None and taken.name == name and taken.result is not None:
        return taken.result, None
    answers = [answer for pod in seen.pods if (answer := worker_answer(pod)) is not None]
    for answer in answers:
        if answer.savepoint is not None and answer.savepoint.name == name:
            return answer.savepoint, answer.details
    return None, None


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
