"""The session that our Spark processes use: on this machine, quiet, with its files in the copy's
folder."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FORMAT", "local_session"]

FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
"""Spark's readers take the provider from the offset log, but this from the session."""


def local_session(name: str, scratch: str, conf: Mapping[str, str] | None = None) -> "SparkSession":
    """A session on two cores; `conf` comes on top."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    given = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.sql.session.timeZone": "UTC",
        **(conf or {}),
    }
    builder = SparkSession.Builder().master("local[2]").appName(name)
    for key, value in given.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
