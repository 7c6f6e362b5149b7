"""SparkSavepoints as objects: how one is made for an operation, and what its status says."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sparkpoint.api.common import API_VERSION
from sparkpoint.api.job import JobSpec
from sparkpoint.api.savepoint import SavepointPhase, SavepointQuery, SavepointStatus
from sparkpoint.api.scalars import OnDelete, Trigger
from sparkpoint.controller.cluster import Object
from sparkpoint.controller.correlation import mark
from sparkpoint.controller.keys import FINALIZER, JOB, OPERATION
from sparkpoint.controller.objects import Owner
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Operation
from sparkpoint.runtime.model import SavepointSummary
from sparkpoint.worker.model import Details

__all__ = [
    "captured_status",
    "completed_status",
    "operation_savepoint",
    "size",
    "trigger_of",
]

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP: Final = 1024


def trigger_of(operation: Operation) -> Trigger:
    """Who asks for the savepoint of an operation."""
    return Trigger.FINAL if operation.kind is Kind.DELETE else Trigger.UPGRADE


def operation_savepoint(owner: Owner, spec: JobSpec, operation: Operation, name: str) -> Object:
    """The SparkSavepoint of an operation. Not owned by the job: it is there to outlive it."""
    on_delete = spec.savepoints.on_delete if spec.savepoints is not None else OnDelete.RETAIN
    body: Object = {
        "apiVersion": API_VERSION,
        "kind": "SparkSavepoint",
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            # From the beginning: it may be deleted before its first pass, and has data by then.
            "finalizers": [FINALIZER],
            "labels": {
                "app.kubernetes.io/managed-by": "sparkpoint",
                JOB: owner.name,
                OPERATION: operation.id,
            },
        },
        "spec": {
            "jobRef": {"name": owner.name},
            "trigger": trigger_of(operation).value,
            "onDelete": on_delete.value,
        },
    }
    return mark(body, owner.uid, operation.id)


def completed_status(
    former: Mapping[str, Any],
    summary: SavepointSummary,
    *,
    repository: str,
    now: datetime,
    since: datetime | None,
    details: Details | None = None,
    revision: str | None = None,
    epoch: int | None = None,
) -> dict[str, Any]:
    """A savepoint that is in the repository, with all that is known of it.

    `since`: when it was asked for; None of one that was there before.
    """
    queries = _queries(summary, details)
    status = SavepointStatus(
        phase=SavepointPhase.COMPLETED,
        id=summary.id,
        name=summary.name,
        repository=repository,
        location=summary.location or None,
        parent=summary.parent,
        revision=(details.revision if details is not None else None) or revision,
        spark_version=details.spark_version if details is not None else None,
        epoch=epoch,
        batch=min(summary.batches.values(), default=None),
        queries=queries,
        clean=not summary.pending,
        files=summary.files,
        bytes=summary.bytes,
        new_bytes=summary.new_bytes,
        size=size(summary.bytes),
        new_size=size(summary.new_bytes),
        duration=f"{summary.seconds:.1f}s",
        completed_at=_by_our_clock(summary.created or now, since, now),
        message="",
    )
    return _over(former, status)


def _by_our_clock(created: datetime, since: datetime | None, now: datetime) -> datetime:
    """The clock of the driver's node may be wrong. Nothing here is of the future, and nothing was
    complete before it was asked for: by these times retention tells which one is the newest."""
    return min(max(created, since or created), now)


def captured_status(
    former: Mapping[str, Any],
    *,
    name: str,
    batches: Mapping[str, int],
    repository: str,
    now: datetime,
) -> dict[str, Any]:
    """The same where only the driver's last word is known: its agent was gone before we looked."""
    status = SavepointStatus(
        phase=SavepointPhase.COMPLETED,
        name=name,
        repository=repository,
        batch=min(batches.values(), default=None),
        queries=tuple(SavepointQuery(name=each, batch=batches[each]) for each in sorted(batches)),
        completed_at=now,
        message="",
    )
    return _over(former, status)


def _over(former: Mapping[str, Any], status: SavepointStatus) -> dict[str, Any]:
    fresh = status.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
    return {**former, **fresh}


def _queries(summary: SavepointSummary, details: Details | None) -> tuple[SavepointQuery, ...]:
    known = {query.name: query for query in details.queries} if details is not None else {}
    return tuple(
        SavepointQuery(
            name=name,
            batch=batch,
            partitions=known[name].partitions if name in known else None,
            rows=known[name].rows if name in known else None,
            watermark=known[name].watermark if name in known else None,
        )
        for name, batch in sorted(summary.batches.items())
    )


def size(count: int) -> str:
    """Bytes for people."""
    amount, index = float(count), 0
    while amount >= _STEP and index < len(_UNITS) - 1:
        amount, index = amount / _STEP, index + 1
    return f"{amount:.1f} {_UNITS[index]}" if index else f"{count} B"
