"""A driver that begins from a savepoint: restored by itself, while Spark starts; exact."""

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from sparkpoint.runtime.model import EndReason
from tests.spark.runtime import truth
from tests.spark.runtime.driver import Setting, driving
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
