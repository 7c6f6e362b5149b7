"""What the job says beside the script: how often a batch begins, and what its output promises."""

import signal
import time
from pathlib import Path

import pytest

from sparkpoint.runtime.model import EndReason
from tests.spark.runtime import truth
from tests.spark.runtime.driver import Setting, driving
from tests.spark.workloads.inputs import write_files

FILES = 6
OPTIONS = ("--trigger-interval", "3600", "--guarantee", "exactly-once")
LISTENS = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", 1).load()
writer = lines.writeStream.queryName("lines").option("asyncProgressTrackingEnabled", True)
writer.start(format="console").awaitTermination()
"""


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """A job with its input."""
    write_files(tmp_path / "input", range(FILES))
    (tmp_path / "output").mkdir()
    return Setting(tmp_path)


def test_a_script_without_a_trigger_gets_the_interval_of_the_job(setting: Setting) -> None:
    inputs, output, folder = (
        setting.root / "input",
        setting.root / "output",
        setting.checkpoint("upserts"),
    )
    with driving(setting, "foreach_batch.py", inputs, output, options=OPTIONS) as driver:
        driver.await_true(lambda: truth.committed(folder) == 1)
        # Without the interval the other files would be done by then, one after the other.
        time.sleep(3)
        driver.signal(signal.SIGTERM)
        termination = driver.end()

    assert (termination.clean, termination.exit_code) == (True, 0)
    assert truth.committed(folder) == 1
    assert truth.last(output) == truth.totals(1)
    assert driver.log.count("Query upserts: the script sets no trigger") == 1


def test_what_cannot_be_exactly_once_does_not_start(setting: Setting) -> None:
    script = setting.root / "listens.py"
    script.write_text(LISTENS)

    with driving(setting, script, options=OPTIONS) as driver:
        termination = driver.end()

    assert (termination.reason, termination.exit_code) == (EndReason.SCRIPT_FAILED, 1)
    for part in (
        "Query 'lines'",
        "the sink console",
        "the source socket",
        "asyncProgressTrackingEnabled",
        "checkpoint.guarantee: AtLeastOnce",
    ):
        assert part in termination.message, termination.message
    # As any exception before the first query, with a session made.
    assert termination.message.endswith("(no query was started)")
    assert 'listens.py", line 6, in <module>' in driver.log
    assert "The script ended without" not in driver.log
    assert list(setting.epoch_dir.iterdir()) == []


def test_a_script_that_starts_no_query_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "idle.py"
    script.write_text("from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate()\n")

    with driving(Setting(tmp_path), script) as driver:
        termination = driver.end()

    assert (termination.reason, termination.exit_code) == (EndReason.SCRIPT_ENDED, 0)
    assert termination.message == "The script ended. (no query was started)"
    assert "WARNING sparkpoint: The script ended without starting a query" in driver.log
