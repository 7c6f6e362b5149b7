"""Spark properties that a job may not set in `sparkConf`, and what to do instead.

Some say who and where the driver is: the operator sets them, and another value would make a second
writer, or a driver that cannot be found. The others have a field of their own: two places for one
fact would let them differ.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["OWNED_CONF"]

_BY_THE_OPERATOR: Final = (
    "spark.app.id",
    "spark.driver.bindAddress",
    "spark.driver.blockManager.port",
    "spark.driver.host",
    "spark.driver.port",
    "spark.kubernetes.authenticate.driver.mounted.oauthTokenFile",
    "spark.kubernetes.authenticate.oauthToken",
    "spark.kubernetes.authenticate.oauthTokenFile",
    "spark.kubernetes.driver.pod.name",
    "spark.kubernetes.executor.podNamePrefix",
    "spark.kubernetes.namespace",
    "spark.kubernetes.submitInDriver",
    "spark.master",
    "spark.submit.deployMode",
)

_BY_A_FIELD: Final = {
    "spark.archives": "dependencies.archives",
    "spark.driver.cores": "driver.cores",
    "spark.driver.memory": "driver.memory",
    "spark.driver.memoryOverhead": "driver.memoryOverhead",
    "spark.dynamicAllocation.enabled": "executor.dynamicAllocation",
    "spark.dynamicAllocation.initialExecutors": "executor.dynamicAllocation.initial",
    "spark.dynamicAllocation.maxExecutors": "executor.dynamicAllocation.max",
    "spark.dynamicAllocation.minExecutors": "executor.dynamicAllocation.min",
    "spark.executor.cores": "executor.cores",
    "spark.executor.instances": "executor.instances",
    "spark.executor.memory": "executor.memory",
    "spark.executor.memoryOverhead": "executor.memoryOverhead",
    "spark.files": "dependencies.files",
    "spark.jars": "dependencies.jars",
    "spark.jars.excludes": "dependencies.excludePackages",
    "spark.jars.packages": "dependencies.packages",
    "spark.jars.repositories": "dependencies.repositories",
    "spark.kubernetes.authenticate.driver.serviceAccountName": "serviceAccount",
    "spark.kubernetes.authenticate.serviceAccountName": "serviceAccount",
    "spark.kubernetes.container.image": "image",
    "spark.kubernetes.container.image.pullPolicy": "imagePullPolicy",
    "spark.kubernetes.container.image.pullSecrets": "imagePullSecrets",
    "spark.kubernetes.driver.container.image": "image",
    "spark.kubernetes.driver.limit.cores": "driver.coreLimit",
    "spark.kubernetes.driver.podTemplateFile": "driver.podTemplate",
    "spark.kubernetes.driver.request.cores": "driver.coreRequest",
    "spark.kubernetes.executor.container.image": "image",
    "spark.kubernetes.executor.limit.cores": "executor.coreLimit",
    "spark.kubernetes.executor.podTemplateFile": "executor.podTemplate",
    "spark.kubernetes.executor.request.cores": "executor.coreRequest",
    "spark.sql.shuffle.partitions": "state.partitions",
    "spark.sql.streaming.checkpointLocation": "checkpoint.location",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "state.formatVersion",
    "spark.sql.streaming.stateStore.providerClass": "state.provider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "state.changelog",
    "spark.submit.pyFiles": "dependencies.pyFiles",
}

OWNED_CONF: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(_BY_THE_OPERATOR, "remove it: the operator sets it")
    | {key: f"use spec.{field} instead" for key, field in _BY_A_FIELD.items()}
)
"""Property -> what to do instead."""
