"""From what was seen and decided to the status that is written."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import ATTEMPT, EPOCH, ROLE
from sparkpoint.controller.objects import AGENT_PORT
from sparkpoint.controller.observer import Observation
from sparkpoint.controller.obstacles import Obstacle
from sparkpoint.controller.podfacts import label
from sparkpoint.controller.savepointfacts import status_of
from sparkpoint.controller.schedules import late_since
from sparkpoint.controller.statuses import Sight, job_status
from sparkpoint.controller.stuckpods import Stuck, explained, stuck_pod
from sparkpoint.lifecycle import Decision
from sparkpoint.lifecycle.conditions import Circumstances, conditions
from sparkpoint.lifecycle.naming import worker_name
from sparkpoint.lifecycle.record import Record
from sparkpoint.lifecycle.world import DriverExit

__all__ = ["report"]

_STALLED: Final = timedelta(minutes=10)
_INTERVALS: Final = 5
"""Trigger intervals without a commit after which a query stands still."""


def report(seen: Observation, decision: Decision, obstacle: Obstacle | None) -> dict[str, Any]:
    """The status of the job after this pass."""
    job, world = seen.job, replace(seen.world, record=decision.record)
    same = _same_run(job.record, decision.record)
    newest = seen.stock.newest
    driver = seen.driver if same else None
    waited_for = (driver, _worker(seen, decision.record), *(_executors(seen) if same else ()))
    stuck = stuck_pod(waited_for, world.now)
    return job_status(
        Sight(
            key=job.key,
            uid=job.uid,
            generation=job.generation,
            record=decision.record,
            former=job.status,
            conditions=explained(conditions(world, _around(seen, obstacle, stuck)), stuck),
            now=world.now,
            deleting=job.deleting is not None,
            driver=driver,
            exit=_exit(seen),
            progress=seen.answer.progress if seen.answer is not None and same else None,
            address=_address(driver),
            executors=seen.executors,
            partitions=_partitions(decision.record, seen.intent.spec, newest),
            spark_version=_spark_version(seen.intent.spec, newest),
            savepoint=newest,
            source_id=_source_id(seen, decision.record),
        )
    )


def _source_id(seen: Observation, record: Record) -> str | None:
    """Of the savepoint that the run began with, while its resource is there."""
    name = record.run.source.savepoint if record.run is not None else None
    found = (body for body in seen.stock.everything if metadata(body)["name"] == name)
    body = next(found, None)
    return status_of(body).get("id") if body is not None else None


def _same_run(before: Record, after: Record) -> bool:
    if before.run is None or after.run is None:
        return False
    return (before.run.epoch, before.run.attempt) == (after.run.epoch, after.run.attempt)


def _worker(seen: Observation, record: Record) -> Object | None:
    """The worker pod that the operation waits for."""
    operation = record.operation
    name = worker_name(seen.job.key.name, operation) if operation is not None else None
    return next((pod for pod in seen.pods if metadata(pod)["name"] == name), None)


def _executors(seen: Observation) -> list[Object]:
    """Of a run that has none yet: that some of many wait for room is nothing to worry about."""
    run = seen.job.record.run
    if run is None or seen.executors:
        return []
    wanted = ("executor", str(run.epoch), str(run.attempt))
    return [
        pod
        for pod in seen.pods
        if tuple(label(pod, key) for key in (ROLE, EPOCH, ATTEMPT)) == wanted
    ]


def _around(seen: Observation, obstacle: Obstacle | None, stuck: Stuck | None) -> Circumstances:
    spec, intent = seen.intent.spec, seen.intent
    refused = obstacle.message if obstacle is not None else ""
    health = None
    if spec is not None and spec.savepoints is not None:
        health = seen.stock.health(due=_overdue(seen, spec))
    return Circumstances(
        invalid=intent.invalid,
        script_missing=intent.script_missing,
        obstacle=seen.leftover or refused or (stuck.words if stuck and stuck.lasts else ""),
        stalled_after=_stalled_after(spec),
        savepoints=health,
    )


def _stalled_after(spec: JobSpec | None) -> timedelta:
    interval = spec.checkpoint.interval if spec is not None else None
    if interval is None:
        return _STALLED
    return max(_STALLED, _INTERVALS * interval.timedelta)


def _overdue(seen: Observation, spec: JobSpec) -> datetime | None:
    schedule = spec.savepoints.schedule if spec.savepoints is not None else None
    if schedule is None:
        return None
    return late_since(
        schedule,
        seen.world.now,
        running_since=seen.job.record.healthy_since,
        last=seen.stock.periodic,
    )


def _exit(seen: Observation) -> DriverExit | None:
    run = seen.job.record.run
    pod = seen.world.driver(run) if run is not None else None
    return pod.exit if pod is not None else None


def _address(driver: Object | None) -> str | None:
    address = (driver or {}).get("status", {}).get("podIP")
    return f"{address}:{AGENT_PORT}" if address else None


def _partitions(record: Record, spec: JobSpec | None, newest: Object | None) -> int | None:
    """As the revision that runs says, which need not be the spec's, else as the newest savepoint
    has them."""
    said = spec.state.partitions if spec is not None else None
    if record.run is not None and record.run.revision.fixed:
        said = record.run.revision.partitions
    if said is not None:
        return said
    queries = status_of(newest).get("queries") or [] if newest is not None else []
    return max((query.get("partitions") or 0 for query in queries), default=0) or None


def _spark_version(spec: JobSpec | None, newest: Object | None) -> str | None:
    said = spec.spark_version if spec is not None else None
    return said or (status_of(newest).get("sparkVersion") if newest is not None else None)
