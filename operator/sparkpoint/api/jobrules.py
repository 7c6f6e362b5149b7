"""The rules of a StatefulSparkJob's spec."""

import re
from typing import Final

from sparkpoint.api.common import ManifestReference
from sparkpoint.api.conf import OWNED_CONF
from sparkpoint.api.job import JobSpec, StatefulSparkJob
from sparkpoint.api.pods import (
    Dependencies,
    DynamicAllocation,
    EnvFromSource,
    EnvSource,
    EnvVar,
    Executor,
    Script,
    Storage,
)
from sparkpoint.api.policies import (
    Checkpoint,
    RestoreFrom,
    RetentionRule,
    RollbackTarget,
    Savepoints,
    State,
    StateProvider,
    Upgrade,
    UpgradeMode,
)
from sparkpoint.api.rules import Rule, exactly_one, rule, rule_about_keys, transition, without_user
from sparkpoint.api.scalars import LONGEST_JOB_NAME, OnDelete

__all__ = ["JOB_RULES", "LONGEST_STOP"]

_RETENTION = ("last", "hourly", "daily", "weekly", "monthly", "max_age")


def _as_directory(location: str) -> str:
    """With a `/` at its end, and one scheme for S3: what lies below it begins with it."""
    return location.replace("s3a:", "s3:") + "/"


def _as_directory_cel(location: str) -> str:
    return f"({location}.replace('s3a:', 's3:') + '/')"


def _overlap(one: str, other: str) -> bool:
    one, other = _as_directory(one), _as_directory(other)
    return one.startswith(other) or other.startswith(one)


def _overlap_cel(one: str, other: str) -> str:
    one, other = _as_directory_cel(one), _as_directory_cel(other)
    return f"{one}.startsWith({other}) || {other}.startsWith({one})"


def _is_mounted(spec: JobSpec, location: str) -> bool:
    if not location.startswith("/") or spec.driver.pod_template:
        return True
    mounts = [_as_directory(volume.mount_path) for volume in spec.storage.volumes]
    return any(_as_directory(location).startswith(mount) for mount in mounts)


def _mounted_cel(location: str, *optional: str) -> str:
    """Templates may mount anything and CEL cannot look into them, so they are trusted."""
    absent = "".join(f"!has({path}) || " for path in optional)
    below = f"({location} + '/').startsWith(volume.mountPath + '/')"
    return (
        f"{absent}!{location}.startsWith('/') || has(self.driver.podTemplate) || "
        f"(has(self.storage.volumes) && self.storage.volumes.exists(volume, {below}))"
    )


def _is_ordered(bounds: DynamicAllocation) -> bool:
    initial = bounds.min if bounds.initial is None else bounds.initial
    return bounds.min <= initial <= bounds.max


_NOT_MOUNTED = "is a path, but no volume is mounted there, and the pod's own disk is lost with it"
_MOUNT_IT = "mount a claim in spec.storage.volumes, or use s3://bucket/prefix"
_FOREIGN = "correct the name, or move it to hadoopConf"
_PREFIXED = "leave out the prefix spark.hadoop, or move it to sparkConf"
_OWNED = ", ".join(f"'{key}'" for key in sorted(OWNED_CONF))

LONGEST_STOP: Final = 86400.0
"""Seconds: the bound of the agent, which the process of a driver has without these models."""
_NAME = re.compile(rf"[a-z]([-a-z0-9]{{0,{LONGEST_JOB_NAME - 2}}}[a-z0-9])?")

_SHAPES = (
    rule(
        StatefulSparkJob,
        lambda job: _NAME.fullmatch(job.metadata.name) is not None,
        field="metadata.name",
        cel=f"self.metadata.name.matches('^{_NAME.pattern}$')",
        message="the names of pods and services are made from the job's name",
        remedy=f"use at most {LONGEST_JOB_NAME} lower-case letters, digits and '-', with a letter "
        "at the beginning and no '-' at the end",
    ),
    exactly_one(Script, "path", "config_map", "uri"),
    exactly_one(EnvSource, "secret_key_ref", "config_map_key_ref", "field_ref"),
    exactly_one(EnvFromSource, "secret_ref", "config_map_ref"),
    exactly_one(Executor, "instances", "dynamic_allocation"),
    exactly_one(RestoreFrom, "savepoint", "manifest"),
    exactly_one(ManifestReference, "name", "id"),
    *(
        without_user(model, "endpoint_url", found_cel="self.endpointUrl.{user}")
        for model in (Storage, Savepoints, ManifestReference)
    ),
    without_user(
        Dependencies, "repositories", found_cel="self.repositories.exists(url, url.{user})"
    ),
    rule(
        EnvVar,
        lambda variable: variable.value is None or variable.value_from is None,
        cel="!(has(self.value) && has(self.valueFrom))",
        message="value and valueFrom exclude each other",
        remedy="remove one of them",
    ),
    rule(
        DynamicAllocation,
        _is_ordered,
        cel="self.min <= self.max && (!has(self.initial) || "
        "(self.min <= self.initial && self.initial <= self.max))",
        message="initial must lie between min and max",
        remedy="raise max or lower the others",
    ),
)

_POLICIES = (
    rule(
        Checkpoint,
        # CEL's durations know no days.
        lambda kept: (
            kept.timeout == "1d"
            or ("d" not in kept.timeout and kept.timeout.seconds <= LONGEST_STOP)
        ),
        field="timeout",
        cel="self.timeout == '1d' || "
        "(!self.timeout.contains('d') && duration(self.timeout) <= duration('24h'))",
        message="an agent takes no stop that may last longer than a day",
        remedy="write 24h or less",
    ),
    rule(
        State,
        lambda state: (
            state.provider is not StateProvider.HDFS_BACKED
            or (state.changelog is None and state.format_version is None)
        ),
        field="provider",
        cel="!has(self.provider) || self.provider != 'HDFSBacked' || "
        "(!has(self.changelog) && !has(self.formatVersion))",
        message="changelog and formatVersion belong to RocksDB",
        remedy="remove them, or set provider to RocksDB",
    ),
    rule(
        RetentionRule,
        lambda kept: any(getattr(kept, name) is not None for name in _RETENTION),
        cel=f"[{', '.join(f'has(self.{RetentionRule.model_fields[n].alias})' for n in _RETENTION)}]"
        ".exists(given, given)",
        message="no rule says what to keep, which would remove everything",
        remedy="add one, such as last: 10",
    ),
    rule(
        Savepoints,
        lambda saved: not saved.final_on_delete or saved.on_delete is OnDelete.RETAIN,
        field="finalOnDelete",
        cel="!self.finalOnDelete || self.onDelete == 'Retain'",
        message="onDelete: Delete would remove the final savepoint at once",
        remedy="set onDelete to Retain, or finalOnDelete to false",
    ),
    rule(
        Upgrade,
        lambda upgrade: (
            upgrade.rollback.to is not RollbackTarget.SAVEPOINT
            or upgrade.mode is UpgradeMode.SAVEPOINT
        ),
        field="rollback.to",
        cel="self.mode == 'Savepoint' || !has(self.rollback.to) || self.rollback.to != 'Savepoint'",
        message="without mode: Savepoint no upgrade takes a savepoint to go back to",
        remedy="set mode to Savepoint, or rollback.to to Latest",
    ),
)

_SPEC = (
    rule(
        JobSpec,
        lambda spec: spec.upgrade.mode is not UpgradeMode.SAVEPOINT or spec.savepoints is not None,
        field="savepoints",
        cel="self.upgrade.mode != 'Savepoint' || has(self.savepoints)",
        message="upgrade.mode: Savepoint needs a place for savepoints",
        remedy="set savepoints.repository, or upgrade.mode to LastCommit or Stateless",
    ),
    rule(
        JobSpec,
        lambda spec: spec.checkpoint.adopt is None or spec.restore_from is None,
        field="checkpoint.adopt",
        cel="!has(self.checkpoint.adopt) || !has(self.restoreFrom)",
        message="a job starts from one state: checkpoint.adopt and restoreFrom exclude each other",
        remedy="remove one of them",
    ),
    rule(
        JobSpec,
        lambda spec: spec.checkpoint.adopt is None or spec.savepoints is not None,
        field="checkpoint.adopt",
        cel="!has(self.checkpoint.adopt) || has(self.savepoints)",
        message="a checkpoint is adopted by way of a savepoint, and there is no place for one",
        remedy="set savepoints.repository",
    ),
    rule(
        JobSpec,
        lambda spec: spec.checkpoint.adopt is None or _is_mounted(spec, spec.checkpoint.adopt),
        field="checkpoint.adopt",
        cel=_mounted_cel("self.checkpoint.adopt", "self.checkpoint.adopt"),
        message=f"the checkpoint to adopt {_NOT_MOUNTED}",
        remedy=_MOUNT_IT,
    ),
    rule(
        JobSpec,
        lambda spec: spec.checkpoint.adopt_as is None or spec.checkpoint.adopt is not None,
        field="checkpoint.adoptAs",
        cel="!has(self.checkpoint.adoptAs) || has(self.checkpoint.adopt)",
        message="adoptAs names the query of a checkpoint to adopt, and there is none",
        remedy="set checkpoint.adopt, or remove it",
    ),
    rule(
        JobSpec,
        lambda spec: _is_mounted(spec, spec.checkpoint.location),
        field="checkpoint.location",
        cel=_mounted_cel("self.checkpoint.location"),
        message=f"the checkpoint location {_NOT_MOUNTED}",
        remedy=_MOUNT_IT,
    ),
    rule(
        JobSpec,
        lambda spec: spec.savepoints is None or _is_mounted(spec, spec.savepoints.repository),
        field="savepoints.repository",
        cel=_mounted_cel("self.savepoints.repository", "self.savepoints"),
        message=f"the repository {_NOT_MOUNTED}",
        remedy=_MOUNT_IT,
    ),
    rule(
        JobSpec,
        lambda spec: (
            spec.savepoints is None
            or not _overlap(spec.savepoints.repository, spec.checkpoint.location)
        ),
        field="savepoints.repository",
        cel="!has(self.savepoints) || "
        f"!({_overlap_cel('self.savepoints.repository', 'self.checkpoint.location')})",
        message="repository and checkpoint location lie inside of each other, so that removing one "
        "would take the other along",
        remedy="give them directories side by side",
    ),
    rule_about_keys(
        JobSpec,
        lambda spec: {key: OWNED_CONF[key] for key in spec.spark_conf if key in OWNED_CONF},
        field="sparkConf",
        bad_key_cel=f"key in [{_OWNED}]",
        message="not a property that sparkConf may set",
        remedy="remove it, and see docs/api.md for what to use instead",
    ),
    rule_about_keys(
        JobSpec,
        lambda spec: {key: _FOREIGN for key in spec.spark_conf if not key.startswith("spark.")},
        field="sparkConf",
        bad_key_cel="!key.startsWith('spark.')",
        message="Spark ignores properties whose name does not begin with spark",
        remedy=_FOREIGN,
    ),
    rule_about_keys(
        JobSpec,
        lambda spec: {key: _PREFIXED for key in spec.hadoop_conf if key.startswith("spark.")},
        field="hadoopConf",
        bad_key_cel="key.startsWith('spark.')",
        message="a Hadoop property does not begin with spark",
        remedy=_PREFIXED,
    ),
)

_CHANGES = (
    transition(
        JobSpec,
        lambda new, old: new.checkpoint.location == old.checkpoint.location,
        field="checkpoint.location",
        cel="self.checkpoint.location == oldSelf.checkpoint.location",
        message="the checkpoint location of a job cannot change",
        remedy="make a new job there with restoreFrom, or put the old location back",
    ),
    transition(
        JobSpec,
        lambda new, old: (
            new.upgrade.mode is UpgradeMode.STATELESS
            or None in (new.state.provider, old.state.provider)
            or new.state.provider is old.state.provider
        ),
        field="state.provider",
        cel="self.upgrade.mode == 'Stateless' || !has(self.state.provider) || "
        "!has(oldSelf.state.provider) || self.state.provider == oldSelf.state.provider",
        message="state cannot move to another provider",
        remedy="put the old provider back, or set upgrade.mode to Stateless and lose the state",
    ),
)

JOB_RULES: Final[tuple[Rule, ...]] = (*_SHAPES, *_POLICIES, *_SPEC, *_CHANGES)
