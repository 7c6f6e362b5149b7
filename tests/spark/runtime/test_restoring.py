"""A driver that begins from a savepoint: restored by itself, while Spark starts; exact."""

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from sparkpoint.runtime.model import EndReason, OperationState, QuerySink, SavepointRequest
from sparkpoint.savepoint import Repository
from sparkpoint.savepoint.manifest import SinkInfo
from sparkpoint.storage import DirectoryStore
from tests.spark.runtime import truth
from tests.spark.runtime.driver import Driver, Setting, agent_of, agent_options, driving
from tests.spark.workloads.base import Known
from tests.spark.workloads.inputs import write_files

NAMES = ("left", "right", "windows")
SCRIPT = "several_queries.py"


def _sparkpoint(*arguments: object) -> None:
    command = [sys.executable, "-m", "sparkpoint.cli.main", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)


def test_a_driver_restores_what_it_begins_from_and_goes_on_exactly(tmp_path: Path) -> None:
    inputs, output, repository = (tmp_path / name for name in ("input", "output", "repository"))
    first = Setting(tmp_path / "first")
    write_files(inputs, range(4))
    with driving(first, SCRIPT, inputs, output) as driver:
        driver.await_true(lambda: all(truth.committed(first.checkpoint(n)) == 4 for n in NAMES))
        driver.signal(signal.SIGTERM)
        assert driver.end().clean
    where = ("--repository", repository, "--job", "tests/job", "--name", "before")
    _sparkpoint("savepoint", "create", "--checkpoint", first.epoch_dir, *where)
    # Nobody said so, and no driver was left to ask.
    manifest = Repository.open(DirectoryStore(repository)).find("tests/job/before").manifest
    assert {query.prefix: query.sink for query in manifest.queries} == {
        name: SinkInfo(kind="file", uri=str(output / name)) for name in NAMES
    }

    write_files(inputs, range(4, 6))
    second = Setting(tmp_path / "second")
    options = ("--restore", "before", "--repository", str(repository), "--expect", "restored")
    # Killed while it restores or starts: the same driver again finishes it.
    with driving(second, SCRIPT, inputs, output, options=options) as driver:
        driver.await_true(lambda: "Restoring" in driver.log)
        driver.kill()
    with driving(second, SCRIPT, inputs, output, options=options) as driver:
        driver.await_true(lambda: all(truth.committed(second.checkpoint(n)) == 6 for n in NAMES))
        driver.signal(signal.SIGTERM)
        assert driver.end().clean

    for side, name in (("L", "left"), ("R", "right")):
        expected = Counter((row.k, row.v) for row in truth.rows(6) if row.side == side)
        assert truth.files(output / name, "k", "v") == expected, name


def test_a_repository_that_is_not_there_is_refused_before_anything_starts(tmp_path: Path) -> None:
    setting = Setting(tmp_path)
    write_files(tmp_path / "input", range(1))
    repository = tmp_path / "repository"
    options = ("--restore", "nothing", "--repository", str(repository))
    with driving(setting, SCRIPT, tmp_path / "input", tmp_path / "output", options=options) as it:
        told = it.end()
    assert told.reason is EndReason.REFUSED
    assert told.exit_code != 0
    assert str(repository) in told.message
    assert not (tmp_path / "output").exists()


def _await_files(driver: Driver, setting: Setting, files: int) -> None:
    driver.await_true(lambda: all(truth.committed(setting.checkpoint(n)) == files for n in NAMES))


def _stopped(driver: Driver) -> None:
    driver.signal(signal.SIGTERM)
    assert driver.end().clean


def _written(output: Path, name: str) -> Counter[Known]:
    return truth.files(output / name, "k", "v")


def _expected(name: str, files: int) -> Counter[Known]:
    side = {"left": "L", "right": "R"}[name]
    return Counter((row.k, row.v) for row in truth.rows(files) if row.side == side)


def test_a_savepoint_of_the_agent_knows_the_file_sinks_that_a_restore_must_cut(
    spark: SparkSession, tmp_path: Path
) -> None:
    inputs, output, repository = (tmp_path / name for name in ("input", "output", "repository"))
    first = Setting(tmp_path / "first")
    write_files(inputs, range(4))
    with driving(first, SCRIPT, inputs, output, options=agent_options(first)) as driver:
        _await_files(driver, first, 4)
        with agent_of(driver) as agent:
            asked = SavepointRequest(repository=str(repository))
            done = agent.savepoint("live", asked, wait=400)
            assert done.state is OperationState.DONE, done.error
            sinks = {query.name: query.sink for query in agent.progress().queries}
        write_files(inputs, range(4, 6))
        _await_files(driver, first, 6)
        _stopped(driver)
    assert sinks["left"] == QuerySink(kind="file", uri=f"file:{output}/left")
    manifest = Repository.open(DirectoryStore(repository)).find("tests/job/live").manifest
    assert {query.prefix: query.sink for query in manifest.queries} == {
        name: SinkInfo(kind="file", uri=str(output / name)) for name in NAMES
    }

    # The sinks have gone on: Spark would skip those batches, and lose their state.
    restore = ("--restore", "live", "--repository", str(repository), "--sink")
    resumed = Setting(tmp_path / "resumed")
    with driving(resumed, SCRIPT, inputs, output, options=(*restore, "resume")) as driver:
        refused = driver.end()
    assert refused.reason is EndReason.REFUSED
    assert "has output up to batch" in refused.message

    before = {name: _written(output, name) for name in ("left", "right")}
    forked = Setting(tmp_path / "forked")
    other = tmp_path / "other"
    with driving(forked, SCRIPT, inputs, other, options=(*restore, "fork")) as driver:
        _await_files(driver, forked, 6)
        _stopped(driver)
    assert {name: _written(output, name) for name in before} == before
    for name in before:
        # By Spark itself, which wants a log without gaps.
        rows = spark.read.schema("k string, v long").json(str(other / name)).collect()
        assert Counter(map(tuple, rows)) == _expected(name, 6) - _expected(name, 4), name

    # Other input than before: only what is done again can have it.
    for number in (4, 5):
        (inputs / f"{number:05d}.json").unlink()
    write_files(inputs, range(6, 8))
    rewound = Setting(tmp_path / "rewound")
    with driving(rewound, SCRIPT, inputs, output, options=(*restore, "rewind")) as driver:
        _await_files(driver, rewound, 6)
        _stopped(driver)
    for name in before:
        left_out = _expected(name, 6) - _expected(name, 4)
        assert _written(output, name) == _expected(name, 8) - left_out, name
