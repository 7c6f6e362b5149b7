"""Removing everything below a prefix, also what no listing of ours shows: marks of folders."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from sparkpoint.storage._s3client import PARALLEL
from sparkpoint.storage.errors import UnavailableError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["remove_below"]

_PASSES = 5
"""A writer that is about to end may add a few objects; one that is not would never let us end."""


def remove_below(
    client: "S3Client", bucket: str, top: str, *, removed: Callable[[int], None]
) -> None:
    """Delete all keys that start with `top`, which ends in a slash, until none is left."""
    _abort_uploads(client, bucket, top)
    for _ in range(_PASSES):
        if not _delete_listed(client, bucket, top, removed):
            return
    raise UnavailableError(
        f"s3://{bucket}/{top} still gets new objects while it is removed. End whatever writes "
        "there; then run this again."
    )


def _delete_listed(
    client: "S3Client", bucket: str, top: str, removed: Callable[[int], None]
) -> bool:
    """Whether there was anything. One request per key: servers differ in what a request for many
    must carry."""

    def delete(found: tuple[str, int]) -> None:
        key, size = found
        client.delete_object(Bucket=bucket, Key=key)
        removed(size)

    found_any = False
    with ThreadPoolExecutor(PARALLEL, "remove") as pool:
        for page in _pages(client, bucket, top):
            found_any = True
            list(pool.map(delete, page))
    return found_any


def _pages(client: "S3Client", bucket: str, top: str) -> Iterator[list[tuple[str, int]]]:
    pages = client.get_paginator("list_objects_v2")
    for page in pages.paginate(Bucket=bucket, Prefix=top):
        if contents := page.get("Contents", []):
            yield [(each["Key"], each["Size"]) for each in contents]


def _abort_uploads(client: "S3Client", bucket: str, top: str) -> None:
    pages = client.get_paginator("list_multipart_uploads")
    for page in pages.paginate(Bucket=bucket, Prefix=top):
        for each in page.get("Uploads", []):
            client.abort_multipart_upload(Bucket=bucket, Key=each["Key"], UploadId=each["UploadId"])
