"""A place for an epoch directory and a repository, on disk and in a bucket of a real S3 server."""

import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from sparkpoint.storage import DirectoryStore, Store, open_store
from tests.support.s3 import S3Server, s3_bucket, s3_server
from tests.unit.savepoint.synthetic import SyntheticQuery

__all__ = ["s3_bucket", "s3_server"]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of whoever runs the tests may leak in."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)


@dataclass(frozen=True)
class Place:
    """Where a test keeps things, and what a command line must say to get there."""

    root: str
    local: Path
    endpoint_url: str | None = None

    @property
    def epoch_dir(self) -> str:
        return f"{self.root}/checkpoints/shop/visits/epoch-3"

    @property
    def repository(self) -> str:
        return f"{self.root}/repository"

    @property
    def options(self) -> list[str]:
        return ["--endpoint-url", self.endpoint_url] if self.endpoint_url else []

    def store(self, uri: str) -> Store:
        return open_store(uri, self.endpoint_url)

    def query(self, name: str = "q", batches: int = 6) -> SyntheticQuery:
        """A query on the local disk; `publish` brings it to its place."""
        query = SyntheticQuery(self.local / name, provider="rocksdb", seed=name)
        return query.run(batches)

    def publish(self, folder: str | None = None) -> None:
        """Bring what the queries have written to where a driver would have written it."""
        target, local = self.store(folder or self.epoch_dir), DirectoryStore(self.local)
        for entry in local.list():
            target.put(entry.path, [local.read(entry.path)])


@pytest.fixture
def disk(tmp_path: Path) -> Place:
    """On disk, for what does not depend on the store."""
    return Place(str(tmp_path / "data"), tmp_path / "driver")


@pytest.fixture
def bucket(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """In a bucket, with the environment set up for it as in a pod."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    root = f"s3://{s3_server.make_bucket('worker')}/{uuid.uuid4().hex}"
    return Place(root, tmp_path / "driver", s3_server.endpoint_url)


@pytest.fixture(params=["disk", pytest.param("bucket", marks=pytest.mark.s3)])
def place(request: pytest.FixtureRequest) -> Place:
    """On disk, and then in a bucket."""
    place: Place = request.getfixturevalue(request.param)
    return place
