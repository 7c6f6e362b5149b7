"""A savepoint in the words of an answer."""

from collections.abc import Mapping, Sequence

from sparkpoint.runtime.model import SavepointSummary
from sparkpoint.savepoint import Manifest, Savepoint
from sparkpoint.savepoint.manifest import QueryInfo, moment
from sparkpoint.worker.model import Details, QueryDetails

__all__ = ["detail", "summarize"]


def summarize(
    savepoint: Savepoint, repository: str, *, left_out: Sequence[str] = ()
) -> SavepointSummary:
    """What the agent says of the savepoints that it makes; queries go by their folders."""
    manifest, parent = savepoint.manifest, savepoint.manifest.parent
    return SavepointSummary(
        id=savepoint.id,
        name=manifest.name,
        batches={query.prefix: query.batch for query in manifest.queries},
        files=manifest.files.count,
        bytes=manifest.files.bytes,
        new_bytes=manifest.files.new_bytes,
        seconds=manifest.timing.seconds,
        created=manifest.created,
        parent=f"{parent.namespace}/{parent.job}/{parent.name}" if parent else None,
        location=f"{repository}/{savepoint.path}",
        pending=manifest.pending,
        left_out=tuple(left_out),
    )


def detail(manifest: Manifest, *, rows: Mapping[str, int] | None = None) -> Details:
    """The rest of what a manifest says; `rows` is folder -> rows of state, if they were counted."""
    counted = rows or {}
    return Details(
        namespace=manifest.namespace,
        job=manifest.job,
        revision=manifest.revision,
        spark_version=manifest.spark_version,
        trigger=manifest.trigger,
        epoch=manifest.source.epoch,
        source=manifest.source.uri,
        queries=tuple(_query(each, counted.get(each.prefix)) for each in manifest.queries),
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
