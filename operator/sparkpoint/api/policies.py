"""What a job decides about its state: where it lives, how it is captured, changed, restored."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from sparkpoint.api.common import ManifestReference, Record
from sparkpoint.api.cron import Cron
from sparkpoint.api.scalars import (
    Duration,
    Location,
    Nonce,
    ObjectName,
    OnDelete,
    QueryName,
    Url,
    Verification,
)

__all__ = [
    "Backoff",
    "Checkpoint",
    "Compatibility",
    "Guarantee",
    "Handover",
    "OnQueryFailure",
    "Restart",
    "RestartPolicy",
    "RestoreFrom",
    "Retention",
    "RetentionOverrides",
    "RetentionRule",
    "Rollback",
    "RollbackTarget",
    "Savepoints",
    "SinkMode",
    "State",
    "StateProvider",
    "Upgrade",
    "UpgradeMode",
]


class StateProvider(StrEnum):
    """Where Spark keeps state between two batches."""

    HDFS_BACKED = "HDFSBacked"
    """In the executors' heap; a file per batch and partition in the checkpoint."""
    ROCKSDB = "RocksDB"
    """In RocksDB on the executors' disks; larger than memory."""


class State(Record):
    """The state stores. What is left out stays as the restored checkpoint has it."""

    provider: StateProvider | None = None
    """State store. A new job gets RocksDB. It cannot change while the state is kept."""
    partitions: Annotated[int, Field(ge=1, le=100000)] | None = None
    """State partitions (Spark's shuffle partitions). A new job gets Spark's 200. A change
    repartitions a copy of the state, with undo; it needs `savepoints.repository`."""
    changelog: bool | None = None
    """RocksDB: write a batch's changes instead of a snapshot. A new job does."""
    format_version: Literal[1, 2] | None = None
    """RocksDB: format of the checkpointed state. A new job gets what its Spark version prefers."""


class Guarantee(StrEnum):
    """What the job promises about its output."""

    EXACTLY_ONCE = "ExactlyOnce"
    AT_LEAST_ONCE = "AtLeastOnce"


class OnQueryFailure(StrEnum):
    """What the death of one query means for the driver."""

    FAIL = "Fail"
    IGNORE = "Ignore"


class Checkpoint(Record):
    """Where and how micro-batches are committed."""

    location: Location
    """Directory for the checkpoints: a path below one of `storage.volumes`, or s3://bucket/prefix.
    The job keeps to `<location>/<namespace>/<name>`, with one directory per epoch, such as
    `epoch-1-3f9a2c7b`; the end is a piece of the job's uid. Immutable."""
    interval: Duration | None = None
    """Trigger interval for queries whose script sets none; health is measured against it."""
    timeout: Duration = Duration("60s")
    """How long a running batch may take to commit when the job stops at a boundary: 24h
    at most."""
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    """ExactlyOnce: sources and sinks that cannot keep it are refused where they can be known.
    AtLeastOnce: they are not."""
    on_failure: OnQueryFailure = OnQueryFailure.FAIL
    """Fail: a query that dies ends the driver, and `restart` applies. Ignore: it is left to the
    script."""
    on_delete: OnDelete = OnDelete.RETAIN
    """Whether the checkpoints stay when the job is deleted."""
    adopt: Location | None = None
    """A checkpoint that another job or another tool left behind, to start from: the directory of an
    epoch, with a folder per query, or that of a single query. It is captured into the repository
    and restored; its own directory is only read. Read once, at the first start."""
    adopt_as: QueryName | None = None
    """How the job calls the query, where `adopt` is the checkpoint of a single one: its
    `queryName`, or `query` if the script gives it none."""


class RetentionRule(Record):
    """Which savepoints stay. Each rule only ever keeps; the newest is always kept."""

    last: Annotated[int, Field(ge=1, le=10000)] | None = None
    """The last so many."""
    hourly: Annotated[int, Field(ge=1, le=10000)] | None = None
    """The newest of each of the last so many hours that have one."""
    daily: Annotated[int, Field(ge=1, le=10000)] | None = None
    """The newest of each of the last so many days that have one."""
    weekly: Annotated[int, Field(ge=1, le=10000)] | None = None
    """The newest of each of the last so many weeks that have one."""
    monthly: Annotated[int, Field(ge=1, le=10000)] | None = None
    """The newest of each of the last so many months that have one."""
    max_age: Duration | None = None
    """Nothing older is kept by the rules above; alone, it keeps what is younger."""


class RetentionOverrides(Record):
    """Other rules for savepoints by who asked for them."""

    manual: RetentionRule | None = None
    """For savepoints that a person asked for. Without it they stay until they are deleted."""
    periodic: RetentionRule | None = None
    """For savepoints of a schedule."""
    upgrade: RetentionRule | None = None
    """For savepoints of upgrades, suspensions and other operations."""
    final: RetentionRule | None = None
    """For savepoints taken when a job was deleted. Without it they stay until they are deleted."""
    drill: RetentionRule | None = None
    """For savepoints of restore drills."""


class Retention(RetentionRule):
    """Which savepoints stay. Whatever has a tag, or is used by a job, stays in any case."""

    overrides: RetentionOverrides | None = None
    """Other rules by who asked for the savepoint."""


class Savepoints(Record):
    """Where savepoints go, when they are taken, how long they stay."""

    repository: Location
    """A path below one of `storage.volumes`, or s3://bucket/prefix. Jobs may share a repository."""
    endpoint_url: Url | None = None
    """S3 endpoint of the repository, where it differs from `storage.endpointUrl`."""
    schedule: Cron | None = None
    """When savepoints are taken without being asked for: five fields of cron, in UTC."""
    retention: Retention = Retention(last=10)
    """Which savepoints stay."""
    verify: Verification = Verification.SKIP
    """Skip, Content (read every object again and compare digests) or Deep (and load the state with
    Spark)."""
    on_delete: OnDelete = OnDelete.RETAIN
    """Whether savepoints stay when the job is deleted."""
    final_on_delete: bool = False
    """Take a last savepoint when the job is deleted."""


class UpgradeMode(StrEnum):
    """What a changed job starts from."""

    SAVEPOINT = "Savepoint"
    LAST_COMMIT = "LastCommit"
    STATELESS = "Stateless"


class Handover(StrEnum):
    """When the new driver starts."""

    WARM = "Warm"
    COLD = "Cold"


class Compatibility(StrEnum):
    """What a failed compatibility check does."""

    STRICT = "Strict"
    ENFORCE = "Enforce"
    WARN = "Warn"
    SKIP = "Skip"


class RollbackTarget(StrEnum):
    """Which state the former revision gets back."""

    SAVEPOINT = "Savepoint"
    LATEST = "Latest"


class Rollback(Record):
    """What happens if the changed job does not prove itself."""

    enabled: bool = True
    """Return to the last stable revision by itself."""
    deadline: Duration = Duration("10m")
    """How long the changed job has to prove itself; at least checkpoint.interval for each of
    stableAfterCommits and once more. Of a slow trigger in the script itself nothing is known."""
    stable_after_commits: Annotated[int, Field(ge=1, le=1000)] = 3
    """New commits of every query that prove it."""
    to: RollbackTarget | None = None
    """Savepoint: the state before the upgrade; input since then is processed again by the old code.
    Latest: the newest commit, if the old code can read it. By default Savepoint if one was taken.
    Sinks that cannot be rewound, such as Delta and Iceberg tables, make it Latest."""


class Upgrade(Record):
    """How a change of the spec reaches the running job."""

    mode: UpgradeMode = UpgradeMode.SAVEPOINT
    """Savepoint: stop at a boundary, savepoint, restore. LastCommit: go on from the last commit
    without a savepoint. Stateless: start with empty state."""
    handover: Handover = Handover.WARM
    """Warm: the new driver starts beside the old one and waits; it needs room for both. Cold: it
    starts when the old one has ended. So far, Warm is carried out as Cold."""
    compatibility: Compatibility = Compatibility.ENFORCE
    """The new code is tried on the newest savepoint before the job stops, and on the one that a job
    starts from or is restored to. Enforce: code that cannot read it, or a script that fails before
    its first query, ends that, and what ran runs on. Strict: so does whatever is not known to fit;
    the code also does the last batch again, and must make the same state of it. Warn: it is told
    and ignored. Skip: it is not tried."""
    rollback: Rollback = Rollback()
    """What happens if the changed job does not prove itself."""

    @property
    def rollback_target(self) -> RollbackTarget:
        """Where a rollback goes, said or not."""
        if self.rollback.to is not None:
            return self.rollback.to
        return (
            RollbackTarget.SAVEPOINT
            if self.mode is UpgradeMode.SAVEPOINT
            else RollbackTarget.LATEST
        )


class RestartPolicy(StrEnum):
    """After which ends of the driver it is started again."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


class Backoff(Record):
    """The pause before a restart."""

    initial: Duration = Duration("10s")
    """Before the first one."""
    factor: Annotated[int, Field(ge=1, le=10)] = 2
    """How much longer each one is than the one before."""
    max: Duration = Duration("5m")
    """The longest."""


class Restart(Record):
    """What happens when the driver ends by itself."""

    policy: RestartPolicy = RestartPolicy.ON_FAILURE
    """Always, OnFailure (a script that ends well has done its work) or Never."""
    backoff: Backoff = Backoff()
    """The pause before a restart."""
    reset_after: Duration = Duration("10m")
    """After this long with new commits the pause is short again and attempts are counted from
    nought."""
    max_attempts: Annotated[int, Field(ge=1, le=100000)] | None = None
    """Failed attempts in a row after which the job is left Failed; by default it never is."""


class SinkMode(StrEnum):
    """How a restored job stands to the output that is already there."""

    RESUME = "Resume"
    REWIND = "Rewind"
    FORK = "Fork"


class RestoreFrom(Record):
    """The savepoint that the job starts from. Exactly one of `savepoint` and `manifest`.

    Read when the job is created, and again whenever it changes.
    """

    savepoint: ObjectName | None = None
    """A SparkSavepoint of the same namespace."""
    manifest: ManifestReference | None = None
    """A savepoint in a repository that this cluster has no resource for. One of another job is
    found by its name; by its id only if a SparkSavepoint of this namespace has that."""
    sink: SinkMode = SinkMode.RESUME
    """Resume: nothing was written since the savepoint. Rewind: later output is given up, where the
    sink allows. Fork: a new identity that writes elsewhere."""
    nonce: Nonce | None = None
    """Change it to restore the same savepoint once more."""
