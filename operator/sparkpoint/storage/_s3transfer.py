"""How bytes travel to an S3 server; the sizes that decide which way."""

import base64
import contextlib
import hashlib
import io
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, TypedDict

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from sparkpoint.storage._files import chunks_of
from sparkpoint.storage._s3errors import code_of

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["Condition", "hash_stream", "put_if", "spooled", "upload"]

_SINGLE = 32 * 1024 * 1024
"""Up to here one request carries the object, with its SHA-256 for the server to check."""
_IN_PARTS = TransferConfig(
    multipart_threshold=_SINGLE, multipart_chunksize=16 * 1024 * 1024, max_concurrency=4
)
_IN_MEMORY = 8 * 1024 * 1024
"""What a spool holds before it goes to disk; times the number of threads it must fit in memory."""
_CONFLICTS = 4
"""How often a write is sent again after 409, which S3 answers while another write is under way."""


class Condition(TypedDict, total=False):
    """The header that makes a write conditional."""

    IfMatch: str
    IfNoneMatch: str


def put_if(client: "S3Client", bucket: str, key: str, *, data: bytes, condition: Condition) -> None:
    """Write if the condition holds; ClientError if not."""
    for left in reversed(range(_CONFLICTS)):
        try:
            client.put_object(Bucket=bucket, Key=key, Body=data, **condition)
        except ClientError as error:
            if code_of(error) != "ConditionalRequestConflict" or left == 0:
                raise
        else:
            return


def upload(
    client: "S3Client", bucket: str, key: str, *, stream: IO[bytes], digest: str, size: int
) -> None:
    """Write over whatever is there, in parts if it is much."""
    if size > _SINGLE:
        client.upload_fileobj(stream, bucket, key, Config=_IN_PARTS)
        return
    checksum = base64.b64encode(bytes.fromhex(digest)).decode()
    client.put_object(
        Bucket=bucket, Key=key, Body=stream, ContentLength=size, ChecksumSHA256=checksum
    )


@contextlib.contextmanager
def spooled(chunks: Iterable[bytes]) -> Iterator[tuple[IO[bytes], str, int]]:
    """A stream collected in memory, or on disk if it is long; with its digest and length."""
    if isinstance(chunks, list | tuple):
        # It is in memory already, and one piece is not even copied.
        data = b"".join(chunks)
        yield io.BytesIO(data), hashlib.sha256(data).hexdigest(), len(data)
        return
    digest, size = hashlib.sha256(), 0
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        for chunk in chunks:
            digest.update(chunk)
            size += len(chunk)
            spool.write(chunk)
        spool.seek(0)
        yield spool, digest.hexdigest(), size


def hash_stream(stream: IO[bytes]) -> tuple[str, int]:
    """The SHA-256 of the rest of a stream, and its length."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks_of(stream):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size
