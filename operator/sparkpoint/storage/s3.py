"""A store in an S3 bucket, below a prefix, through any endpoint that speaks S3.

Create-only and compare-and-swap writes use `If-None-Match: *` and `If-Match`. A server that ignores
these headers is found out by whoever relies on them (savepoint/leases.py does) and refused.

boto3 tries again by itself, with growing pauses; nothing above does.
"""

import base64
import contextlib
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, BinaryIO

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from sparkpoint.storage import _s3transfer as transfer
from sparkpoint.storage._files import chunks_of
from sparkpoint.storage._s3errors import code_of, explained, was_retried
from sparkpoint.storage._s3stream import ResumingStream
from sparkpoint.storage.directory import DirectoryStore
from sparkpoint.storage.errors import (
    AlreadyExistsError,
    BadLocationError,
    ChangedError,
    NotFoundError,
    StorageError,
    TooLargeError,
)
from sparkpoint.storage.interface import SMALL_FILE, Children, Entry, Store, Taken, check_path

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectTypeDef

__all__ = ["S3Store", "connect"]

_PARALLEL = 16
_CONFLICTS = 4
"""How often a write is sent again after 409, which S3 answers while another write is under way."""


def connect(uri: str, endpoint_url: str | None = None) -> "S3Client":
    """A client with credentials from where boto3 usually finds them."""
    config = Config(
        connect_timeout=10,
        read_timeout=60,
        max_pool_connections=2 * _PARALLEL,
        retries={"mode": "standard", "total_max_attempts": 5},
        # We check content by our own digests. Many servers reject boto3's default trailers.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if endpoint_url else "auto"},
    )
    with explained(uri):
        session = boto3.session.Session()
        region = session.region_name or ("us-east-1" if endpoint_url else None)
        return session.client("s3", region_name=region, endpoint_url=endpoint_url, config=config)


class S3Store:
    """Objects below `prefix` in one bucket."""

    def __init__(self, client: "S3Client", *, bucket: str, prefix: str = "") -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = f"{check_path(prefix)}/" if prefix else ""

    def __repr__(self) -> str:
        return f"S3Store({self.uri!r})"

    @property
    def uri(self) -> str:
        """`s3://bucket/prefix`."""
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    @property
    def hadoop_uri(self) -> str:
        """`s3a://bucket/prefix`: the scheme that Hadoop's connector answers to."""
        return f"s3a://{self._bucket}/{self._prefix}".rstrip("/")

    @property
    def parallelism(self) -> int:
        """Many: requests mostly wait."""
        return _PARALLEL

    def child(self, prefix: str) -> "S3Store":
        """The same bucket, deeper."""
        if not prefix:
            return self
        return S3Store(self._client, bucket=self._bucket, prefix=self._key(prefix))

    def _key(self, path: str) -> str:
        return self._prefix + check_path(path)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Every object below; sorted here, as servers differ in order."""
        top = f"{self._key(prefix)}/" if prefix else self._prefix
        found: list[Entry] = []
        with explained(self.uri, prefix):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=top):
                found += self._entries(page.get("Contents", []))
        yield from sorted(found, key=lambda entry: entry.path)

    def children(self, prefix: str = "") -> Children:
        """Sorted names of folders, and objects sorted by path."""
        top = f"{self._key(prefix)}/" if prefix else self._prefix
        folders: list[str] = []
        files: list[Entry] = []
        with explained(self.uri, prefix):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=top, Delimiter="/"):
                common = page.get("CommonPrefixes", [])
                folders += [each["Prefix"][len(top) : -1] for each in common]
                files += self._entries(page.get("Contents", []))
        return sorted(folders), sorted(files, key=lambda entry: entry.path)

    def _entries(self, contents: "Iterable[ObjectTypeDef]") -> Iterator[Entry]:
        for each in contents:
            path = each["Key"][len(self._prefix) :]
            # Other tools mark folders with empty objects "name/", and may use keys such as "a//b".
            with contextlib.suppress(BadLocationError):
                check_path(path)
                stamp = each["ETag"].strip('"')
                yield Entry(path, each["Size"], stamp, each["LastModified"].timestamp())

    def stat(self, path: str) -> Entry:
        """The object's entry."""
        with explained(self.uri, path):
            answer = self._client.head_object(Bucket=self._bucket, Key=self._key(path))
        return transfer.entry_of(path, answer)

    def read(self, path: str, *, limit: int = SMALL_FILE) -> bytes:
        """The whole content."""
        return self.read_stamped(path, limit=limit)[0]

    def read_stamped(self, path: str, *, limit: int = SMALL_FILE) -> tuple[bytes, str]:
        """The content of one version."""
        with self.open_stamped(path) as (stream, entry):
            if entry.size > limit:
                raise TooLargeError(f"{self.uri}/{path} has {entry.size} bytes, more than {limit}.")
            return stream.read(), entry.stamp

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """A part of the content."""
        if length == 0:
            return b""
        try:
            with explained(self.uri, path):
                return transfer.get_range(
                    self._client, self._bucket, self._key(path), span=(offset, length)
                )
        except transfer.RangeError:
            return b""

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """A stream that asks again for the rest when the connection breaks."""
        with self.open_stamped(path) as (stream, _):
            yield stream

    @contextlib.contextmanager
    def open_stamped(self, path: str) -> Iterator[tuple[BinaryIO, Entry]]:
        """A stream and the entry of the version that it reads."""
        key = self._key(path)
        with explained(self.uri, path):
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
        entry = transfer.entry_of(path, answer)
        raw = ResumingStream(
            self._client, bucket=self._bucket, key=key, entry=entry, body=answer["Body"]
        )
        with io.BufferedReader(raw, buffer_size=transfer.BUFFER) as stream:
            yield stream, entry

    def create(self, path: str, data: bytes) -> None:
        """Put with `If-None-Match: *`."""
        try:
            with explained(self.uri, path, creating=True):
                self._put_if(path, data, {"IfNoneMatch": "*"})
        except AlreadyExistsError as error:
            if not self._had_effect(error, path, data):
                raise

    def replace(self, path: str, data: bytes, *, stamp: str) -> None:
        """Put with `If-Match`."""
        try:
            with explained(self.uri, path):
                self._put_if(path, data, {"IfMatch": f'"{stamp}"'})
        except NotFoundError as error:
            raise ChangedError(f"{self.uri}/{path} was removed by somebody else.") from error
        except ChangedError as error:
            if not self._had_effect(error, path, data):
                raise

    def _had_effect(self, error: StorageError, path: str, data: bytes) -> bool:
        """Whether a write failed only because an earlier try of the same request succeeded.

        An answer that got lost makes boto3 send the request again, and the second one fails.
        """
        cause = error.__cause__
        if not isinstance(cause, ClientError) or not was_retried(cause):
            return False
        try:
            return self.read(path) == data
        except (NotFoundError, TooLargeError):
            return False

    def _put_if(self, path: str, data: bytes, condition: transfer.Condition) -> None:
        for left in reversed(range(_CONFLICTS)):
            try:
                self._client.put_object(
                    Bucket=self._bucket, Key=self._key(path), Body=data, **condition
                )
            except ClientError as error:
                if code_of(error) != "ConditionalRequestConflict" or left == 0:
                    raise
            else:
                return

    def put(self, path: str, chunks: Iterable[bytes]) -> int:
        """Collect (on disk, if it is much) and upload."""
        with transfer.spooled(chunks) as (stream, digest, size):
            self._upload(path, stream, digest=digest, size=size)
            return size

    def _upload(self, path: str, stream: IO[bytes], *, digest: str, size: int) -> None:
        with explained(self.uri, path):
            if size > transfer.SINGLE:
                self._client.upload_fileobj(
                    stream, self._bucket, self._key(path), Config=transfer.MULTIPART
                )
                return
            checksum = base64.b64encode(bytes.fromhex(digest)).decode()
            self._client.put_object(
                Bucket=self._bucket,
                Key=self._key(path),
                Body=stream,
                ContentLength=size,
                ChecksumSHA256=checksum,
            )

    def take(self, source: Store, path: str, *, name: Callable[[str], str | None]) -> Taken:
        """Hash first, as the name is needed before the first byte can be sent.

        A directory's file is read twice, the second time from the page cache. An object of the same
        endpoint is read once and then copied by the server. Anything else is spooled.
        """
        with contextlib.ExitStack() as stack:
            if isinstance(source, S3Store) and not self._shares_server(source):
                stream, entry = stack.enter_context(source.open_stamped(path))
                spool, digest, size = stack.enter_context(transfer.spooled(chunks_of(stream)))
            else:
                spool, entry = stack.enter_context(source.open_stamped(path))
                digest, size = _hash(spool)
            if size != entry.size:
                raise ChangedError(f"{source.uri}/{path} changed while it was read.")
            wanted = name(digest)
            existed = wanted is not None and self._refresh(wanted, size)
            if wanted is not None and not existed:
                self._store(wanted, spool, source=(source, entry), digest=digest)
            return Taken(digest, size, entry.stamp, wanted, existed)

    def _refresh(self, path: str, size: int) -> bool:
        """Touch an object if it is there and has the right size."""
        try:
            return self.stat(path).size == size and self.touch(path)
        except NotFoundError:
            return False

    def _store(
        self, wanted: str, spool: IO[bytes], *, source: tuple[Store, Entry], digest: str
    ) -> None:
        origin, entry = source
        if isinstance(origin, S3Store) and self._shares_server(origin):
            self._copy_on_server(wanted, origin, entry.path, size=entry.size, stamp=entry.stamp)
            return
        spool.seek(0)
        self._upload(wanted, spool, digest=digest, size=entry.size)
        if isinstance(origin, DirectoryStore) and origin.stat(entry.path) != entry:
            raise ChangedError(f"{origin.uri}/{entry.path} changed while it was read.")

    def copy(self, path: str, source: Store, source_path: str, *, digest: str, size: int) -> None:
        """Let the server copy, else stream through."""
        if isinstance(source, S3Store) and self._shares_server(source):
            self._copy_on_server(path, source, source_path, size=size)
            return
        with (
            source.open(source_path) as stream,
            transfer.spooled(chunks_of(stream)) as (spool, found, length),
        ):
            if found != digest:
                raise ChangedError(
                    f"{source.uri}/{source_path} is damaged: its SHA-256 is {found}, not {digest}."
                )
            self._upload(path, spool, digest=digest, size=length)

    def _shares_server(self, other: "S3Store") -> bool:
        return self._client.meta.endpoint_url == other._client.meta.endpoint_url

    def _copy_on_server(
        self, path: str, source: "S3Store", source_path: str, *, size: int, stamp: str | None = None
    ) -> None:
        with explained(source.uri, source_path):
            transfer.copy_on_server(
                self._client,
                source=(source._bucket, source._key(source_path)),
                target=(self._bucket, self._key(path)),
                size=size,
                stamp=stamp,
            )

    def touch(self, path: str) -> bool:
        """Copy the object onto itself: the only way to a new time."""
        try:
            with explained(self.uri, path):
                transfer.touch(self._client, self._bucket, self._key(path))
        except NotFoundError:
            return False
        return True

    def delete(self, path: str) -> None:
        """Delete; S3 does not mind if there is nothing."""
        try:
            with explained(self.uri, path):
                self._client.delete_object(Bucket=self._bucket, Key=self._key(path))
        except NotFoundError:
            return

    def sync(self) -> None:
        """Nothing to do: S3 answers when the object is durable."""

    def abandoned(self, prefix: str = "") -> Iterator[Entry]:
        """Uploads in parts that were begun and not ended, whoever began them."""
        top = f"{self._key(prefix)}/" if prefix else self._prefix
        with explained(self.uri, prefix):
            for entry in transfer.unfinished_uploads(self._client, self._bucket, top):
                # As in listings: only names that can be ours.
                path = entry.path[len(self._prefix) :]
                with contextlib.suppress(BadLocationError):
                    yield Entry(check_path(path), 0, entry.stamp, entry.modified)

    def discard(self, entry: Entry) -> None:
        """End one such upload."""
        try:
            with explained(self.uri, entry.path):
                self._client.abort_multipart_upload(
                    Bucket=self._bucket, Key=self._key(entry.path), UploadId=entry.stamp
                )
        except NotFoundError:
            return


def _hash(stream: IO[bytes]) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for chunk in chunks_of(stream):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size
