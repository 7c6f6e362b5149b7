"""The status of a StatefulSparkJob: what was seen, what is being done, what was done.

`record` is the write-ahead log, which only the operator reads; the rest is for people and programs.
Every field of the status itself is optional, so that more can be added.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from sparkpoint.api.common import Condition, FreeForm, StatusRecord, keyed_by
from sparkpoint.api.scalars import Count, Text

__all__ = [
    "ConditionType",
    "DriverStatus",
    "JobPhase",
    "JobStatus",
    "LastOperation",
    "Operation",
    "PhaseDuration",
    "QueryStatus",
    "RestoredFrom",
    "Revisions",
    "SavepointReference",
]


class JobPhase(StrEnum):
    """Where the job is, in one word."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    UPGRADING = "Upgrading"
    RESCALING = "Rescaling"
    RESTARTING = "Restarting"
    REPARTITIONING = "Repartitioning"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    RESTORING = "Restoring"
    ROLLING_BACK = "RollingBack"
    RECOVERING = "Recovering"
    COMPLETED = "Completed"
    FAILED = "Failed"
    DELETING = "Deleting"


class ConditionType(StrEnum):
    """The conditions of a job."""

    ACCEPTED = "Accepted"
    """The spec is valid and is what is being reconciled."""
    READY = "Ready"
    """The queries commit batches."""
    PROGRESSING = "Progressing"
    """An operation is under way."""
    DEGRADED = "Degraded"
    """Something needs a person: failed operation, failing driver, rolled back."""
    COMPATIBLE = "Compatible"
    """The code of the spec can read the state."""
    SAVEPOINT_HEALTHY = "SavepointHealthy"
    """The last savepoint succeeded, and is as recent as the schedule wants."""


class DriverStatus(StatusRecord):
    """The newest driver pod."""

    pod: str | None = None
    """Name of the pod."""
    uid: str | None = None
    """Uid of the pod."""
    node: str | None = None
    """Node that it runs on."""
    address: str | None = None
    """Where its agent listens, host:port."""
    phase: str | None = None
    """What its agent says: starting, rehearsing, gated, running, stopping, ended; else the pod's
    phase."""
    started_at: AwareDatetime | None = None
    """When it started."""
    exit_code: int | None = None
    """Exit code of the last driver that ended."""
    reason: Text | None = None
    """Why the last driver ended: its own last word, or Kubernetes' (OOMKilled, Evicted)."""
    clean: bool | None = None
    """Whether the last driver that ended stood at a boundary."""
    last_exception: Text | None = None
    """The exception that ended the last driver, in short."""
    failures: Count = 0
    """Failed attempts in a row; nought again after `restart.resetAfter` of health."""
    next_attempt_at: AwareDatetime | None = None
    """When the next attempt starts, while one is being waited for."""
    restarts: Count = 0
    """Restarts after failures in the life of the job."""


class QueryStatus(StatusRecord):
    """One streaming query."""

    name: str
    """Name of the query."""
    active: bool | None = None
    """Whether it runs."""
    batch: int | None = None
    """Last committed batch."""
    input_rows_per_second: float | None = None
    """Rows that arrive."""
    processed_rows_per_second: float | None = None
    """Rows that are processed."""
    batch_seconds: float | None = None
    """How long the last batch took."""
    state_rows: Count | None = None
    """Rows in its state."""
    state_bytes: Count | None = None
    """Memory of its state stores."""
    watermark: str | None = None
    """Its watermark."""
    last_commit_time: AwareDatetime | None = None
    """When it committed last."""


class SavepointReference(StatusRecord):
    """A savepoint of this job."""

    name: str
    """The SparkSavepoint."""
    id: str | None = None
    """Digest of its manifest."""
    batch: int | None = None
    """Its batch; the lowest of several queries."""
    completed_at: AwareDatetime | None = None
    """When it was complete."""


class RestoredFrom(StatusRecord):
    """What the present epoch began with."""

    name: str
    """Savepoint's name, or the adopted checkpoint's directory."""
    id: str | None = None
    """Digest of the savepoint's manifest."""
    sink: str | None = None
    """How it stands to the output that was there: Resume, Rewind or Fork."""
    nonce: int | None = None
    """The nonce of `restoreFrom` that was acted on."""
    at: AwareDatetime | None = None
    """When."""


class Operation(StatusRecord):
    """What is being done, for people to read; the operator itself goes by `record`."""

    id: str
    """Deterministic: the same operation has the same id."""
    correlation_id: str | None = None
    """By which its Events, its pods and its lines in the logs of operator and agent are found."""
    kind: str
    """What is being done: Start, Upgrade, Rescale, Restart, Suspend, Restore, Rollback, …"""
    phase: str
    """How far it is: Prepare, Stop, Capture, Launch, Observe, …"""
    target_generation: int | None = None
    """Generation of the spec that it leads to."""
    target_revision: str | None = None
    """Revision that it leads to."""
    epoch: int | None = None
    """Epoch that it leads to."""
    attempt: int | None = None
    """Attempt that it leads to."""
    savepoint: str | None = None
    """SparkSavepoint that it takes or restores."""
    stopped_at: AwareDatetime | None = None
    """Last commit before the stop: where downtime begins."""
    started_at: AwareDatetime
    """When it began."""
    phase_started_at: AwareDatetime
    """When its phase began."""
    attempts: Count = 0
    """How often the phase was tried."""
    message: Text = ""
    """What it waits for, or what went wrong last."""


class PhaseDuration(StatusRecord):
    """How long one phase took."""

    phase: str
    """Which phase."""
    seconds: float
    """How long it took."""


class LastOperation(StatusRecord):
    """The operation before."""

    id: str
    """Its id."""
    correlation_id: str | None = None
    """By which its Events, its pods and its lines in the logs of operator and agent are found."""
    kind: str
    """What was done."""
    result: str
    """How it ended: Succeeded, Failed, RolledBack or Superseded."""
    target_generation: int | None = None
    """Generation of the spec that it led to."""
    started_at: AwareDatetime
    """When it began."""
    finished_at: AwareDatetime
    """When it ended."""
    phases: Annotated[tuple[PhaseDuration, ...], Field(json_schema_extra=keyed_by("phase"))] = ()
    """How long each phase took."""
    downtime_seconds: float | None = None
    """From the last commit before to the first commit after."""
    message: Text = ""
    """What was done, or why it failed and what to do."""


class Revisions(StatusRecord):
    """Stored specs, by name."""

    current: str | None = None
    """The one that the running driver has."""
    stable: str | None = None
    """The last one that proved itself: where a rollback goes."""
    failed: str | None = None
    """The one that was rolled back from: not tried again until the spec changes."""


class JobStatus(StatusRecord):
    """What the operator has seen and done."""

    phase: JobPhase | None = None
    """Where the job is, in one word."""
    conditions: Annotated[
        tuple[Condition, ...], Field(max_length=16, json_schema_extra=keyed_by("type"))
    ] = ()
    """Accepted, Ready, Progressing, Degraded, Compatible, SavepointHealthy."""
    observed_generation: int | None = None
    """Newest generation of the spec that was looked at."""
    epoch: int | None = None
    """Number of the checkpoint directory in use."""
    attempt: int | None = None
    """Number of the driver pod in this epoch."""
    driver: DriverStatus = DriverStatus()
    """The newest driver pod."""
    queries: Annotated[
        tuple[QueryStatus, ...], Field(max_length=1000, json_schema_extra=keyed_by("name"))
    ] = ()
    """The streaming queries."""
    batch: int | None = None
    """Last committed batch; of several queries the lowest."""
    rate: str | None = None
    """Rows per second that are processed, in short: 12.3k/s."""
    executors: Count | None = None
    """Executor pods that run."""
    selector: str | None = None
    """Selects the executor pods, for `kubectl scale` and autoscalers."""
    partitions: Count | None = None
    """State partitions of the checkpoint in use."""
    spark_version: str | None = None
    """Spark version that the driver says it is."""
    last_savepoint: SavepointReference | None = None
    """The newest complete savepoint."""
    restored_from: RestoredFrom | None = None
    """What the present epoch began with."""
    operation: Operation | None = None
    """What is being done, for people to read."""
    last_operation: LastOperation | None = None
    """The operation before."""
    revisions: Revisions = Revisions()
    """Stored specs."""
    record: FreeForm = Field(default_factory=dict)
    """The operator's write-ahead log: written before each effect, so that an operator that died can
    be followed by another. Its content belongs to the operator; do not edit it."""
