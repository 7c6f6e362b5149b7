"""A working directory like the one that the examples in the help assume."""

from collections.abc import Callable
from pathlib import Path

import pytest
from mypy_boto3_s3 import S3Client

from tests.support.s3 import S3Server, s3_bucket, s3_server
from tests.unit.cli.running import make_checkpoint, run_well

__all__ = ["s3_bucket", "s3_server"]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of whoever runs the tests may leak in."""
    names = ("SPARKPOINT_REPOSITORY", "SPARKPOINT_DEBUG", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
    for name in names:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def worker_says(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[list[str]]]:
    """Lets workers answer that, in the place of starting; returns the commands they were."""

    def says(answer: str) -> list[list[str]]:
        asked: list[list[str]] = []

        def worker(command: list[str], log: Path) -> bytes:
            asked.append(command)
            log.touch()
            return answer.encode()

        monkeypatch.setattr("sparkpoint.cli.work.workers._run", worker)
        return asked

    return says


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def checkpoint(here: Path) -> Path:
    """`checkpoints/visits`, six batches in."""
    make_checkpoint(here / "checkpoints/visits")
    return here / "checkpoints/visits"


@pytest.fixture
def repository(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`savepoints`, the default repository, with one savepoint `before-upgrade`."""
    monkeypatch.setenv("SPARKPOINT_REPOSITORY", "savepoints")
    run_well("savepoint", "create", "--checkpoint", checkpoint, "--name", "before-upgrade")
    return checkpoint.parent.parent / "savepoints"


@pytest.fixture(scope="session")
def s3_client(s3_server: S3Server) -> S3Client:
    """A plain client, shared as it takes long to make; the buckets `cli` and `lake` are there."""
    client = s3_server.client()
    for bucket in ("cli", "lake"):
        client.create_bucket(Bucket=bucket)
    return client


@pytest.fixture
def s3(s3_server: S3Server, s3_client: S3Client, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The real S3 server, with the environment set up for it as a user would."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint_url)
    return s3_server
