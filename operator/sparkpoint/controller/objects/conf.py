"""Spark's configuration of a job: what a stream needs, then what the user says, then what is ours.

Everything that only the running pod knows is on the driver's command line instead.
"""

from typing import Final

from sparkpoint.api.conf import OWNED_CONF
from sparkpoint.api.job import JobSpec
from sparkpoint.api.pods import Dependencies, DynamicAllocation, Executor, Storage
from sparkpoint.api.policies import StateProvider
from sparkpoint.controller.objects.environment import region_of
from sparkpoint.controller.objects.manifest import Owner, attempt_labels
from sparkpoint.controller.objects.places import (
    BLOCK_MANAGER_PORT,
    CLASS_PATH_JAR,
    DECOMMISSION_SCRIPT,
    DRIVER_PORT,
    EXECUTOR_CONTAINER,
    EXECUTOR_TEMPLATE,
    WORK_DIRECTORY,
)
from sparkpoint.controller.objects.pods import overhead_mebibytes
from sparkpoint.lifecycle.naming import driver_name
from sparkpoint.lifecycle.record import Run

__all__ = ["driver_conf", "local_conf"]

Conf = dict[str, str]

_CREDENTIALS = "software.amazon.awssdk.auth.credentials"
_STATE = "spark.sql.streaming.stateStore"
_PROVIDERS: Final = {
    StateProvider.ROCKSDB: "RocksDBStateStoreProvider",
    StateProvider.HDFS_BACKED: "HDFSBackedStateStoreProvider",
}
_PROVIDER_PACKAGE: Final = "org.apache.spark.sql.execution.streaming.state"

_STREAMS: Final = {
    # Failures of executors are otherwise counted over the whole life of the driver, and end it.
    "spark.executor.failuresValidityInterval": "1h",
    "spark.sql.streaming.metricsEnabled": "true",
    # An executor on a drained node ends its tasks, gets no others, and counts as no failure. Its
    # shuffle files do not move: most are of batches that are over, and the pod's grace period is
    # too short for all of them.
    "spark.decommission.enabled": "true",
    "spark.kubernetes.decommission.script": DECOMMISSION_SCRIPT,
    # Executors dial the driver's address: no name has to be resolved before they can be asked for,
    # so Spark need not wait until the driver is ready, which it is only when its queries can run.
    "spark.kubernetes.driver.service.publishNotReadyAddresses": "true",
    # Spark takes a driver whose parent is Python for a shell, and draws bars into its log.
    "spark.ui.showConsoleProgress": "false",
    # There is no shuffle service in Kubernetes.
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    # The home of the image's user cannot be written to.
    "spark.jars.ivy": f"{WORK_DIRECTORY}/.ivy2",
    # First on the class path, it lets the JVM start from the image's archive of Spark's classes. An
    # image without it loses nothing.
    "spark.driver.extraClassPath": CLASS_PATH_JAR,
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
}


def driver_conf(owner: Owner, spec: JobSpec, run: Run) -> Conf:
    """Of the driver of an attempt."""
    return {**_of_the_job(owner, spec), **_distributed(owner, spec, run)}


def local_conf(owner: Owner, spec: JobSpec) -> Conf:
    """Of a worker that tries the job's code, or loads its state, in one process."""
    return {**_of_the_job(owner, spec), "spark.master": f"local[{spec.driver.cores}]"}


def _of_the_job(owner: Owner, spec: JobSpec) -> Conf:
    return {
        **_STREAMS,
        "spark.app.name": owner.name,
        # Of a query that the script itself stops: nought would wait for ever.
        "spark.sql.streaming.stopTimeout": f"{int(spec.checkpoint.timeout.seconds * 1000)}ms",
        **_s3(spec.storage),
        **{f"spark.hadoop.{key}": value for key, value in spec.hadoop_conf.items()},
        **{key: value for key, value in spec.spark_conf.items() if key not in OWNED_CONF},
        **_state(spec),
        **_dependencies(spec.dependencies),
        "spark.submit.deployMode": "client",
        "spark.driver.cores": str(spec.driver.cores),
        "spark.driver.memory": f"{spec.driver.memory.mebibytes}m",
    }


def _s3(storage: Storage) -> Conf:
    """How Hadoop reaches S3; the keys are in the environment, and never in here."""
    named = "EnvironmentVariable" if storage.secret_name else "Default"
    style = storage.path_style
    path_style = style if style is not None else storage.endpoint_url is not None
    prefix = "spark.hadoop.fs.s3a"
    region = region_of(storage)
    return {
        f"{prefix}.aws.credentials.provider": f"{_CREDENTIALS}.{named}CredentialsProvider",
        f"{prefix}.path.style.access": _flag(path_style),
        **({f"{prefix}.endpoint": storage.endpoint_url} if storage.endpoint_url else {}),
        **({f"{prefix}.endpoint.region": region} if region else {}),
    }


def _state(spec: JobSpec) -> Conf:
    """What a new checkpoint gets; one that is there has these fixed, and wins."""
    state = spec.state
    provider = state.provider or StateProvider.ROCKSDB
    conf = {f"{_STATE}.providerClass": f"{_PROVIDER_PACKAGE}.{_PROVIDERS[provider]}"}
    if provider is StateProvider.ROCKSDB:
        changelog = state.changelog is not False
        conf[f"{_STATE}.rocksdb.changelogCheckpointing.enabled"] = _flag(changelog)
    if state.partitions is not None:
        conf["spark.sql.shuffle.partitions"] = str(state.partitions)
    if state.format_version is not None:
        conf[f"{_STATE}.checkpointFormatVersion"] = str(state.format_version)
    return conf


def _dependencies(needed: Dependencies) -> Conf:
    lists = {
        "spark.archives": needed.archives,
        "spark.files": needed.files,
        "spark.jars": needed.jars,
        "spark.jars.excludes": needed.exclude_packages,
        "spark.jars.packages": needed.packages,
        "spark.jars.repositories": needed.repositories,
        "spark.submit.pyFiles": needed.py_files,
    }
    return {key: ",".join(items) for key, items in lists.items() if items}


def _distributed(owner: Owner, spec: JobSpec, run: Run) -> Conf:
    name = driver_name(owner.name, run)
    labels = attempt_labels(owner, run, "executor")
    return {
        "spark.master": "k8s://https://kubernetes.default.svc",
        # Files of the job come into the driver's working directory, as if it had been submitted.
        "spark.kubernetes.submitInDriver": "true",
        "spark.kubernetes.resource.type": "python",
        # Two jobs of the same name, one deleted and one new, must not find each other's executors.
        "spark.app.id": f"{name}-{owner.uid[:8]}",
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_MANAGER_PORT),
        "spark.kubernetes.namespace": owner.namespace,
        "spark.kubernetes.driver.pod.name": name,
        "spark.kubernetes.authenticate.driver.serviceAccountName": spec.service_account,
        "spark.kubernetes.executor.podNamePrefix": name,
        "spark.kubernetes.executor.podTemplateFile": EXECUTOR_TEMPLATE,
        "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR_CONTAINER,
        **{f"spark.kubernetes.executor.label.{key}": labels[key] for key in labels},
        **_image(spec),
        **_executors(spec.executor),
    }


def _image(spec: JobSpec) -> Conf:
    secrets = ",".join(secret.name for secret in spec.image_pull_secrets)
    prefix = "spark.kubernetes.container.image"
    return {
        prefix: spec.image,
        f"{prefix}.pullPolicy": spec.image_pull_policy.value,
        **({f"{prefix}.pullSecrets": secrets} if secrets else {}),
    }


def _executors(executor: Executor) -> Conf:
    prefix = "spark.kubernetes.executor"
    return {
        "spark.executor.cores": str(executor.cores),
        "spark.executor.memory": f"{executor.memory.mebibytes}m",
        "spark.executor.memoryOverhead": f"{overhead_mebibytes(executor)}m",
        **({f"{prefix}.request.cores": executor.core_request} if executor.core_request else {}),
        **({f"{prefix}.limit.cores": executor.core_limit} if executor.core_limit else {}),
        **_number(executor),
    }


def _number(executor: Executor) -> Conf:
    bounds: DynamicAllocation | None = executor.dynamic_allocation
    if bounds is None:
        return {
            "spark.dynamicAllocation.enabled": "false",
            "spark.executor.instances": str(executor.instances or 1),
        }
    initial = bounds.initial if bounds.initial is not None else bounds.min
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(bounds.min),
        "spark.dynamicAllocation.initialExecutors": str(initial),
        "spark.dynamicAllocation.maxExecutors": str(bounds.max),
    }


def _flag(value: bool) -> str:
    return str(value).lower()
