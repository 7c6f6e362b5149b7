"""Savepoints made up for the renderers: no store, no clock."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sparkpoint.savepoint import Manifest, Savepoint
from sparkpoint.savepoint.manifest import (
    FileSet,
    OperatorInfo,
    Parent,
    QueryInfo,
    SinkInfo,
    SourceInfo,
    SourceOffset,
    StoreInfo,
    Timing,
)

__all__ = ["NOW", "identity", "query_info", "savepoint"]

NOW = datetime(2026, 7, 30, 12, 0, tzinfo=UTC)


def identity(name: str) -> str:
    """An id that a person can recognise."""
    return name.encode().hex().ljust(64, "0")[:64]


def query_info(prefix: str = "", **changes: Any) -> QueryInfo:
    """A query with one operator."""
    store = StoreInfo(
        name="default", partitions=2, base_versions=[40, 40], files=9, bytes=25_000_000
    )
    operator = OperatorInfo(
        id=0, name="stateStoreSave", provider="rocksdb", partitions=2, stores=[store]
    )
    values: dict[str, Any] = {
        "prefix": prefix,
        "id": "6c1f7e1e-0000-4000-8000-000000000001",
        "batch": 41,
        "watermark_ms": 1_785_405_600_000,
        "next_watermark_ms": 1_785_405_660_000,
        "timestamp_ms": 1_785_405_700_000,
        "sources": [SourceOffset(key="0", offset='{"visits":{"0":812}}')],
        "conf": {"spark.sql.shuffle.partitions": "2"},
        "operators": [operator],
        "sink": SinkInfo(kind="file", uri="/data/out"),
        "pending": False,
        "offsets_version": 1,
        "commits_version": 1,
    }
    return QueryInfo(**(values | changes))


def savepoint(
    name: str,
    *,
    hours: float = 3,
    parent: Savepoint | None = None,
    job: str = "visits",
    tags: tuple[str, ...] = (),
    **changes: Any,
) -> Savepoint:
    """A savepoint that is so many hours old."""
    created = NOW - timedelta(hours=hours)
    values: dict[str, Any] = {
        "format": 1,
        "namespace": "shop",
        "job": job,
        "name": name,
        "created": created,
        "parent": _parent(parent),
        "source": SourceInfo(uri="/data/checkpoints/visits"),
        "queries": [query_info()],
        "files": FileSet(
            table="0" * 64,
            table_bytes=900,
            count=18,
            bytes=28_416_000,
            new_bytes=1_258_291,
            new_objects=3,
        ),
        "timing": Timing(started=created, seconds=0.42, tries=1),
    }
    manifest = Manifest(**(values | changes))
    path = f"savepoints/shop/{job}/{name}.json"
    return Savepoint(identity(name), path, created.timestamp() + 1, manifest, tags)


def _parent(savepoint: Savepoint | None) -> Parent | None:
    if savepoint is None:
        return None
    manifest = savepoint.manifest
    return Parent(
        id=savepoint.id, namespace=manifest.namespace, job=manifest.job, name=manifest.name
    )
