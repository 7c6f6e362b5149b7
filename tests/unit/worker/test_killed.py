"""SIGKILL at every effect of the tasks that change anything; see killed.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.worker.killed import TASKS

pytestmark = pytest.mark.kills

_ROOT = Path(__file__).parents[3]


def kill(folder: Path, task: str, step: int) -> int:
    """Kill at each `step`-th effect; at how many."""
    path = os.pathsep.join([str(_ROOT), str(_ROOT / "operator")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.worker.killed", str(folder), task, str(step)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    return int(done.stdout.split()[0])


@pytest.mark.parametrize("task", TASKS)
def test_a_task_that_is_killed_at_any_point_and_run_again_ends_as_if_nothing_had_happened(
    tmp_path: Path, task: str
) -> None:
    assert kill(tmp_path, task, step=7) > 3


@pytest.mark.soak
@pytest.mark.parametrize("task", TASKS)
def test_the_same_at_every_single_point(tmp_path: Path, task: str) -> None:
    assert kill(tmp_path, task, step=1) > 20
