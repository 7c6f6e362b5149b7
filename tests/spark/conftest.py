"""One Spark session for all tests that run queries in this process: a JVM is slow to start."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.workloads.session import build_session

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder starts real Spark."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session whose streaming confs each workload sets for itself."""
    session = build_session("tests")
    yield session
    session.stop()
