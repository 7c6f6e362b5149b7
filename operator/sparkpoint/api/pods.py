"""What the pods of a job are made of: code, configuration, resources, environment, storage."""

from typing import Annotated

from pydantic import Field

from sparkpoint.api.common import FreeForm, Record, keyed_by
from sparkpoint.api.scalars import (
    Artifact,
    Cpu,
    EnvName,
    EnvValue,
    FieldPath,
    Memory,
    MountPath,
    ObjectKey,
    ObjectName,
    Region,
    S3Location,
    ScriptPath,
    SubPath,
    Url,
)

__all__ = [
    "Application",
    "ConfigMapKey",
    "Dependencies",
    "Driver",
    "DynamicAllocation",
    "EnvFromSource",
    "EnvSource",
    "EnvVar",
    "Executor",
    "FieldSelector",
    "KeySelector",
    "OptionalReference",
    "PodTemplate",
    "Script",
    "Storage",
    "VolumeClaim",
]

Artifacts = Annotated[tuple[Artifact, ...], Field(max_length=128)]
# The whole PodTemplateSpec in our schema would be ten thousand lines, and as old as the day it was
# copied; the API server checks it when the pod is made.
PodTemplate = FreeForm


class ConfigMapKey(Record):
    """A file in a ConfigMap of the same namespace."""

    name: ObjectName
    """Name of the ConfigMap."""
    key: ObjectKey
    """Key that holds the file."""


class Script(Record):
    """Where the PySpark script is. Exactly one of the fields."""

    path: ScriptPath | None = None
    """Absolute path in the image."""
    config_map: ConfigMapKey | None = None
    """A ConfigMap that holds the script. A changed ConfigMap is an upgrade like any other."""
    uri: S3Location | None = None
    """s3://bucket/key; fetched by the driver with the job's own credentials."""


class Application(Record):
    """The user's code."""

    script: Script
    """Where the PySpark script is: exactly one of `path`, `configMap` and `uri`."""


class Dependencies(Record):
    """What the script needs besides the image; as the options of spark-submit."""

    py_files: Artifacts = ()
    """Python modules, .zip or .egg files: local:///path in the image, or s3a://…"""
    files: Artifacts = ()
    """Files for the working directory of driver and executors."""
    archives: Artifacts = ()
    """Archives that are unpacked in the working directory of the executors."""
    jars: Artifacts = ()
    """Jars for the class path of driver and executors."""
    packages: Artifacts = ()
    """Maven coordinates, group:artifact:version, fetched when the driver starts."""
    exclude_packages: Artifacts = ()
    """group:artifact to leave out of what `packages` pulls in."""
    repositories: Artifacts = ()
    """Maven repositories to look in besides the central one."""


class KeySelector(Record):
    """One key of a Secret or a ConfigMap."""

    name: ObjectName
    """Name of the Secret or ConfigMap."""
    key: ObjectKey
    """Key in it."""
    optional: bool = False
    """Whether the pod may start without it."""


class FieldSelector(Record):
    """One field of the pod itself."""

    field_path: FieldPath
    """Path of the field, such as status.podIP."""


class EnvSource(Record):
    """Where the value of an environment variable comes from. Exactly one of the fields."""

    secret_key_ref: KeySelector | None = None
    """A key of a Secret."""
    config_map_key_ref: KeySelector | None = None
    """A key of a ConfigMap."""
    field_ref: FieldSelector | None = None
    """A field of the pod."""


class EnvVar(Record):
    """An environment variable."""

    name: EnvName
    """Name of the variable."""
    value: EnvValue | None = None
    """Its value. Give this or `valueFrom`."""
    value_from: EnvSource | None = None
    """Where its value comes from. Give this or `value`."""


class OptionalReference(Record):
    """A Secret or a ConfigMap that may be missing."""

    name: ObjectName
    """Name of the Secret or ConfigMap."""
    optional: bool = False
    """Whether the pod may start without it."""


class EnvFromSource(Record):
    """Environment variables, one for each key. Exactly one of `secretRef` and `configMapRef`."""

    prefix: EnvName | None = None
    """Put in front of every key."""
    secret_ref: OptionalReference | None = None
    """A Secret."""
    config_map_ref: OptionalReference | None = None
    """A ConfigMap."""


class _Role(Record):
    """What driver and executors have in common."""

    cores: Annotated[int, Field(ge=1, le=1024)] = 1
    """Cores that Spark uses: tasks at the same time. Also the pod's CPU request."""
    core_request: Cpu | None = None
    """CPU request of the pod where it differs from `cores`, such as 500m."""
    core_limit: Cpu | None = None
    """CPU limit of the pod; none by default."""
    memory: Memory = Memory("1g")
    """Heap of the JVM: 512m, 2g, 2Gi; powers of 1024 in every notation."""
    memory_overhead: Memory | None = None
    """Memory besides the heap: Python, RocksDB, buffers. By default 40 % of the heap, at least 384
    MiB."""
    env: Annotated[
        tuple[EnvVar, ...],
        Field(max_length=256, json_schema_extra=keyed_by("name")),
    ] = ()
    """Environment variables."""
    env_from: Annotated[tuple[EnvFromSource, ...], Field(max_length=32)] = ()
    """Secrets and ConfigMaps whose keys become environment variables."""
    pod_template: PodTemplate = Field(default_factory=dict)
    """A PodTemplateSpec (`metadata`, `spec`): labels, volumes, node selector, tolerations,
    sidecars. What the fields of this resource say wins over it; the container of Spark is the first
    one."""


class Driver(_Role):
    """The driver pod."""

    disruption_budget: bool = True
    """Keep the running driver from being evicted, so that a drain of its node waits for a person.
    Without it a drain ends the driver at a boundary, and the job goes on elsewhere."""


class DynamicAllocation(Record):
    """Spark asks for executors as it needs them."""

    min: Annotated[int, Field(ge=0, le=10000)] = 1
    """Executors that are kept even when idle."""
    max: Annotated[int, Field(ge=1, le=10000)]
    """Most executors at a time."""
    initial: Annotated[int, Field(ge=0, le=10000)] | None = None
    """Executors at the start; `min` by default."""


class Executor(_Role):
    """The executor pods. Exactly one of `instances` and `dynamicAllocation`."""

    instances: Annotated[int, Field(ge=1, le=10000)] | None = None
    """How many; `kubectl scale` changes it. To stop the job, use `suspend`."""
    dynamic_allocation: DynamicAllocation | None = None
    """Let Spark choose how many, between bounds."""


class VolumeClaim(Record):
    """A volume that is mounted in the driver, the executors and the worker pods alike."""

    claim_name: ObjectName
    """PersistentVolumeClaim in the same namespace. Pods on several nodes need ReadWriteMany."""
    mount_path: MountPath
    """Where it appears in the pods."""
    sub_path: SubPath | None = None
    """Folder of the volume to mount instead of all of it."""
    read_only: bool = False
    """Whether the job may only read it."""


class Storage(Record):
    """How the pods of the job reach data: driver, executors and workers alike.

    The operator itself never reads the credentials.
    """

    secret_name: ObjectName | None = None
    """Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. Leave it out where the service
    account has a role."""
    endpoint_url: Url | None = None
    """S3 endpoint; Amazon's own by default."""
    region: Region | None = None
    """S3 region."""
    path_style: bool | None = None
    """Write the bucket into the path instead of the host name. By default yes if `endpointUrl` is
    given."""
    volumes: Annotated[
        tuple[VolumeClaim, ...], Field(max_length=16, json_schema_extra=keyed_by("mountPath"))
    ] = ()
    """Volumes for checkpoints, savepoints and data."""
