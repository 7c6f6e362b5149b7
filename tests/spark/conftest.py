"""One Spark session for all tests that run queries in this process: a JVM is slow to start."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.workloads.session import build_session, s3_conf
from tests.support.s3 import S3Server, s3_server

__all__ = ["s3_server"]

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder starts real Spark."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(s3_server: S3Server) -> Iterator[SparkSession]:
    """A session that reaches S3, whose streaming confs each workload sets for itself."""
    confs = s3_conf(s3_server.endpoint_url, s3_server.access_key, s3_server.secret_key)
    session = build_session("tests", confs)
    yield session
    session.stop()
