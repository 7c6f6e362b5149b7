"""Where things are: in the pods of a job, and in its storage."""

from pathlib import PurePosixPath
from typing import Final

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.objects.manifest import Owner
from sparkpoint.lifecycle.record import Run

__all__ = [
    "AGENT_PORT",
    "BLOCK_MANAGER_PORT",
    "CLASS_PATH_JAR",
    "CONF_FILE",
    "DECOMMISSION_SCRIPT",
    "DRIVER_CONTAINER",
    "DRIVER_PORT",
    "EXECUTOR_CONTAINER",
    "EXECUTOR_FILES",
    "EXECUTOR_TEMPLATE",
    "LOCAL_DIRECTORY",
    "SCRIPT_DIRECTORY",
    "SPARK_CONF_DIR",
    "TERMINATION_LOG",
    "TOKEN_FILE",
    "UI_PORT",
    "WORKER_CONTAINER",
    "WORK_DIRECTORY",
    "agent_secret_name",
    "epoch_directory",
    "job_directory",
    "script_path",
    "ui_port",
]

AGENT_PORT: Final = 8478
DRIVER_PORT: Final = 7078
BLOCK_MANAGER_PORT: Final = 7079
UI_PORT: Final = 4040

DRIVER_CONTAINER: Final = "spark-kubernetes-driver"
EXECUTOR_CONTAINER: Final = "spark-kubernetes-executor"
"""As Spark itself calls them: what selects logs and metrics by them keeps working."""
WORKER_CONTAINER: Final = "worker"

SPARK_CONF_DIR: Final = "/opt/spark/conf"
CONF_FILE: Final = f"{SPARK_CONF_DIR}/spark-defaults.conf"
"""Mounted as one file: what else an image keeps there, such as log4j2.properties, stays."""
CLASS_PATH_JAR: Final = "/opt/python/pyspark/classpath.jar"
TOKEN_FILE: Final = "/etc/sparkpoint/agent/token"  # noqa: S105 - a path
EXECUTOR_FILES: Final = "/etc/sparkpoint/executor"
EXECUTOR_TEMPLATE: Final = f"{EXECUTOR_FILES}/template.json"
DECOMMISSION_SCRIPT: Final = f"{EXECUTOR_FILES}/decommission.sh"
SCRIPT_DIRECTORY: Final = "/opt/sparkpoint/script"
WORK_DIRECTORY: Final = "/var/sparkpoint/work"
"""Spark puts the job's files and jars into the working directory: it must be writable. It is not
the image's own, where an empty volume would hide what the image has there."""
LOCAL_DIRECTORY: Final = "/var/data/spark-local"
"""Shuffle files, and RocksDB where a worker does the work of executors."""
TERMINATION_LOG: Final = "/dev/termination-log"


def agent_secret_name(job: str, epoch: int) -> str:
    """The Secret with the token of the agents of an epoch."""
    return f"{job}-e{epoch}-agent"


def job_directory(owner: Owner, spec: JobSpec) -> str:
    """Where all checkpoints of the job are."""
    return f"{_as_hadoop(spec.checkpoint.location)}/{owner.namespace}/{owner.name}"


def epoch_directory(owner: Owner, spec: JobSpec, run: Run) -> str:
    """Where the checkpoints of a run's epoch are, one folder per query."""
    return f"{job_directory(owner, spec)}/{run.folder}"


def script_path(spec: JobSpec) -> str:
    """Where the user's script is in the pods that run it."""
    script = spec.application.script
    if script.path is not None:
        return script.path
    if script.config_map is not None:
        return f"{SCRIPT_DIRECTORY}/{script.config_map.key}"
    return f"{SCRIPT_DIRECTORY}/{PurePosixPath(script.uri or '').name or 'script.py'}"


def ui_port(spec: JobSpec) -> int:
    """Where Spark's own pages are."""
    given = spec.spark_conf.get("spark.ui.port", "")
    return int(given) if given.isascii() and given.isdecimal() and int(given) else UI_PORT


def _as_hadoop(location: str) -> str:
    """S3 has one connector in Hadoop, which answers to s3a."""
    return f"s3a:{location.removeprefix('s3:')}" if location.startswith("s3:") else location
