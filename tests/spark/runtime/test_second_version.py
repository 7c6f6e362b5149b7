"""The runtime on another Spark version: a live savepoint, a boundary stop, a restore; exact."""

import signal
from collections import Counter
from pathlib import Path

import pytest

from sparkpoint.runtime.model import EndReason, OperationState, SavepointRequest, StopRequest
from sparkpoint.savepoint import Repository
from sparkpoint.storage import DirectoryStore
from tests.spark.runtime import truth
from tests.spark.runtime.driver import Driver, Setting, agent_of, agent_options, driving
from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import position, truth_at

VERSION = "4.2.1"
NAMES = ("left", "right", "windows")
SCRIPT = "several_queries.py"


def _await_files(driver: Driver, setting: Setting, files: int) -> None:
    driver.await_true(lambda: all(truth.committed(setting.checkpoint(n)) == files for n in NAMES))


# In the cluster's suite a job changes its Spark; here the runtime by itself, in full.
@pytest.mark.soak
def test_a_driver_is_captured_stopped_and_restored_on_the_second_version(tmp_path: Path) -> None:
    inputs, output, repository = (tmp_path / name for name in ("input", "output", "repository"))
    asked = SavepointRequest(repository=str(repository))
    first = Setting(tmp_path / "first", spark_version=VERSION)
    write_files(inputs, range(4))
    with driving(first, SCRIPT, inputs, output, options=agent_options(first)) as driver:
        driver.await_true(lambda: all(truth.committed(first.checkpoint(n)) >= 1 for n in NAMES))
        assert {name for name in driver.jars() if name.startswith("spark-core_")} == {
            f"spark-core_2.13-{VERSION}.jar"
        }
        with agent_of(driver) as agent:
            live = agent.savepoint("live", asked, wait=400)
            assert live.state is OperationState.DONE, live.error
            _await_files(driver, first, 4)
            write_files(inputs, range(4, 6))
            stop = StopRequest(savepoint_name="last", savepoint=asked)
            stopped = agent.stop("upgrade", stop, wait=400)
            assert stopped.error is None, stopped.error
        termination = driver.end()
    assert (termination.reason, termination.clean) == (EndReason.STOPPED, True)
    assert all(truth.is_clean(first.checkpoint(name)) for name in NAMES)
    last = Repository.open(DirectoryStore(repository)).find("tests/job/last").manifest
    assert last.spark_version == VERSION
    assert not last.pending
    assert {query.prefix: query.sink.kind for query in last.queries if query.sink} == dict.fromkeys(
        NAMES, "file"
    )

    second = Setting(tmp_path / "second", spark_version=VERSION)
    write_files(inputs, range(6, 8))
    options = ("--restore", "last", "--repository", str(repository), "--expect", "restored")
    with driving(second, SCRIPT, inputs, output, options=options) as driver:
        _await_files(driver, second, 8)
        driver.signal(signal.SIGTERM)
        assert driver.end().clean

    for side, name in (("L", "left"), ("R", "right")):
        expected = Counter((row.k, row.v) for row in truth.rows(8) if row.side == side)
        assert truth.files(output / name, "k", "v") == expected, name
    at = position(second.checkpoint("windows"))
    found = truth.files(output / "windows", "end", "k", "n", "total")
    assert found == truth_at(WORKLOADS["aggregation"], at).output
