"""SparkSavepoint: one savepoint of one job, as a resource."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from sparkpoint.api.common import (
    API_VERSION,
    Condition,
    FreeForm,
    ManifestReference,
    Metadata,
    Record,
    StatusRecord,
    keyed_by,
)
from sparkpoint.api.scalars import (
    Count,
    Duration,
    JobName,
    OnDelete,
    RepositoryName,
    Text,
    Trigger,
    Verification,
)

__all__ = [
    "JobReference",
    "SavepointPhase",
    "SavepointQuery",
    "SavepointRetention",
    "SavepointSpec",
    "SavepointStatus",
    "SourceOffset",
    "SparkSavepoint",
    "Verified",
]


class JobReference(Record):
    """A StatefulSparkJob of the same namespace."""

    name: JobName
    """Name of the job."""


class SavepointRetention(Record):
    """How long this one stays, whatever the job's rules say. At most one of the fields."""

    ttl: Duration | None = None
    """Removed this long after it was complete."""
    keep_until: AwareDatetime | None = None
    """Removed at this time."""
    keep_forever: bool = False
    """Never removed by a rule."""


class SavepointSpec(Record):
    """What to capture, and what becomes of it."""

    job_ref: JobReference
    """The job to capture. With `existing`: the job whose image, account and storage do the work."""
    trigger: Trigger = Trigger.MANUAL
    """Who asked for it; retention goes by it."""
    existing: ManifestReference | None = None
    """A savepoint that a repository already holds: it is checked and made known, and nothing is
    captured."""
    retention: SavepointRetention = SavepointRetention()
    """How long it stays, whatever the job's rules say."""
    tags: Annotated[
        tuple[RepositoryName, ...],
        Field(max_length=32, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ] = ()
    """Words to find it by. A savepoint with a tag is kept."""
    on_delete: OnDelete = OnDelete.RETAIN
    """Delete: its data leaves the repository with this resource. Retain: the data stays."""
    verify: Verification | None = None
    """Skip, Content or Deep; by default what the job says in `savepoints.verify`."""
    backoff_limit: Annotated[int, Field(ge=0, le=100)] = 3
    """How often a failed capture is tried again."""


class SavepointPhase(StrEnum):
    """How far a savepoint is."""

    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    COMPLETED = "Completed"
    FAILED = "Failed"


class SourceOffset(StatusRecord):
    """How far one source was read."""

    source: str
    """Number or name of the source in the query."""
    offset: Text | None = None
    """Offset as the source writes it; long ones are cut."""


class SavepointQuery(StatusRecord):
    """One streaming query in the savepoint."""

    name: str
    """Name of the query."""
    batch: int
    """Its last committed batch."""
    partitions: Count | None = None
    """Its state partitions."""
    rows: Count | None = None
    """Rows in its state."""
    watermark: AwareDatetime | None = None
    """Its watermark."""
    offsets: tuple[SourceOffset, ...] = ()
    """How far each of its sources was read."""


class Verified(StatusRecord):
    """The last check of the savepoint."""

    at: AwareDatetime
    """When it was checked."""
    level: Verification
    """How."""
    good: bool
    """Whether it can be restored."""
    verdict: str
    """In one word, for people: Content, Deep or Damaged."""
    problems: tuple[Text, ...] = ()
    """What is wrong with it."""


class SavepointStatus(StatusRecord):
    """What the operator has seen and done."""

    phase: SavepointPhase | None = None
    """How far it is."""
    conditions: Annotated[
        tuple[Condition, ...],
        Field(
            max_length=16,
            json_schema_extra=keyed_by("type"),
        ),
    ] = ()
    """Accepted, Complete, Verified."""
    observed_generation: int | None = None
    """Newest generation of the spec that was looked at."""
    id: str | None = None
    """Digest of the manifest: the same savepoint has the same id everywhere."""
    name: str | None = None
    """Its name in the repository."""
    repository: str | None = None
    """The repository."""
    location: str | None = None
    """The manifest in the repository."""
    parent: str | None = None
    """The savepoint before it."""
    revision: str | None = None
    """Revision of the job that it was taken of."""
    spark_version: str | None = None
    """Spark that wrote the state."""
    epoch: int | None = None
    """Epoch of the job that it was taken of."""
    batch: int | None = None
    """Its batch; the lowest of several queries."""
    queries: Annotated[
        tuple[SavepointQuery, ...],
        Field(
            max_length=1000,
            json_schema_extra=keyed_by("name"),
        ),
    ] = ()
    """The streaming queries in it."""
    clean: bool | None = None
    """Whether no batch was in flight."""
    files: Count | None = None
    """Files that it consists of."""
    bytes: Count | None = None
    """Bytes that a restore brings back."""
    new_bytes: Count | None = None
    """Bytes that it added to the repository."""
    size: str | None = None
    """`bytes` for people: 1.2 GiB."""
    new_size: str | None = None
    """`newBytes` for people."""
    freed_bytes: Count | None = None
    """Bytes that left the repository when its data was removed: of a resource that is about to go.
    What other savepoints need stays; what earlier ones left may be among it."""
    duration: str | None = None
    """How long the capture took: 2.4s."""
    verified: Verified | None = None
    """The last check."""
    kept_because: tuple[str, ...] = ()
    """Why retention keeps it."""
    expires_at: AwareDatetime | None = None
    """When retention removes it, as far as that is known."""
    failures: Count = 0
    """Failed tries."""
    message: Text = ""
    """What it waits for, or why it failed and what to do."""
    started_at: AwareDatetime | None = None
    """When the capture began."""
    completed_at: AwareDatetime | None = None
    """When it was complete."""
    record: FreeForm = Field(default_factory=dict)
    """The operator's write-ahead log. Its content belongs to the operator; do not edit it."""


class SparkSavepoint(Record):
    """A savepoint of a StatefulSparkJob: immutable, self-contained, with a parent."""

    api_version: Literal["sparkpoint.dev/v1alpha1"] = API_VERSION
    kind: Literal["SparkSavepoint"] = "SparkSavepoint"
    metadata: Metadata
    spec: SavepointSpec
    """What to capture, and what becomes of it."""
    status: SavepointStatus = SavepointStatus()
    """What the operator has seen and done."""
