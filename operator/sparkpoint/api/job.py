"""StatefulSparkJob: a Structured Streaming job whose state survives every change.

What a person writes; what the operator answers is in `jobstatus.py`.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from sparkpoint.api.common import API_VERSION, LocalReference, Metadata, Record
from sparkpoint.api.jobstatus import JobStatus
from sparkpoint.api.pods import Application, Dependencies, Driver, Executor, Storage
from sparkpoint.api.policies import Checkpoint, Restart, RestoreFrom, Savepoints, State, Upgrade
from sparkpoint.api.scalars import Argument, Image, Nonce, ObjectName, SparkVersion

__all__ = ["JobSpec", "PullPolicy", "StatefulSparkJob"]

Conf = Annotated[
    dict[str, Annotated[str, StringConstraints(max_length=16384)]], Field(max_length=512)
]


class PullPolicy(StrEnum):
    """When the kubelet fetches the image."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class JobSpec(Record):
    """A Structured Streaming job: its code, its resources, its state and how it changes."""

    image: Image
    """Image of driver, executors and workers: the runtime image or one made from it."""
    image_pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    """When the image is fetched."""
    image_pull_secrets: Annotated[tuple[LocalReference, ...], Field(max_length=16)] = ()
    """Secrets for the registry of the image."""
    spark_version: SparkVersion | None = None
    """Spark version in the image, such as 4.3.0; by default what the driver says."""
    service_account: ObjectName = "spark"
    """ServiceAccount of the driver and the workers; it must be allowed to make executor pods."""
    application: Application
    """The user's code."""
    args: Annotated[tuple[Argument, ...], Field(max_length=256)] = ()
    """Arguments of the script."""
    spark_conf: Conf = Field(default_factory=dict)
    """Spark properties. Those that the operator sets itself, or that have a field here, are
    refused."""
    hadoop_conf: Conf = Field(default_factory=dict)
    """Hadoop properties, without the prefix spark.hadoop."""
    dependencies: Dependencies = Dependencies()
    """What the script needs besides the image."""
    driver: Driver = Driver()
    """The driver pod."""
    executor: Executor
    """The executor pods: exactly one of `instances` and `dynamicAllocation`."""
    storage: Storage = Storage()
    """Credentials and volumes, for all pods of the job alike."""
    state: State = State()
    """The state stores."""
    checkpoint: Checkpoint
    """Where and how micro-batches are committed."""
    savepoints: Savepoints | None = None
    """Where savepoints go, when they are taken, how long they stay. Needed by `upgrade.mode:
    Savepoint`."""
    upgrade: Upgrade = Upgrade()
    """How a change of the spec reaches the running job."""
    restart: Restart = Restart()
    """What happens when the driver ends by itself."""
    suspend: bool = False
    """Stop the job at a boundary, with a savepoint, and keep it stopped."""
    restore_from: RestoreFrom | None = None
    """The savepoint that the job starts from; a change restores a running job."""
    restart_nonce: Nonce | None = None
    """Change it to restart the job through the same steps as an upgrade."""


class StatefulSparkJob(Record):
    """A Structured Streaming job whose state survives upgrades, rescaling and failures."""

    api_version: Literal["sparkpoint.dev/v1alpha1"] = API_VERSION
    kind: Literal["StatefulSparkJob"] = "StatefulSparkJob"
    metadata: Metadata
    spec: JobSpec
    """What the job should be."""
    status: JobStatus = JobStatus()
    """What the operator has seen and done."""
