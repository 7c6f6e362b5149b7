"""Repositories and checkpoints for the tests; the S3 server is a real one."""

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkpoint.savepoint import Repository
from sparkpoint.storage import DirectoryStore, Store
from sparkpoint.storage.s3 import S3Store
from tests.support.s3 import s3_bucket, s3_server

__all__ = ["s3_bucket", "s3_server"]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty repository in a directory."""
    return Repository.init(DirectoryStore(tmp_path / "repository"))


@pytest.fixture(params=["directory", pytest.param("s3", marks=pytest.mark.s3)])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Store]:
    """Makes empty stores of one kind by name."""
    if request.param == "directory":
        return lambda name: DirectoryStore(tmp_path / name)
    bucket: S3Store = request.getfixturevalue("s3_bucket")
    prefix = uuid.uuid4().hex
    return lambda name: bucket.child(f"{prefix}/{name}")
