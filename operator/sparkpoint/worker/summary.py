"""The details of a savepoint, for whoever wants more than its summary."""

from collections.abc import Mapping

from sparkpoint.savepoint import Manifest
from sparkpoint.savepoint.manifest import QueryInfo, moment
from sparkpoint.worker.model import Details, QueryDetails

__all__ = ["detail"]


def detail(manifest: Manifest, *, rows: Mapping[str, int] | None = None) -> Details:
    """The rest of what a manifest says; `rows` is folder -> rows of state, if they were loaded."""
    loaded = rows or {}
    return Details(
        namespace=manifest.namespace,
        job=manifest.job,
        revision=manifest.revision,
        spark_version=manifest.spark_version,
        trigger=manifest.trigger,
        epoch=manifest.source.epoch,
        source=manifest.source.uri,
        queries=tuple(
            _query(each, loaded.get(each.prefix, each.rows)) for each in manifest.queries
        ),
    )


def _query(query: QueryInfo, rows: int | None) -> QueryDetails:
    operators = query.operators
    return QueryDetails(
        name=query.prefix,
        id=query.id,
        batch=query.batch,
        partitions=max((each.partitions for each in operators), default=None),
        provider=operators[0].provider if operators else None,
        watermark=moment(query.watermark_ms / 1000) if query.watermark_ms > 0 else None,
        pending=query.pending,
        rows=rows,
    )
