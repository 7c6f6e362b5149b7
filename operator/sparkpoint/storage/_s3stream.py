"""Reading S3 objects: as a stream that survives a broken connection, or a few bytes of them.

boto3 repeats a request that fails, but not the reading of an answer that breaks off. This stream
asks for the rest, of the very same version (`If-Match`), a bounded number of times.
"""

import contextlib
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from botocore.exceptions import (
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    ResponseStreamingError,
)
from botocore.response import StreamingBody
from urllib3.exceptions import HTTPError

from sparkpoint.storage._s3errors import code_of, explained
from sparkpoint.storage._s3listing import entry_of
from sparkpoint.storage.digest import new_digester
from sparkpoint.storage.interface import Entry, Moved, unwatched

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["ResumingStream", "get_range", "hash_object", "open_object"]

_BUFFER = 1024 * 1024
_ATTEMPTS = 4
_BROKEN = (HTTPClientError, HTTPError, IncompleteReadError, ResponseStreamingError, OSError)


@contextlib.contextmanager
def open_object(
    client: "S3Client", bucket: str, key: str, *, path: str
) -> Iterator[tuple[BinaryIO, Entry]]:
    """A stream and the entry, called `path`, of exactly the version that it reads."""
    raw = _open(client, bucket, key, path=path)
    with io.BufferedReader(raw, buffer_size=_BUFFER) as stream:
        yield stream, raw.entry


def hash_object(
    client: "S3Client",
    bucket: str,
    key: str,
    *,
    path: str,
    like: str = "",
    moved: Moved = unwatched,
) -> tuple[str, Entry]:
    """The digest, as `like`, and the entry, called `path`, of one version; nothing is kept.

    Without a buffer in between: where the server copies by itself, this is all that a capture
    costs us, and every pass over the bytes counts.
    """
    digest = new_digester(like)
    with contextlib.closing(_open(client, bucket, key, path=path)) as raw:
        for piece in raw.pieces():
            digest.update(piece)
            moved(len(piece))
        return digest.hexdigest(), raw.entry


def _open(client: "S3Client", bucket: str, key: str, *, path: str) -> "ResumingStream":
    with explained(f"s3://{bucket}", key):
        answer = client.get_object(Bucket=bucket, Key=key)
    entry = entry_of(path, answer)
    return ResumingStream(client, bucket=bucket, key=key, entry=entry, body=answer["Body"])


def get_range(client: "S3Client", bucket: str, key: str, *, offset: int, length: int) -> bytes:
    """A few bytes from the middle; none if the object ends before."""
    try:
        answer = client.get_object(
            Bucket=bucket, Key=key, Range=f"bytes={offset}-{offset + length - 1}"
        )
    except ClientError as error:
        if code_of(error) in ("InvalidRange", "416", "RequestedRangeNotSatisfiable"):
            return b""
        raise
    with contextlib.closing(answer["Body"]) as body:
        return body.read()


class ResumingStream(io.RawIOBase):
    """The bytes of one version of one object."""

    def __init__(
        self, client: "S3Client", *, bucket: str, key: str, entry: Entry, body: StreamingBody
    ) -> None:
        super().__init__()
        self._client = client
        self._bucket = bucket
        self._key = key
        self.entry = entry
        self._body = body
        self._position = 0
        self._broken = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: "bytearray | memoryview[int]") -> int:  # type: ignore[override]
        """Fill the buffer as far as one answer goes; 0 at the end of the object."""
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self.entry.size - self._position)
        if wanted == 0:
            return 0
        data = self._read(wanted)
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def readall(self) -> bytes:
        """The rest, in as few pieces as the answers come: Python's own would ask for 8 KiB each."""
        return b"".join(self.pieces(self.entry.size))

    def pieces(self, longest: int = _BUFFER) -> Iterator[bytes]:
        """The rest, as it comes."""
        while left := self.entry.size - self._position:
            piece = self._read(min(left, longest))
            self._position += len(piece)
            yield piece

    def _read(self, wanted: int) -> bytes:
        with explained(f"s3://{self._bucket}", self._key):
            while True:
                try:
                    if data := self._body.read(wanted):
                        return bytes(data)
                    raise IncompleteReadError(
                        actual_bytes=self._position, expected_bytes=self.entry.size
                    )
                except _BROKEN:
                    self._broken += 1
                    if self._broken >= _ATTEMPTS:
                        raise
                    self._resume()

    def _resume(self) -> None:
        self._body.close()
        answer = self._client.get_object(
            Bucket=self._bucket,
            Key=self._key,
            Range=f"bytes={self._position}-",
            IfMatch=f'"{self.entry.stamp}"',
        )
        self._body = answer["Body"]

    def close(self) -> None:
        """Give the connection back."""
        if not self.closed:
            self._body.close()
        super().close()
