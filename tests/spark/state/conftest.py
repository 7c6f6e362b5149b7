"""What needs a Spark process of its own, in the session that is there anyway: a JVM is slow to
start. One test of each file lets it start."""

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkpoint.state import migrate, sparkcopy, sparkmove

_PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The shared session, whose number of partitions is put back."""
    before = spark.conf.get(_PARTITIONS)
    yield spark
    spark.conf.set(_PARTITIONS, before or "2")


@pytest.fixture
def in_session(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """Run what is meant for a process of its own in the shared session."""

    def run(module: str, order: str, scratch: Path) -> str:
        given, answer = scratch / "order.json", scratch / "answer.json"
        given.write_text(order)
        assert importlib.import_module(module).main(given, answer) == 0
        return answer.read_text()

    for each in (sparkcopy, sparkmove, migrate):
        monkeypatch.setattr(each, "run_spark", run)
    return session
