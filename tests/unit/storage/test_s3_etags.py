"""Taking what an S3 server vouches for: by its ETag, unread, and only where that is the MD5."""

import hashlib
import io
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from blake3 import blake3
from boto3.s3.transfer import TransferConfig

from sparkpoint.storage import DirectoryStore, Taken
from sparkpoint.storage.digest import digest_of, is_md5, md5_digest, new_digester
from sparkpoint.storage.errors import ChangedError, NotFoundError
from sparkpoint.storage.s3 import S3Store
from tests.support.s3requests import recorded

pytestmark = pytest.mark.s3

CONTENT = b"content" * 50_000
MD5 = hashlib.md5(CONTENT).hexdigest()
UNREAD = md5_digest(MD5, "shop/visits/a")
READ = blake3(CONTENT).hexdigest()


@pytest.fixture
def store(s3_bucket: S3Store) -> S3Store:
    """An empty store that knows nothing about its server yet."""
    return S3Store(s3_bucket._client, bucket="tests", prefix=uuid.uuid4().hex)


def take(
    store: S3Store,
    path: str = "a",
    *,
    name: Callable[[str], str | None] = lambda digest: f"o/{digest}",
) -> Taken:
    """Take a file of the store itself."""
    return store.take(store, path, name=name, scope=f"shop/visits/{path}")


@contextmanager
def answered(store: S3Store, operation: str, change: Callable[[Any], None]) -> Iterator[None]:
    """Make the server one whose answers to this are others."""

    def patch(parsed: Any, **_: object) -> None:
        if "Error" not in parsed:
            change(parsed)

    events = store._client.meta.events
    events.register(f"after-call.s3.{operation}", patch)
    try:
        yield
    finally:
        events.unregister(f"after-call.s3.{operation}", patch)


def encrypt(how: str) -> Callable[[Any], None]:
    def change(answer: Any) -> None:
        answer["ServerSideEncryption"] = how

    return change


def test_content_that_the_server_vouches_for_is_named_by_its_md5_within_its_scope(
    store: S3Store,
) -> None:
    store.put("a", [CONTENT])

    taken = take(store)

    assert taken == Taken(UNREAD, len(CONTENT), MD5, f"o/{UNREAD}", existed=False)
    assert store.read(f"o/{UNREAD}") == CONTENT
    assert digest_of(CONTENT, like=UNREAD) == UNREAD


def test_only_the_first_of_a_size_is_read(store: S3Store) -> None:
    for name in ("a", "b", "c"):
        store.put(name, [CONTENT, name.encode()])
    store.put("large", [CONTENT * 4])

    with recorded(store) as requests:
        for name in ("a", "b", "c", "large"):
            assert is_md5(take(store, name).digest)

    read = [each.key.rsplit("/", 1)[1] for each in requests if each.operation == "GetObject"]
    assert read == ["a", "large"]


def test_without_a_scope_everything_is_read(store: S3Store) -> None:
    store.put("a", [CONTENT])

    taken = store.take(store, "a", name=lambda digest: f"o/{digest}")

    assert taken.digest == READ


def test_an_object_that_came_in_parts_is_read(store: S3Store) -> None:
    parts = TransferConfig(multipart_threshold=1, multipart_chunksize=5 * 1024 * 1024)
    content = CONTENT * 20
    store._client.upload_fileobj(io.BytesIO(content), "tests", store._key("a"), Config=parts)
    assert "-" in store.stat("a").stamp

    assert take(store).digest == blake3(content).hexdigest()


@pytest.mark.parametrize("how", ["aws:kms", "aws:kms:dsse", "something new"])
def test_an_encrypted_object_is_read_whatever_its_etag_looks_like(store: S3Store, how: str) -> None:
    store.put("a", [CONTENT])

    with answered(store, "HeadObject", encrypt(how)):
        assert take(store).digest == READ


def test_keys_of_the_server_itself_leave_the_md5_where_it_is(store: S3Store) -> None:
    store.put("a", [CONTENT])

    with answered(store, "HeadObject", encrypt("AES256")):
        assert take(store).digest == UNREAD


def test_a_server_whose_etags_only_look_like_md5_is_found_out_and_never_believed(
    store: S3Store,
) -> None:
    def invent(answer: Any) -> None:
        answer["ETag"] = f'"{uuid.uuid5(uuid.NAMESPACE_OID, answer["ETag"]).hex}"'

    store.put("a", [CONTENT])
    with answered(store, "HeadObject", invent), answered(store, "GetObject", invent):
        seen = store._etags.entry_with_md5(store._client, "tests", store._key("a"), path="a")

    assert seen is None
    assert store.stat("a").stamp == MD5
    assert take(store).digest == READ


def test_a_copy_with_another_etag_counts_for_nothing(store: S3Store) -> None:
    def reencrypt(answer: Any) -> None:
        answer["CopyObjectResult"]["ETag"] = '"0123456789abcdef0123456789abcdef"'

    store.put("a", [CONTENT])

    with answered(store, "CopyObject", reencrypt):
        taken = take(store)
    again = take(store)

    assert taken.digest == again.digest == READ
    assert store.read(f"o/{READ}") == CONTENT


def test_what_stands_under_the_name_and_is_something_else_is_replaced(store: S3Store) -> None:
    store.put("a", [CONTENT])
    store.put(f"o/{UNREAD}", [bytes(len(CONTENT))])

    taken = take(store)

    assert not taken.existed
    assert store.read(f"o/{UNREAD}") == CONTENT


def test_what_stands_under_the_name_and_is_the_same_is_refreshed(store: S3Store) -> None:
    store.put("a", [CONTENT])
    take(store)

    with recorded(store) as requests:
        taken = take(store)

    assert taken.existed
    assert "GetObject" not in {each.operation for each in requests}
    assert store.stat(f"o/{UNREAD}").stamp == MD5


def test_what_is_not_wanted_is_not_copied(store: S3Store) -> None:
    store.put("a", [CONTENT])

    taken = take(store, name=lambda digest: None)

    assert (taken.digest, taken.path) == (UNREAD, None)
    assert list(store.list("o")) == []


def test_a_file_that_is_rewritten_before_its_copy_is_not_taken(store: S3Store) -> None:
    store.put("a", [CONTENT])

    def rewrite(digest: str) -> str:
        store.put("a", [b"new"])
        return f"o/{digest}"

    with pytest.raises(ChangedError):
        take(store, name=rewrite)
    assert list(store.list("o")) == []


def test_a_file_that_is_purged_before_its_copy_is_not_found(store: S3Store) -> None:
    store.put("a", [CONTENT])

    def purge(digest: str) -> str:
        store.delete("a")
        return f"o/{digest}"

    with pytest.raises(NotFoundError):
        take(store, "a", name=purge)
    with pytest.raises(NotFoundError):
        take(store, "never")


def test_what_the_server_would_copy_in_parts_is_read(
    store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The copy would have the ETag of its parts.
    monkeypatch.setattr("sparkpoint.storage.s3.LARGEST_COPY", 1000)
    store.put("a", [CONTENT])

    assert take(store).digest == READ


@pytest.mark.parametrize("like", [UNREAD, READ])
def test_every_way_of_copying_checks_the_digest_it_is_given(
    store: S3Store, tmp_path: Any, like: str
) -> None:
    store.put("a", [CONTENT])
    folder, elsewhere = DirectoryStore(tmp_path / "d"), DirectoryStore(tmp_path / "e")
    wrong = like[:6] + ("0" if like[6] != "0" else "1") + like[7:]

    below = store.child("below")
    for target, source in ((folder, store), (elsewhere, folder), (store, folder), (below, store)):
        target.copy("a", source, "a", digest=like, size=len(CONTENT), verify=True)
        with pytest.raises(ChangedError, match="damaged"):
            target.copy("b", source, "a", digest=wrong, size=len(CONTENT), verify=True)
        assert target.take(source, "a", name=lambda digest: None, like=like).digest == like


def test_a_scope_tells_the_same_content_apart() -> None:
    one, other = md5_digest(MD5, "shop/visits/a"), md5_digest(MD5, "shop/other/a")

    assert one != other
    assert new_digester(one).hexdigest() != new_digester(other).hexdigest()
