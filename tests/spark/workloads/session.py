"""Sessions for tests: small, quiet, on two cores; and what S3 needs on top of them."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyspark
from pyspark.sql import SparkSession

from dev.classes import archived_classes
from dev.jars import extra_jars

__all__ = ["BASE_CONF", "SHARED_FILES", "build_session", "reading_files", "s3_conf"]

BASE_CONF: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Snapshots soon and often, so that a few small batches show every kind of file.
    "spark.sql.streaming.stateStore.maintenanceInterval": "500ms",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "3",
    "spark.sql.streaming.pollingDelay": "100ms",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.log.level": "ERROR",
}


def build_session(name: str, confs: Mapping[str, str] | None = None) -> SparkSession:
    """A session on two cores; `confs` win over ours."""
    # Workers must be this Python: another one on the path may lack pandas.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    archive = archived_classes()
    os.environ |= archive.variables
    builder = SparkSession.Builder().master("local[2]").appName(name)
    for key, value in {**BASE_CONF, **archive.properties, **(confs or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


SHARED_FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming."
    "checkpointing.FileSystemBasedCheckpointFileManager",
}
"""Files of checkpoints through Hadoop's shared connection, not through one of each user's own."""


@contextmanager
def reading_files(spark: SparkSession) -> Iterator[None]:
    """While Spark's readers of state look at files in S3: they share Hadoop's connection.

    By default they open one of their own and forget it while they still read. Hadoop closes
    forgotten connections to S3 when the garbage collector finds them (HADOOP-18476), and the read
    fails: 4 of 46 beside a busy collector, 0 of 78 like this. Queries keep what they hold.
    """
    for key, value in SHARED_FILES.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in SHARED_FILES:
            spark.conf.unset(key)


def s3_conf(endpoint: str, key: str, secret: str) -> dict[str, str]:
    """What a session needs to keep checkpoints under `s3a://` at this endpoint."""
    return {
        "spark.jars": ",".join(map(str, extra_jars(pyspark.__version__))),
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.access.key": key,
        "spark.hadoop.fs.s3a.secret.key": secret,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": str(endpoint.startswith("https")).lower(),
        "spark.hadoop.fs.s3a.attempts.maximum": "3",
        "spark.hadoop.fs.s3a.connection.timeout": "30s",
        "spark.hadoop.fs.s3a.connection.establish.timeout": "5s",
        "spark.hadoop.fs.s3a.change.detection.mode": "none",
        "spark.hadoop.fs.s3a.create.conditional.enabled": "false",
    }
