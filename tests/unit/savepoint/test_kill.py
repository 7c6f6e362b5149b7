"""SIGKILL at random points of every operation that writes; see kill.py."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.s3 import S3Server
from tests.unit.savepoint.kill import OPERATIONS

pytestmark = pytest.mark.kills

_ROOT = Path(__file__).parents[3]


def kill(
    folder: Path,
    operation: str,
    count: int,
    *,
    place: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> int:
    """How many of the kills came before the operation had ended."""
    module = "tests.unit.savepoint.kill"
    path = os.pathsep.join([str(_ROOT), str(_ROOT / "operator")])
    done = subprocess.run(
        [
            *(sys.executable, "-m", module, str(folder)),
            *(operation, str(count), f"seed-{operation}"),
            *place,
        ],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=540 + 5 * count,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    return int(done.stdout.split()[0])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_ten_kills_leave_a_valid_repository(tmp_path: Path, operation: str) -> None:
    kill(tmp_path, operation, 10)


@pytest.mark.s3
@pytest.mark.parametrize("operation", ["capture", "materialize", "collect"])
def test_kills_leave_a_valid_repository_on_s3_too(
    tmp_path: Path, s3_server: S3Server, operation: str
) -> None:
    bucket = s3_server.make_bucket(f"kill-{operation}")

    kill(
        tmp_path,
        operation,
        3,
        place=(f"s3://{bucket}", s3_server.endpoint_url),
        environment=s3_server.environment(),
    )


@pytest.mark.soak
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_hundred_kills_leave_a_valid_repository(tmp_path: Path, operation: str) -> None:
    # Of ten, a busy machine may let most come too late; of a hundred it does not.
    assert kill(tmp_path, operation, 100) > 25
