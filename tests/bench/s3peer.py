"""The peers on S3: what `aws s3 sync` does between two places of one server, and by way of here."""

import contextlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from boto3.s3.transfer import TransferConfig, create_transfer_manager

from sparkpoint.storage.s3 import connect
from tests.bench.stores import Watch

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["CONCURRENCY", "copy_on_server", "copy_through"]

CONCURRENCY = 16
"""That of our own store."""
_CONFIG = TransferConfig(max_concurrency=CONCURRENCY, multipart_threshold=64 * 1024 * 1024)
"""The default of 8 MiB would make the peer slower: it copies in parts what one request can do."""


def copy_on_server(task: dict[str, Any], watch: Watch) -> Mapping[str, float]:
    """boto3's transfer manager, one CopyObject per file; nothing is read, so nothing is hashed."""
    client = _connect(task, watch)
    bucket, prefix = task["source"]
    keys = _keys(client, bucket, prefix)
    with contextlib.closing(_Manager(client)) as manager:
        for key in keys:
            manager.copy({"Bucket": bucket, "Key": key}, task["target"], key)
    return {"files": len(keys)}


def copy_through(task: dict[str, Any], watch: Watch) -> Mapping[str, float]:
    """Download and upload every file, so many at a time."""
    client = _connect(task, watch)
    bucket, prefix = task["source"]
    keys = _keys(client, bucket, prefix)

    def through(key: str) -> None:
        data = client.get_object(Bucket=bucket, Key=key)["Body"].read()
        client.put_object(Bucket=task["target"], Key=key, Body=data)

    with ThreadPoolExecutor(CONCURRENCY) as pool:
        list(pool.map(through, keys))
    return {"files": len(keys)}


class _Manager:
    """boto3's transfer manager, which raises only when its futures are asked."""

    def __init__(self, client: "S3Client") -> None:
        self._manager: Any = create_transfer_manager(client, _CONFIG)
        self._futures: list[Any] = []

    def copy(self, source: Mapping[str, str], bucket: str, key: str) -> None:
        """Begin one copy."""
        self._futures.append(self._manager.copy(source, bucket, key))

    def close(self) -> None:
        """Wait for all of them."""
        for future in self._futures:
            future.result()
        self._manager.shutdown()


def _connect(task: dict[str, Any], watch: Watch) -> "S3Client":
    client = connect(f"s3://{task['target']}", task["endpoint"])
    client.meta.events.register("before-send.s3", watch.asked)
    return client


def _keys(client: "S3Client", bucket: str, prefix: str) -> list[str]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
    return [each["Key"] for page in pages for each in page.get("Contents", [])]
