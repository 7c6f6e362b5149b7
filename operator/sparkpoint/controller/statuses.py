"""A job's status: the record, which the operator goes by, and the same for people to read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from sparkpoint.api.common import Condition as WrittenCondition
from sparkpoint.api.common import ConditionStatus
from sparkpoint.api.jobstatus import (
    DriverStatus,
    JobPhase,
    JobStatus,
    LastOperation,
    Operation,
    PhaseDuration,
    QueryStatus,
    RestoredFrom,
    Revisions,
    SavepointReference,
)
from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.correlation import correlation_id
from sparkpoint.controller.keys import JOB, ROLE, Key
from sparkpoint.controller.podfacts import parse_time
from sparkpoint.controller.records import write_record
from sparkpoint.controller.savepointfacts import completed_at, status_of
from sparkpoint.lifecycle.conditions import Aspect, Condition, Reason, Status, job_word, since_when
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Begin, Record
from sparkpoint.lifecycle.world import DriverExit
from sparkpoint.runtime.model import Progress, QueryProgress

__all__ = ["Sight", "job_status", "rate", "with_degraded", "without_progress"]

_LONGEST: Final = 4096
"""Characters of a text in a status."""
_PROGRESS: Final = ("queries", "batch", "rate", "executors")
"""Fields that change all the time: not worth a write each time."""
_THOUSAND: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a status is made from."""

    key: Key
    uid: str
    generation: int
    record: Record
    """As it is to be written."""
    former: Mapping[str, Any]
    """The status as it was written last."""
    conditions: Sequence[Condition]
    now: datetime
    deleting: bool = False
    driver: Object | None = None
    """The pod of the run that was written down before."""
    exit: DriverExit | None = None
    """How the last driver ended, if one has."""
    progress: Progress | None = None
    address: str | None = None
    executors: int = 0
    partitions: int | None = None
    spark_version: str | None = None
    savepoint: Object | None = None
    """The newest complete one."""
    source_id: str | None = None
    """Of the savepoint that the run began with, if it is known here."""


def job_status(sight: Sight) -> dict[str, Any]:
    """The whole status, as JSON."""
    record, former = sight.record, _former(sight.former)
    run = record.run
    queries = _queries(sight, former)
    status = JobStatus(
        phase=JobPhase(job_word(record, deleting=sight.deleting).value),
        conditions=_conditions(sight, former),
        observed_generation=sight.generation,
        epoch=run.epoch if run is not None else None,
        attempt=run.attempt if run is not None else None,
        driver=_driver(sight, former.driver),
        queries=queries,
        batch=min((q.batch for q in queries if q.batch is not None), default=None),
        rate=rate(sight.progress) if sight.progress is not None else None,
        executors=sight.executors,
        selector=f"{JOB}={sight.key.name},{ROLE}=executor",
        partitions=sight.partitions,
        spark_version=sight.spark_version or former.spark_version,
        last_savepoint=_savepoint(sight.savepoint),
        restored_from=_restored_from(sight, former),
        operation=_operation(record, sight.uid),
        last_operation=_last_operation(record, sight.uid),
        revisions=_revisions(record),
        record=write_record(record),
    )
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)


def without_progress(status: Mapping[str, Any]) -> dict[str, Any]:
    """What is worth a write as soon as it changes."""
    return {name: value for name, value in status.items() if name not in _PROGRESS}


def rate(progress: Progress) -> str:
    """Rows per second over all queries, in short."""
    value = sum(query.processed_rows_per_second for query in progress.queries if query.active)
    for unit in ("", "k", "M", "G"):
        if value < _THOUSAND or unit == "G":
            break
        value /= _THOUSAND
    return f"{value:.1f}{unit}/s" if unit else f"{value:.0f}/s"


def _former(written: Mapping[str, Any]) -> JobStatus:
    """What another version of the operator wrote is not worth stopping for; the record is."""
    try:
        return JobStatus.model_validate({k: v for k, v in written.items() if k != "record"})
    except ValidationError:
        return JobStatus()


def _conditions(sight: Sight, former: JobStatus) -> tuple[WrittenCondition, ...]:
    known = [each for each in map(_read_condition, former.conditions) if each is not None]
    return tuple(
        WrittenCondition(
            type=each.aspect.value,
            status=ConditionStatus(each.status.value),
            reason=each.reason.value,
            message=_cut(each.message),
            observed_generation=sight.generation,
            last_transition_time=each.since or sight.now,
        )
        for each in since_when(sight.conditions, known, sight.now)
    )


def with_degraded(written: dict[str, Any], message: str, now: datetime) -> dict[str, Any] | None:
    """A status that cannot be read, saying so; None if it does already. Nothing else is changed."""
    told = WrittenCondition(
        type=Aspect.DEGRADED.value,
        status=ConditionStatus.TRUE,
        reason=Reason.RECORD_UNREADABLE.value,
        message=_cut(message),
        last_transition_time=now,
    ).model_dump(mode="json", by_alias=True, exclude_none=True)
    listed = [each for each in written.get("conditions") or [] if isinstance(each, dict)]
    before = next((each for each in listed if each.get("type") == told["type"]), {})
    if all(before.get(field) == told[field] for field in ("status", "reason", "message")):
        return None
    others = [each for each in listed if each is not before]
    return {**written, "conditions": [*others, told]}


def _read_condition(written: WrittenCondition) -> Condition | None:
    try:
        return Condition(
            aspect=Aspect(written.type),
            status=Status(written.status.value),
            reason=Reason(written.reason),
            since=written.last_transition_time,
        )
    except ValueError:
        return None


def _driver(sight: Sight, former: DriverStatus) -> DriverStatus:
    pod, ended, record = sight.driver, sight.exit, sight.record
    status: dict[str, Any] = (pod or {}).get("status") or {}
    phase = sight.progress.phase if sight.progress is not None else status.get("phase")
    return DriverStatus(
        pod=metadata(pod)["name"] if pod is not None else None,
        uid=metadata(pod)["uid"] if pod is not None else None,
        node=(pod or {}).get("spec", {}).get("nodeName"),
        address=sight.address,
        phase=phase,
        started_at=parse_time(status.get("startTime")),
        exit_code=ended.code if ended is not None else former.exit_code,
        reason=_cut(ended.reason) if ended is not None else former.reason,
        clean=ended.clean if ended is not None else former.clean,
        last_exception=_exception(ended, former),
        failures=record.failures,
        next_attempt_at=record.due if record.due and record.due > sight.now else None,
        restarts=former.restarts + _is_new_recovery(sight),
    )


def _exception(ended: DriverExit | None, former: DriverStatus) -> str | None:
    if ended is None:
        return former.last_exception
    return None if ended.clean or not ended.message else _cut(ended.message)


def _is_new_recovery(sight: Sight) -> int:
    operation = sight.record.operation
    if operation is None or operation.kind is not Kind.RECOVER:
        return 0
    known = (sight.former.get("operation") or {}).get("id")
    return int(known != operation.id)


def _queries(sight: Sight, former: JobStatus) -> tuple[QueryStatus, ...]:
    """Of a job that does not answer, what was known last."""
    if sight.progress is not None and sight.progress.queries:
        run = sight.record.run
        same = run is not None and run.epoch == former.epoch
        known = {query.name: query.batch for query in former.queries} if same else {}
        return tuple(_query(query, known.get(query.name)) for query in sight.progress.queries)
    rates = ("input_rows_per_second", "processed_rows_per_second", "batch_seconds")
    quiet = {"active": False, **dict.fromkeys(rates)}
    return tuple(query.model_copy(update=quiet) for query in former.queries)


def _query(query: QueryProgress, known: int | None) -> QueryStatus:
    """A driver knows its own batches alone; what the one before it has committed still holds."""
    return QueryStatus(
        name=query.name,
        active=query.active,
        batch=query.batch if query.batch is not None else known,
        input_rows_per_second=round(query.input_rows_per_second, 1),
        processed_rows_per_second=round(query.processed_rows_per_second, 1),
        batch_seconds=round(query.batch_seconds, 3),
        state_rows=query.state_rows,
        state_bytes=query.state_bytes,
        watermark=query.watermark,
        last_commit_time=query.last_commit,
    )


def _savepoint(body: Object | None) -> SavepointReference | None:
    if body is None:
        return None
    status = status_of(body)
    return SavepointReference(
        name=metadata(body)["name"],
        id=status.get("id"),
        batch=status.get("batch"),
        completed_at=completed_at(body),
    )


def _restored_from(sight: Sight, former: JobStatus) -> RestoredFrom | None:
    run = sight.record.run
    if run is None or run.source.begin is not Begin.SAVEPOINT or run.source.savepoint is None:
        return None
    known = former.restored_from
    same = known is not None and former.epoch == run.epoch and known.name == run.source.savepoint
    return RestoredFrom(
        name=run.source.savepoint,
        id=sight.source_id or (known.id if known is not None and same else None),
        sink=run.source.sink,
        at=known.at if known is not None and same else sight.now,
    )


def _operation(record: Record, uid: str) -> Operation | None:
    operation = record.operation
    if operation is None:
        return None
    target = operation.target
    return Operation(
        id=operation.id,
        correlation_id=correlation_id(uid, operation.id),
        kind=operation.kind.value,
        phase=operation.phase.value,
        target_generation=operation.generation,
        target_revision=target.revision.name if target is not None else None,
        epoch=target.epoch if target is not None else None,
        attempt=target.attempt if target is not None else None,
        savepoint=operation.savepoint,
        stopped_at=operation.stopped,
        started_at=operation.started,
        phase_started_at=operation.phase_started,
        attempts=operation.tries,
        message=_cut(operation.message),
    )


def _last_operation(record: Record, uid: str) -> LastOperation | None:
    last = record.last
    if last is None:
        return None
    return LastOperation(
        id=last.id,
        correlation_id=correlation_id(uid, last.id),
        kind=last.kind.value,
        result=last.result.value,
        target_generation=last.generation,
        started_at=last.started,
        finished_at=last.finished,
        phases=tuple(
            PhaseDuration(phase=phase.value, seconds=round(seconds, 3))
            for phase, seconds in last.phases
        ),
        downtime_seconds=last.downtime,
        message=_cut(last.message),
    )


def _revisions(record: Record) -> Revisions:
    held = record.held
    failed = held is not None and held.reason == Reason.ROLLED_BACK.value
    return Revisions(
        current=record.run.revision.name if record.run is not None else None,
        stable=record.stable.revision.name if record.stable is not None else None,
        failed=held.revision if held is not None and failed else None,
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
