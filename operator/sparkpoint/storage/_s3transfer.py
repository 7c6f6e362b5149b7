"""How bytes travel to an S3 server; the sizes that decide which way."""

import base64
import contextlib
import io
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, TypedDict

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from sparkpoint.storage._files import chunks_of
from sparkpoint.storage._s3errors import code_of
from sparkpoint.storage.digest import new_digester
from sparkpoint.storage.interface import Moved, unwatched

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["Condition", "Hashed", "hash_stream", "put_if", "spooled", "upload"]

_SINGLE = 32 * 1024 * 1024
"""Up to here one request carries the object, with a checksum for the server to compare."""
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
    """Write if the condition holds; ClientError if not.

    The checksum keeps a server from storing what a process that dies has not sent: one takes a
    request that ends after its headers for an empty object.
    """
    checksum = _base64(zlib.crc32(data))
    for left in reversed(range(_CONFLICTS)):
        try:
            client.put_object(
                Bucket=bucket, Key=key, Body=data, ChecksumCRC32=checksum, **condition
            )
        except ClientError as error:
            if code_of(error) != "ConditionalRequestConflict" or left == 0:
                raise
        else:
            return


@dataclass(frozen=True, slots=True)
class Hashed:
    """What a stream was found to hold."""

    digest: str
    size: int
    crc: int
    """CRC-32, which every server can compute: so it notices if it is sent something else."""


def upload(
    client: "S3Client",
    bucket: str,
    key: str,
    *,
    stream: IO[bytes],
    content: Hashed,
    moved: Moved = unwatched,
) -> None:
    """Write over whatever is there, in parts if it is much; then `moved` is told how far it is."""
    if content.size > _SINGLE:
        client.upload_fileobj(stream, bucket, key, Config=_IN_PARTS, Callback=moved)
        return
    checksum = _base64(content.crc)
    client.put_object(
        Bucket=bucket, Key=key, Body=stream, ContentLength=content.size, ChecksumCRC32=checksum
    )


def _base64(crc: int) -> str:
    return base64.b64encode(crc.to_bytes(4, "big")).decode()


@contextlib.contextmanager
def spooled(chunks: Iterable[bytes], *, like: str = "") -> Iterator[tuple[IO[bytes], Hashed]]:
    """A stream collected in memory, or on disk if it is long; its digest is as `like`."""
    if isinstance(chunks, list | tuple):
        # It is in memory already, and one piece is not even copied.
        data = b"".join(chunks)
        yield io.BytesIO(data), _hashed([data], like)
        return
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        content = _hashed(_written(chunks, spool), like)
        spool.seek(0)
        yield spool, content


def hash_stream(stream: IO[bytes], *, like: str = "") -> Hashed:
    """The rest of a stream."""
    return _hashed(chunks_of(stream), like)


def _written(chunks: Iterable[bytes], spool: IO[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        spool.write(chunk)
        yield chunk


def _hashed(chunks: Iterable[bytes], like: str) -> Hashed:
    digest, size, crc = new_digester(like), 0, 0
    for chunk in chunks:
        digest.update(chunk)
        crc = zlib.crc32(chunk, crc)
        size += len(chunk)
    return Hashed(digest.hexdigest(), size, crc)
