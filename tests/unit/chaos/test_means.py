"""The means of the crash matrix: holding an operator, and telling right counts from wrong ones."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dev.jobs import EXAMPLE
from sparkpoint.lifecycle.phases import Kind, Phase
from tests.chaos.breakpoints import Breakpoints, Hit
from tests.chaos.ledger import SCRIPT, Ledger, script
from tests.chaos.machine import standing_still


def _status(phase: str) -> dict[str, object]:
    return {"record": {"operation": {"kind": "Upgrade", "phase": phase, "id": "upgrade-3"}}}


def test_an_operator_is_held_where_it_is_wanted_and_once(tmp_path: Path) -> None:
    breakpoints = Breakpoints(tmp_path)
    breakpoints.arm([(Kind.UPGRADE, Phase.STOP), (Kind.UPGRADE, Phase.LAUNCH)])
    breakpoints.pass_by(_status("Prepare"))
    breakpoints.pass_by({})
    held = threading.Thread(target=breakpoints.pass_by, args=[_status("Stop")])

    held.start()
    while (hit := breakpoints.held()) is None:
        pass

    assert hit == Hit("Upgrade", "Stop", "upgrade-3")
    assert held.is_alive()
    breakpoints.release()
    held.join(10)
    assert not held.is_alive()
    # Whoever comes next does not stop there again.
    breakpoints.pass_by(_status("Stop"))
    assert breakpoints.armed() == [["Upgrade", "Launch"]]


def _write(volume: Path, batch: int, counts: dict[str, int]) -> None:
    folder = volume / "output" / f"batch={batch:08d}"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps({"url": url, "count": count}) for url, count in counts.items()]
    (folder / "part-0.json").write_text("\n".join(rows))


def _counts(volume: Path) -> dict[str, int]:
    counts: dict[str, int] = {}
    for file in (volume / "input").glob("access-*.log"):
        for line in file.read_text().splitlines():
            page = line.split()[2]
            counts[page] = counts.get(page, 0) + 1
    return counts


def test_only_the_counts_of_all_that_was_fed_are_exact(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for batch in range(2):
        ledger.feed()
        assert not ledger.is_exact()
        _write(tmp_path, batch, _counts(tmp_path))
        assert ledger.is_exact()
    assert ledger.mistakes() == []

    page, count = next(iter(_counts(tmp_path).items()))
    _write(tmp_path, 1, {**_counts(tmp_path), page: count + 1})

    assert not ledger.is_exact()
    assert ledger.mistakes()[-1] == "batch 1 is wrong"


def test_a_batch_too_many_is_a_mistake(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.feed()
    for batch in range(2):
        _write(tmp_path, batch, _counts(tmp_path))

    assert ledger.mistakes() == ["1 files have become batches of the first [1, 1]"]


def test_a_batch_may_have_two_files_but_none_may_be_lost_or_come_twice(tmp_path: Path) -> None:
    """As a driver that is killed between two of Spark's logs leaves it."""
    ledger = Ledger(tmp_path)
    ledger.feed()
    _write(tmp_path, 0, _counts(tmp_path))
    ledger.feed()
    ledger.feed()
    assert not ledger.is_exact()

    _write(tmp_path, 1, _counts(tmp_path))

    assert ledger.is_exact()
    assert ledger.mistakes() == []
    ledger.feed()
    assert not ledger.is_exact()
    assert ledger.mistakes() == ["4 files have become batches of the first [1, 3]"]


def test_what_a_rewind_left_behind_is_no_mistake_if_it_was_right(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for batch in range(3):
        ledger.feed()
        _write(tmp_path, batch, _counts(tmp_path))
    ledger.feed()

    _write(tmp_path, 1, _counts(tmp_path))

    assert ledger.is_exact()
    assert ledger.mistakes() == []


def test_the_example_can_be_made_to_fail() -> None:
    made = script((EXAMPLE / SCRIPT).read_text())

    compile(made, SCRIPT, "exec")
    assert "if arguments.crash:" in made


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process that does nothing."""
    process = subprocess.Popen(["sleep", "60"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_what_stands_still_goes_on_afterwards(sleeper: int) -> None:
    with standing_still([sleeper]):
        _await(lambda: _state(sleeper) == "T")

    _await(lambda: _state(sleeper) == "S")


def test_what_stands_still_goes_on_though_whoever_stopped_it_was_killed(sleeper: int) -> None:
    program = f"""
import os, signal
from tests.chaos.machine import undone_for_certain
with undone_for_certain(["kill", "-CONT", "{sleeper}"], seconds=1):
    os.kill({sleeper}, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)

    assert done.returncode == -signal.SIGKILL
    _await(lambda: _state(sleeper) == "S")
