"""What the store asks of an S3 server: as little as it can, and never less than it must."""

import io
import socket
import urllib.parse
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from blake3 import blake3
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError
from botocore.loaders import JSONFileLoader
from botocore.response import StreamingBody

from sparkpoint.storage import _s3copy, _s3listing
from sparkpoint.storage.errors import ChangedError, NotFoundError
from sparkpoint.storage.s3 import S3Store, connect
from tests.support.s3 import S3Server
from tests.support.s3requests import recorded

pytestmark = pytest.mark.s3

CONTENT = b"content" * 50_000


@pytest.fixture
def store(s3_bucket: S3Store) -> S3Store:
    """An empty store that knows nothing about its server yet."""
    return S3Store(s3_bucket._client, bucket="tests", prefix=uuid.uuid4().hex)


@pytest.fixture
def proven(store: S3Store) -> S3Store:
    """A store that has made its first copy."""
    store.put("probe", [b"probe"])
    store.take(store, "probe", name=lambda digest: f"o/{digest}")
    return store


def take(store: S3Store, path: str = "a") -> bool:
    """Take a file of the store itself; whether it existed."""
    return store.take(store, path, name=lambda digest: f"o/{digest}").existed


def strip_condition(request: Any, **_: object) -> None:
    """Make the server one that has never heard of conditions on copies."""
    del request.headers["If-None-Match"]


class _DeadError(Exception):
    """In the place of SIGKILL."""


def die_after_the_headers(request: Any, **_: object) -> None:
    """As a process does that is killed before it has sent any byte of the body."""
    target = urllib.parse.urlsplit(request.url)
    headers = {"Host": target.netloc, **request.headers}
    lines = [f"PUT {target.path}?{target.query} HTTP/1.1"]
    lines += [
        f"{name}: {value.decode() if isinstance(value, bytes) else value}"
        for name, value in headers.items()
        if name != "Expect"
    ]
    with socket.create_connection((target.hostname, target.port or 80)) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)  # it has made up its mind
    raise _DeadError


@pytest.mark.parametrize("write", ["create", "replace", "put"])
def test_of_a_request_that_is_cut_off_nothing_is_stored(store: S3Store, write: str) -> None:
    store.create("a", b"before")
    ways: dict[str, Callable[[], object]] = {
        "create": lambda: store.create("new", b"content"),
        "replace": lambda: store.replace("a", b"content", stamp=store.stat("a").stamp),
        "put": lambda: store.put("new", [b"content"]),
    }
    events = store._client.meta.events
    events.register("before-send.s3.PutObject", die_after_the_headers)
    try:
        with pytest.raises(_DeadError):
            ways[write]()
    finally:
        events.unregister("before-send.s3.PutObject", die_after_the_headers)

    assert store.read("a", limit=100) == b"before"
    assert [entry.path for entry in store.list("")] == ["a"]


def test_a_new_file_is_read_once_and_copied_with_one_more_request(proven: S3Store) -> None:
    proven.put("a", [CONTENT])

    with recorded(proven) as requests:
        existed = take(proven)

    assert not existed
    assert [each.operation for each in requests] == ["GetObject", "CopyObject"]


def test_what_is_there_is_looked_at_and_refreshed(proven: S3Store) -> None:
    proven.put("a", [CONTENT])
    take(proven)
    (before,) = (entry for entry in proven.list("o") if entry.size == len(CONTENT))

    with recorded(proven) as requests:
        existed = take(proven)

    assert existed
    copy = "CopyObject"
    assert [each.operation for each in requests] == ["GetObject", copy, "HeadObject", copy]
    touched = proven._client.head_object(Bucket="tests", Key=proven._key(before.path))
    assert touched["Metadata"]["touched"]


def test_the_first_copy_finds_out_whether_the_server_can_refuse_one(store: S3Store) -> None:
    store.put("a", [CONTENT])
    store.put("b", [b"other"])

    with recorded(store) as first:
        take(store, "a")
    with recorded(store) as second:
        take(store, "b")

    assert len(first) == 5
    assert len(second) == 2


@pytest.mark.parametrize("times", [1, 2])
def test_a_server_that_ignores_conditions_on_copies_is_never_believed(
    store: S3Store, times: int
) -> None:
    events = store._client.meta.events
    events.register("before-sign.s3.CopyObject", strip_condition)
    try:
        store.put("probe", [b"probe"])
        take(store, "probe")
        for name in ("a", "b")[:times]:
            store.put(name, [CONTENT])
            existed = take(store, name)
    finally:
        events.unregister("before-sign.s3.CopyObject", strip_condition)

    assert existed is (times == 2)


def test_a_server_that_rejects_conditions_on_copies_is_not_asked_again(
    store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    conditional: list[str] = []
    send = store._client.copy_object

    def reject(**options: Any) -> object:
        if "IfNoneMatch" in options:
            conditional.append(options["Key"])
            raise ClientError({"Error": {"Code": "NotImplemented"}}, "CopyObject")
        return send(**options)

    monkeypatch.setattr(store._client, "copy_object", reject)
    for name in ("a", "b", "c"):
        store.put(name, [name.encode()])
        assert not take(store, name)

    assert len(conditional) == 1
    assert len(list(store.list("o"))) == 3


@pytest.mark.parametrize("fixture", ["store", "proven"])
def test_a_file_that_is_rewritten_after_it_was_read_is_not_taken(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    store: S3Store = request.getfixturevalue(fixture)
    store.put("a", [CONTENT])
    taken: list[str] = []

    def rewrite(digest: str) -> str:
        store.put("a", [b"new"])
        taken.append(f"o/{digest}")
        return taken[-1]

    with pytest.raises(ChangedError):
        store.take(store, "a", name=rewrite)
    with pytest.raises(NotFoundError):
        store.stat(taken[0])


@pytest.mark.parametrize("fixture", ["store", "proven"])
def test_a_file_that_is_purged_after_it_was_read_is_not_found(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    store: S3Store = request.getfixturevalue(fixture)
    store.put("a", [CONTENT])

    def purge(digest: str) -> str:
        store.delete("a")
        return f"o/{digest}"

    with pytest.raises(NotFoundError):
        store.take(store, "a", name=purge)


def test_an_object_of_another_size_under_the_name_is_written_over(proven: S3Store) -> None:
    proven.put("a", [CONTENT])
    taken = proven.take(proven, "a", name=lambda digest: f"o/{digest}")
    assert taken.path is not None
    proven.put(taken.path, [b"damaged"])

    existed = take(proven)

    assert not existed
    assert proven.read(taken.path) == CONTENT


@pytest.mark.parametrize("size", [0, 1, 300_000])
def test_reading_a_file_is_one_request(store: S3Store, size: int) -> None:
    store.put("a", [bytes(size)])

    with recorded(store) as requests:
        data, _ = store.read_stamped("a")

    assert data == bytes(size)
    assert [each.operation for each in requests] == ["GetObject"]


def test_a_whole_read_goes_on_where_the_connection_broke(
    store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a", [CONTENT])
    send, asked = store._client.get_object, []

    def break_off(**options: Any) -> Any:
        answer = send(**options)
        asked.append(options.get("Range"))
        if len(asked) == 1:
            start = answer["Body"].read()[:1000]
            answer["Body"] = StreamingBody(io.BytesIO(start), len(CONTENT))
        return answer

    monkeypatch.setattr(store._client, "get_object", break_off)

    assert store.read("a") == CONTENT
    assert asked == [None, "bytes=1000-"]


def test_a_second_client_does_not_read_the_description_of_s3_again(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    connect("s3://tests", s3_server.endpoint_url)
    loaded: list[str] = []
    load: Callable[..., object] = JSONFileLoader.load_file

    def record(loader: JSONFileLoader, path: str) -> object:
        loaded.append(path)
        return load(loader, path)

    monkeypatch.setattr(JSONFileLoader, "load_file", record)
    connect("s3://tests", s3_server.endpoint_url)

    assert loaded == []


def test_every_client_has_the_credentials_of_its_time(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    good = connect("s3://tests", s3_server.endpoint_url)
    good.list_buckets()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    bad = connect("s3://tests", s3_server.endpoint_url)

    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        bad.list_buckets()
    good.list_buckets()


def test_a_copy_by_the_server_reads_nothing_unless_it_is_to_be_verified(store: S3Store) -> None:
    store.put("a", [CONTENT])
    digest = blake3(CONTENT).hexdigest()

    with recorded(store) as trusting:
        store.copy("b", store, "a", digest=digest, size=len(CONTENT))
    with recorded(store) as verifying:
        store.copy("c", store, "a", digest=digest, size=len(CONTENT), verify=True)

    assert [each.operation for each in trusting] == ["CopyObject"]
    assert [each.operation for each in verifying] == ["GetObject", "CopyObject"]
    assert store.read("c") == CONTENT


def test_a_verified_copy_finds_damage_of_the_same_size(store: S3Store) -> None:
    store.put("a", [CONTENT[::-1]])
    digest = blake3(CONTENT).hexdigest()

    with pytest.raises(ChangedError, match=f"{store.uri}/a is damaged"):
        store.copy("b", store, "a", digest=digest, size=len(CONTENT), verify=True)
    assert [entry.path for entry in store.list()] == ["a"]


def test_a_verified_copy_is_of_the_version_that_was_read(
    store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a", [CONTENT])
    send = store._client.copy_object

    def late(**options: Any) -> object:
        store.put("a", [CONTENT[::-1]])
        return send(**options)

    monkeypatch.setattr(store._client, "copy_object", late)
    with pytest.raises(ChangedError):
        store.copy(
            "b",
            store,
            "a",
            digest=blake3(CONTENT).hexdigest(),
            size=len(CONTENT),
            verify=True,
        )
    assert [entry.path for entry in store.list()] == ["a"]


def test_what_is_too_large_for_one_copy_is_refreshed_in_parts(
    store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = 5 * 1024 * 1024
    config = TransferConfig(multipart_threshold=part, multipart_chunksize=part)
    monkeypatch.setattr(_s3copy, "LARGEST_COPY", part)
    monkeypatch.setattr(_s3copy, "_IN_PARTS", config)
    store.put("a", [bytes(part), b"rest"])

    with recorded(store) as requests:
        assert store.touch("a")

    operations = {each.operation for each in requests}
    assert "UploadPartCopy" in operations
    assert "CopyObject" not in operations
    assert store.stat("a").size == part + 4
    head = store._client.head_object(Bucket="tests", Key=store._key("a"))
    assert head["Metadata"]["touched"]


def test_sizes_take_few_requests_and_leave_out_what_those_do_not_tell(
    store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        store.put(f"o/{number}", [b"x"])
    with recorded(store) as requests:
        sizes = store.sizes("o", [f"o/{number}" for number in range(21)])
    monkeypatch.setattr(_s3listing, "_PAGES", 0)  # as if there were more than fit

    assert len(requests) == 1
    assert sizes == {**{f"o/{number}": 1 for number in range(20)}, "o/20": None}
    assert store.sizes("o", ["o/1", "o/20"]) == {}
