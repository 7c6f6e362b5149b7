"""How bytes travel to, from and within an S3 server; the sizes that decide which way."""

import contextlib
import hashlib
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, TypedDict

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from sparkpoint.storage._s3errors import code_of
from sparkpoint.storage.interface import Entry

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = [
    "BUFFER",
    "MULTIPART",
    "SINGLE",
    "Condition",
    "RangeError",
    "copy_on_server",
    "entry_of",
    "get_range",
    "spooled",
    "touch",
    "unfinished_uploads",
]

BUFFER = 1024 * 1024
SINGLE = 32 * 1024 * 1024
"""Up to here one request carries the object, with its SHA-256 for the server to check."""
MULTIPART = TransferConfig(
    multipart_threshold=SINGLE, multipart_chunksize=16 * 1024 * 1024, max_concurrency=4
)
_SERVER_COPY = 1024 * 1024 * 1024
"""Above this (S3 itself allows five times as much) the server copies in parts."""
_COPY_IN_PARTS = TransferConfig(
    multipart_threshold=_SERVER_COPY, multipart_chunksize=256 * 1024 * 1024, max_concurrency=4
)
_IN_MEMORY = 8 * 1024 * 1024
"""What a spool holds before it goes to disk; times the number of threads it must fit in memory."""


class Condition(TypedDict, total=False):
    """The header that makes a write conditional."""

    IfMatch: str
    IfNoneMatch: str


class RangeError(Exception):
    """The range starts at or after the end."""


def entry_of(path: str, answer: Mapping[str, Any]) -> Entry:
    """The entry that a HEAD or GET describes."""
    modified = answer["LastModified"].timestamp()
    return Entry(path, int(answer["ContentLength"]), answer["ETag"].strip('"'), modified)


def get_range(client: "S3Client", bucket: str, key: str, *, span: tuple[int, int]) -> bytes:
    """A few bytes from the middle; RangeError if there are none."""
    start, length = span
    try:
        answer = client.get_object(
            Bucket=bucket, Key=key, Range=f"bytes={start}-{start + length - 1}"
        )
    except ClientError as error:
        if code_of(error) in ("InvalidRange", "416", "RequestedRangeNotSatisfiable"):
            raise RangeError from error
        raise
    with contextlib.closing(answer["Body"]) as body:
        return body.read()


@contextlib.contextmanager
def spooled(chunks: Iterable[bytes]) -> Iterator[tuple[IO[bytes], str, int]]:
    """A stream collected in memory, or on disk if it is long; with its digest and length."""
    digest, size = hashlib.sha256(), 0
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        for chunk in chunks:
            digest.update(chunk)
            size += len(chunk)
            spool.write(chunk)
        spool.seek(0)
        yield spool, digest.hexdigest(), size


def copy_on_server(
    client: "S3Client",
    *,
    source: tuple[str, str],
    target: tuple[str, str],
    size: int,
    stamp: str | None,
) -> None:
    """Let the server copy; only if the source still has this ETag, where one is given."""
    origin: Any = {"Bucket": source[0], "Key": source[1]}
    condition = {"CopySourceIfMatch": f'"{stamp}"'} if stamp else {}
    if size > _SERVER_COPY:
        client.copy(origin, target[0], target[1], ExtraArgs=condition, Config=_COPY_IN_PARTS)
        return
    client.copy_object(Bucket=target[0], Key=target[1], CopySource=origin, **condition)  # type: ignore[arg-type]


def touch(client: "S3Client", bucket: str, key: str) -> None:
    """Give an object a new modification time without sending it again.

    S3 copies an object onto itself only if something about it changes: here a piece of metadata.
    """
    client.copy_object(
        Bucket=bucket,
        Key=key,
        CopySource={"Bucket": bucket, "Key": key},
        Metadata={"touched": uuid.uuid4().hex},
        MetadataDirective="REPLACE",
    )


def unfinished_uploads(client: "S3Client", bucket: str, prefix: str) -> Iterator[Entry]:
    """Uploads in parts that nobody ended; the path is the whole key, the stamp the upload's id."""
    pages = client.get_paginator("list_multipart_uploads")
    for page in pages.paginate(Bucket=bucket, Prefix=prefix):
        for each in page.get("Uploads", []):
            yield Entry(each["Key"], 0, each["UploadId"], each["Initiated"].timestamp())
