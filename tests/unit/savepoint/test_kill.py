"""SIGKILL at random points of every operation that writes; see kill.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.savepoint.kill import OPERATIONS

_ROOT = Path(__file__).parents[3]


def kill(folder: Path, operation: str, count: int) -> int:
    """How many of the kills came before the operation had ended."""
    module = "tests.unit.savepoint.kill"
    path = os.pathsep.join([str(_ROOT), str(_ROOT / "operator")])
    done = subprocess.run(
        [sys.executable, "-m", module, str(folder), operation, str(count), f"seed-{operation}"],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60 + 5 * count,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    return int(done.stdout.split()[0])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_ten_kills_leave_a_valid_repository(tmp_path: Path, operation: str) -> None:
    kill(tmp_path, operation, 10)


@pytest.mark.soak
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_hundred_kills_leave_a_valid_repository(tmp_path: Path, operation: str) -> None:
    # Of ten, a busy machine may let most come too late; of a hundred it does not.
    assert kill(tmp_path, operation, 100) > 25
