"""What an S3 server can answer wrongly, asked of a real one: credentials, buckets, endpoints."""

from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from sparkpoint.savepoint import Repository
from sparkpoint.savepoint.errors import UnsafeStoreError
from sparkpoint.savepoint.leases import hold
from sparkpoint.storage import DirectoryStore, Store, open_store
from sparkpoint.storage.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    BadLocationError,
    ChangedError,
    NotFoundError,
    UnavailableError,
)
from sparkpoint.storage.s3 import S3Store
from tests.support.ports import closed_port
from tests.support.s3 import S3Server

pytestmark = pytest.mark.s3


def opened(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, uri: str = "s3a://tests/x", **changes: str
) -> Store:
    for name, value in {**server.environment(), **changes}.items():
        monkeypatch.setenv(name, value)
    return open_store(uri, server.endpoint_url)


def test_s3a_is_s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(s3_server, monkeypatch, "s3a://tests/some/where/")

    assert store.uri == "s3://tests/some/where"
    assert store.hadoop_uri == "s3a://tests/some/where"


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"])
def test_wrong_credentials_are_named(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    s3_server.make_bucket("tests")
    store = opened(s3_server, monkeypatch, **{name: "wrong"})

    with pytest.raises(AccessDeniedError, match="AWS_ACCESS_KEY_ID"):
        store.read("a")
    with pytest.raises(AccessDeniedError):
        store.stat("a")


def test_a_missing_bucket_is_not_a_missing_file(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(s3_server, monkeypatch, "s3://no-such-bucket/x")

    for action in (
        lambda: store.read("a"),
        lambda: list(store.list()),
        lambda: store.create("a", b""),
    ):
        with pytest.raises(BadLocationError, match="bucket does not exist"):
            action()
    with pytest.raises(BadLocationError, match="bucket does not exist"):
        Repository.init(store)


def test_a_server_that_is_down_is_unavailable(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**s3_server.environment(), "AWS_MAX_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # boto3's pauses

    with closed_port() as port:
        store = open_store("s3://tests/x", f"http://127.0.0.1:{port}")
        with pytest.raises(UnavailableError, match="endpoint URL") as caught:
            store.read("a")
    assert caught.value.retry_helps


def test_uploads_in_parts_that_were_killed_are_found_and_ended(s3_bucket: S3Store) -> None:
    store = s3_bucket.child("uploads")
    upload = store._client.create_multipart_upload(Bucket="tests", Key="uploads/half")

    left = list(store.abandoned())

    assert [entry.stamp for entry in left] == [upload["UploadId"]]
    assert list(store.list()) == []
    store.discard(left[0])
    store.discard(left[0])
    assert list(store.abandoned()) == []


def test_a_directory_and_a_bucket_exchange_files(s3_bucket: S3Store, tmp_path: Path) -> None:
    bucket, directory = s3_bucket.child("exchange"), DirectoryStore(tmp_path)
    directory.put("a", [b"content"])

    up = bucket.take(directory, "a", name=lambda digest: f"o/{digest}")
    down = directory.take(bucket, f"o/{up.digest}", name=lambda digest: f"back/{digest}")

    assert directory.read(f"back/{up.digest}") == b"content"
    assert down.digest == up.digest
    with pytest.raises(NotFoundError):
        bucket.copy("b", bucket, "nothing", digest=up.digest, size=1)


def test_a_server_that_ignores_conditions_is_refused(
    s3_bucket: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = s3_bucket.child("careless")
    monkeypatch.setattr(store, "create", lambda path, data: store.put(path, [data]) and None)

    with pytest.raises(UnsafeStoreError, match="If-None-Match"), hold(store, "test"):
        pass
    assert list(store.list()) == []


def test_a_write_that_was_sent_twice_as_its_answer_got_lost_has_succeeded(
    s3_bucket: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = s3_bucket.child("twice")
    send = store._client.put_object
    lost = {
        "Error": {"Code": "PreconditionFailed"},
        "ResponseMetadata": {"RetryAttempts": 1, "HTTPStatusCode": 412},
    }

    def send_twice(**options: object) -> None:
        send(**options)  # type: ignore[arg-type]
        raise ClientError(lost, "PutObject")  # type: ignore[arg-type]

    def fail(**options: object) -> None:
        raise ClientError(lost, "PutObject")  # type: ignore[arg-type]

    monkeypatch.setattr(store._client, "put_object", send_twice)
    store.create("a", b"one")
    store.replace("a", b"two", stamp=store.stat("a").stamp)
    monkeypatch.setattr(store._client, "put_object", fail)

    assert store.read("a") == b"two"
    with pytest.raises(AlreadyExistsError):
        store.create("a", b"three")
    with pytest.raises(ChangedError):
        store.replace("a", b"three", stamp=store.stat("a").stamp)
