"""A store in an S3 bucket, below a prefix, through any endpoint that speaks S3.

Create-only and compare-and-swap writes use `If-None-Match: *` and `If-Match`. A server that ignores
these headers is found out by whoever relies on them (savepoint/leases.py does) and refused.

boto3 tries again by itself, with growing pauses; nothing above does.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, BinaryIO

from botocore.exceptions import ClientError

from sparkpoint.storage import _s3listing as listing
from sparkpoint.storage import _s3transfer as transfer
from sparkpoint.storage._files import chunks_of, watched
from sparkpoint.storage._s3client import PARALLEL, connect
from sparkpoint.storage._s3copy import LARGEST_COPY, CopyProof, OtherEtagError, ServerCopy, touch
from sparkpoint.storage._s3errors import explained, was_retried
from sparkpoint.storage._s3etags import EtagProof
from sparkpoint.storage._s3removal import remove_below
from sparkpoint.storage._s3stream import get_range, hash_object, open_object
from sparkpoint.storage.digest import md5_digest
from sparkpoint.storage.directory import DirectoryStore
from sparkpoint.storage.errors import (
    AlreadyExistsError,
    ChangedError,
    NotFoundError,
    StorageError,
    TooLargeError,
)
from sparkpoint.storage.interface import (
    SMALL_FILE,
    Children,
    Entry,
    Moved,
    Store,
    Taken,
    check_path,
    unwatched,
)

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["S3Store", "connect"]


class S3Store:
    """Objects below `prefix` in one bucket."""

    def __init__(
        self,
        client: "S3Client",
        *,
        bucket: str,
        prefix: str = "",
        proof: CopyProof | None = None,
        etags: EtagProof | None = None,
    ) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = f"{check_path(prefix)}/" if prefix else ""
        self._proof = proof or CopyProof()
        self._etags = etags or EtagProof()

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
        return PARALLEL

    def child(self, prefix: str) -> "S3Store":
        """The same bucket, deeper."""
        if not prefix:
            return self
        key = self._key(prefix)
        return S3Store(
            self._client, bucket=self._bucket, prefix=key, proof=self._proof, etags=self._etags
        )

    def _key(self, path: str) -> str:
        return self._prefix + check_path(path)

    def _top(self, prefix: str) -> str:
        return f"{self._key(prefix)}/" if prefix else self._prefix

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Every object below."""
        top = self._top(prefix)
        with explained(self.uri, prefix):
            found = listing.objects_below(self._client, self._bucket, top, root=self._prefix)
        yield from found

    def children(self, prefix: str = "") -> Children:
        """Sorted names of folders, and objects sorted by path."""
        top = self._top(prefix)
        with explained(self.uri, prefix):
            return listing.children_of(self._client, self._bucket, top, root=self._prefix)

    def stat(self, path: str) -> Entry:
        """The object's entry."""
        with explained(self.uri, path):
            answer = self._client.head_object(Bucket=self._bucket, Key=self._key(path))
        return listing.entry_of(path, answer)

    def sizes(self, folder: str, paths: Collection[str]) -> Mapping[str, int | None]:
        """By a listing, if that is short."""
        top = self._top(folder)
        with explained(self.uri, folder):
            found, whole = listing.sizes_below(self._client, self._bucket, top, root=self._prefix)
        return {path: found.get(path) for path in paths if whole or path in found}

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
        key = self._key(path)
        with explained(self.uri, path):
            return get_range(self._client, self._bucket, key, offset=offset, length=length)

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """A stream that asks again for the rest when the connection breaks."""
        with self.open_stamped(path) as (stream, _):
            yield stream

    def open_stamped(self, path: str) -> contextlib.AbstractContextManager[tuple[BinaryIO, Entry]]:
        """A stream and the entry of the version that it reads."""
        return open_object(self._client, self._bucket, self._key(path), path=path)

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

    def _put_if(self, path: str, data: bytes, condition: transfer.Condition) -> None:
        key = self._key(path)
        transfer.put_if(self._client, self._bucket, key, data=data, condition=condition)

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

    def put(self, path: str, chunks: Iterable[bytes], *, draft: bool = False) -> int:
        """Collect (on disk, if it is much) and upload; a draft is whole here too."""
        with transfer.spooled(chunks) as (stream, content):
            self._upload(path, stream, content)
            return content.size

    def _upload(
        self, path: str, stream: IO[bytes], content: transfer.Hashed, moved: Moved = unwatched
    ) -> None:
        key = self._key(path)
        with explained(self.uri, path):
            transfer.upload(
                self._client, self._bucket, key, stream=stream, content=content, moved=moved
            )

    def take(
        self,
        source: Store,
        path: str,
        *,
        name: Callable[[str], str | None],
        scope: str | None = None,
        like: str = "",
        moved: Moved = unwatched,
    ) -> Taken:
        """Hash first, as the name is needed before the first byte can be sent.

        A directory's file is read twice, the second time from the page cache. An object of the same
        endpoint is read once, or with a `scope` maybe not at all, and then copied by the server.
        Anything else is spooled.
        """
        if isinstance(source, S3Store) and self._shares_server(source):
            unread = None if scope is None else self._take_unread(source, path, name, scope)
            return unread or self._take_on_server(source, path, name, like=like, moved=moved)
        reading, sending = _watching(source, moved)
        with contextlib.ExitStack() as stack:
            if isinstance(source, S3Store):
                stream, entry = stack.enter_context(source.open_stamped(path))
                chunks = watched(chunks_of(stream), reading)
                spool, content = stack.enter_context(transfer.spooled(chunks, like=like))
            else:
                spool, entry = stack.enter_context(source.open_stamped(path))
                content = transfer.hash_stream(spool, like=like)
            if content.size != entry.size:
                raise ChangedError(f"{source.uri}/{path} changed while it was read.")
            wanted = name(content.digest)
            existed = wanted is not None and self._keep(
                wanted, spool, source=(source, entry), content=content, moved=sending
            )
            return Taken(content.digest, content.size, entry.stamp, wanted, existed)

    def _take_unread(
        self, source: "S3Store", path: str, name: Callable[[str], str | None], scope: str
    ) -> Taken | None:
        """What the server vouches for; None if it does not, or if its copy is another than that."""
        bucket, key = source._bucket, source._key(path)
        entry = self._etags.entry_with_md5(source._client, bucket, key, path=path)
        if entry is None or entry.size > LARGEST_COPY:
            return None
        digest = md5_digest(entry.stamp, scope)
        wanted = name(digest)
        try:
            existed = wanted is not None and self._copy_or_refresh(
                wanted, source, entry, same_stamp=True
            )
        except OtherEtagError:
            # As where the target encrypts: what it has now, nobody can tell without reading.
            self._etags.refute(bucket)
            return None
        return Taken(digest, entry.size, entry.stamp, wanted, existed)

    def _take_on_server(
        self,
        source: "S3Store",
        path: str,
        name: Callable[[str], str | None],
        *,
        like: str,
        moved: Moved,
    ) -> Taken:
        key = source._key(path)
        digest, entry = hash_object(
            source._client, source._bucket, key, path=path, like=like, moved=moved
        )
        wanted = name(digest)
        existed = wanted is not None and self._copy_or_refresh(wanted, source, entry)
        return Taken(digest, entry.size, entry.stamp, wanted, existed)

    def _keep(
        self,
        wanted: str,
        spool: IO[bytes],
        *,
        source: tuple[Store, Entry],
        content: transfer.Hashed,
        moved: Moved,
    ) -> bool:
        """Store what was read, or refresh it; whether it was there."""
        origin, entry = source
        if self._refresh(wanted, size=entry.size):
            return True
        spool.seek(0)
        self._upload(wanted, spool, content, moved)
        if isinstance(origin, DirectoryStore) and origin.stat(entry.path) != entry:
            raise ChangedError(f"{origin.uri}/{entry.path} changed while it was read.")
        return False

    def _copy_or_refresh(
        self, wanted: str, origin: "S3Store", entry: Entry, *, same_stamp: bool = False
    ) -> bool:
        copy = ServerCopy(
            self._client,
            source=(origin._bucket, origin._key(entry.path)),
            target=(self._bucket, self._key(wanted)),
            size=entry.size,
            stamp=entry.stamp,
            same_stamp=same_stamp,
        )
        stamp = entry.stamp if same_stamp else None
        with explained(origin.uri, entry.path):
            return self._proof.copy_or_refresh(
                copy,
                refresh=lambda: self._refresh(wanted, size=entry.size, stamp=stamp),
                unchanged=lambda: origin.stat(entry.path).stamp == entry.stamp,
            )

    def _refresh(self, path: str, *, size: int, stamp: str | None = None) -> bool:
        """Touch an object if it is there and has the right size, and this ETag if one is given."""
        try:
            found = self.stat(path)
        except NotFoundError:
            return False
        same = found.size == size and stamp in (None, found.stamp)
        return same and self._touch(path, size)

    def copy(
        self,
        path: str,
        source: Store,
        source_path: str,
        *,
        digest: str,
        size: int,
        draft: bool = False,
        verify: bool = False,
        moved: Moved = unwatched,
    ) -> None:
        """Let the server copy, else stream through; a draft is whole here too."""
        if isinstance(source, S3Store) and self._shares_server(source):
            # What the server copies is the very version that was read.
            stamp = source._verified(source_path, digest) if verify else None
            with explained(source.uri, source_path):
                ServerCopy(
                    self._client,
                    source=(source._bucket, source._key(source_path)),
                    target=(self._bucket, self._key(path)),
                    size=size,
                    stamp=stamp,
                ).run()
            return
        reading, sending = _watching(source, moved)
        with (
            source.open(source_path) as stream,
            transfer.spooled(watched(chunks_of(stream), reading), like=digest) as (spool, found),
        ):
            _check_digest(f"{source.uri}/{source_path}", found.digest, digest)
            self._upload(path, spool, found, sending)

    def _verified(self, path: str, digest: str) -> str:
        """Read an object that must have this digest; its stamp."""
        with self.open_stamped(path) as (stream, entry):
            found = transfer.hash_stream(stream, like=digest).digest
            _check_digest(f"{self.uri}/{path}", found, digest)
            return entry.stamp

    def _shares_server(self, other: "S3Store") -> bool:
        return self._client.meta.endpoint_url == other._client.meta.endpoint_url

    def touch(self, path: str) -> bool:
        """Copy the object onto itself: the only way to a new time."""
        try:
            return self._touch(path, self.stat(path).size)
        except NotFoundError:
            return False

    def _touch(self, path: str, size: int) -> bool:
        try:
            with explained(self.uri, path):
                touch(self._client, self._bucket, self._key(path), size=size)
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

    def remove_folder(self, folder: str, *, removed: Callable[[int], None]) -> None:
        """Delete every object below, and end unfinished uploads there."""
        top = f"{self._key(folder)}/"
        with explained(self.uri, folder):
            remove_below(self._client, self._bucket, top, removed=removed)

    def sync(self) -> None:
        """Nothing to do: S3 answers when the object is durable."""

    def abandoned(self, prefix: str = "") -> Iterator[Entry]:
        """Uploads in parts that were begun and not ended, whoever began them."""
        top = self._top(prefix)
        with explained(self.uri, prefix):
            yield from listing.unfinished_uploads(
                self._client, self._bucket, top, root=self._prefix
            )

    def discard(self, entry: Entry) -> None:
        """End one such upload."""
        try:
            with explained(self.uri, entry.path):
                self._client.abort_multipart_upload(
                    Bucket=self._bucket, Key=self._key(entry.path), UploadId=entry.stamp
                )
        except NotFoundError:
            return


def _watching(source: Store, moved: Moved) -> tuple[Moved, Moved]:
    """Who is told of what is read, and of what is sent: bytes count once, where they take long."""
    return (moved, unwatched) if isinstance(source, S3Store) else (unwatched, moved)


def _check_digest(where: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise ChangedError(f"{where} is damaged: its digest is {found}, not {wanted}.")
