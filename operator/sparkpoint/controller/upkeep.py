"""What a job that runs needs besides being kept running: savepoints by the clock, and retention."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import SAVEPOINTS, Cluster, Object, create_or_get, metadata
from sparkpoint.controller.errors import RecordError
from sparkpoint.controller.jobs import Job, read_job
from sparkpoint.controller.observer import Observation
from sparkpoint.controller.podfacts import created_at
from sparkpoint.controller.restores import reference
from sparkpoint.controller.retention import expired
from sparkpoint.controller.savepointfacts import of_job
from sparkpoint.controller.schedules import newest_due, periodic_savepoint, periodic_times
from sparkpoint.lifecycle.record import Record

__all__ = ["Upkeep"]

logger = logging.getLogger(__name__)


class Upkeep:
    """Takes care of savepoints that nobody asks for, and of those that nobody wants any more."""

    def __init__(self, cluster: Cluster, *, jobs: ObjectCache, savepoints: ObjectCache) -> None:
        self._cluster, self._jobs, self._savepoints = cluster, jobs, savepoints

    async def run(self, seen: Observation, record: Record) -> float | None:
        """Do what is due; the seconds until something is due again."""
        spec = seen.intent.spec
        idle = record.operation is not None or seen.job.deleting is not None
        if spec is None or spec.savepoints is None or idle or record.run is None:
            return None
        await self._expire(seen, spec, record)
        return await self._schedule(seen, spec, record)

    async def _schedule(self, seen: Observation, spec: JobSpec, record: Record) -> float | None:
        schedule = spec.savepoints.schedule if spec.savepoints is not None else None
        runs = record.run is not None and record.run.opened
        if schedule is None or not runs or record.suspended or record.finished:
            return None
        now, born = seen.world.now, created_at(seen.job.body)
        due = newest_due(schedule, now)
        known = periodic_times(seen.job.key.name, seen.savepoints)
        is_new = due is not None and (born is None or due > born) and due not in known[-1:]
        if due is not None and is_new and not any(time > due for time in known):
            body = await create_or_get(self._cluster, periodic_savepoint(seen.job.owner, spec, due))
            self._savepoints.put(seen.job.key, body)
            logger.info("%s: savepoint %s is due", seen.job.key, metadata(body)["name"])
        following = schedule.after(now)
        return (following - now).total_seconds() if following is not None else None

    async def _expire(self, seen: Observation, spec: JobSpec, record: Record) -> None:
        if spec.savepoints is None:
            return
        rules, key = spec.savepoints.retention, seen.job.key
        found = expired(key, seen.savepoints, rules, used=record.references(), now=seen.world.now)
        # Looking at all other jobs is left for when there is something to remove.
        used = self._used_elsewhere(seen) if found else frozenset()
        for body in found:
            if metadata(body)["name"] not in used:
                logger.info("%s: savepoint %s has expired", key, metadata(body)["name"])
                await self.retire(body)

    def _used_elsewhere(self, seen: Observation) -> frozenset[str]:
        """Savepoints of this job that another job of the namespace begins from."""
        names: set[str] = set()
        for other in self._others(seen.job):
            wanted = other.record.references()
            names |= {
                metadata(body)["name"]
                for body in seen.savepoints
                if reference(other.key, body) in wanted
            }
        return frozenset(names)

    def _others(self, job: Job) -> Iterable[Job]:
        for owner in self._jobs.owners():
            body = self._jobs.get(owner, owner.name)
            if body is None or owner == job.key or owner.namespace != job.key.namespace:
                continue
            try:
                yield read_job(body)
            except RecordError:
                continue

    async def retire(self, body: Object) -> None:
        """Remove a savepoint with its data: first it is written down that the data goes, too."""
        status: Mapping[str, Any] = body.get("status") or {}
        record = status.get("record") or {}
        if not record.get("expired"):
            marked = {**status, "record": {**record, "expired": True}}
            body = await self._cluster.replace_status({**body, "status": marked})
        about = metadata(body)
        await self._cluster.delete(SAVEPOINTS, about["namespace"], about["name"], uid=about["uid"])

    async def retire_all(self, seen: Observation) -> int:
        """Remove all savepoints of a job that is being deleted; how many are left."""
        left = [body for body in seen.savepoints if of_job(body) == seen.job.key]
        for body in left:
            if metadata(body).get("deletionTimestamp") is None:
                await self.retire(body)
        return len(left)
