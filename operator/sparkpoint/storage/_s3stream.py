"""Reading an S3 object as a stream that survives a broken connection.

boto3 repeats a request that fails, but not the reading of an answer that breaks off. This stream
asks for the rest, of the very same version (`If-Match`), a bounded number of times.
"""

import io
from typing import TYPE_CHECKING

from botocore.exceptions import HTTPClientError, IncompleteReadError, ResponseStreamingError
from botocore.response import StreamingBody
from urllib3.exceptions import HTTPError

from sparkpoint.storage._s3errors import explained
from sparkpoint.storage.interface import Entry

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["ResumingStream"]

_ATTEMPTS = 4
_BROKEN = (HTTPClientError, HTTPError, IncompleteReadError, ResponseStreamingError, OSError)


class ResumingStream(io.RawIOBase):
    """The bytes of one version of one object."""

    def __init__(
        self, client: "S3Client", *, bucket: str, key: str, entry: Entry, body: StreamingBody
    ) -> None:
        super().__init__()
        self._client = client
        self._bucket = bucket
        self._key = key
        self._entry = entry
        self._body = body
        self._position = 0
        self._broken = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: "bytearray | memoryview[int]") -> int:  # type: ignore[override]
        """Fill the buffer as far as one answer goes; 0 at the end of the object."""
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self._entry.size - self._position)
        if wanted == 0:
            return 0
        data = self._read(wanted)
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _read(self, wanted: int) -> bytes:
        with explained(f"s3://{self._bucket}", self._key):
            while True:
                try:
                    if data := self._body.read(wanted):
                        return bytes(data)
                    raise IncompleteReadError(
                        actual_bytes=self._position, expected_bytes=self._entry.size
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
            IfMatch=f'"{self._entry.stamp}"',
        )
        self._body = answer["Body"]

    def close(self) -> None:
        """Give the connection back."""
        if not self.closed:
            self._body.close()
        super().close()
