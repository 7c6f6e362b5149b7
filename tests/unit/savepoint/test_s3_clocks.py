"""Collections on S3 servers whose listings and HEADs tell times with different precision."""

import contextlib
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository, collect
from sparkpoint.storage import DirectoryStore, Entry, Store
from sparkpoint.storage.s3 import S3Store
from tests.unit.savepoint.synthetic import SyntheticQuery

pytestmark = pytest.mark.s3


@contextlib.contextmanager
def milliseconds_in_listings(store: S3Store) -> Iterator[None]:
    """As MinIO and Google's server list; their HEADs tell whole seconds."""

    def refine(parsed: Any, **_: object) -> None:
        for each in parsed.get("Contents", []):
            each["LastModified"] += timedelta(milliseconds=789)

    events = store._client.meta.events
    events.register("after-call.s3.ListObjectsV2", refine)
    try:
        yield
    finally:
        events.unregister("after-call.s3.ListObjectsV2", refine)


@pytest.fixture
def deleted(s3_bucket: S3Store, tmp_path: Path) -> Repository:
    """A repository in which a savepoint was deleted."""
    repository = Repository.init(s3_bucket.child(uuid.uuid4().hex))
    root = SyntheticQuery(tmp_path / "ck", snapshot_bytes=300_000).run(5).root
    request = CaptureRequest(job="visits", name="one")
    repository.delete(repository.capture(DirectoryStore(root), request).savepoint)
    return repository


def test_milliseconds_in_listings_do_not_keep_garbage_for_ever(
    s3_bucket: S3Store, deleted: Repository
) -> None:
    with milliseconds_in_listings(s3_bucket):
        freed = deleted.collect(grace=-60)

    assert freed.removed_objects == len(freed.plan.objects) > 0
    assert [entry.path for entry in deleted.store.list()] == ["repository.json", "reserve"]


def test_what_was_refreshed_since_it_was_listed_stays(
    s3_bucket: S3Store, deleted: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = collect._sweep
    time.sleep(1.1)  # S3 counts in whole seconds

    def late(store: Store, entry: Entry, *rest: Any) -> None:
        store.touch(entry.path)
        sweep(store, entry, *rest)

    monkeypatch.setattr(collect, "_sweep", late)
    with milliseconds_in_listings(s3_bucket):
        freed = deleted.collect(grace=-60)

    assert freed.plan.objects
    assert freed.removed_objects == 0
