"""A batch plan in the words of the manifest."""

from sparkpoint.checkpoint.model import BatchPlan, Operator, Role
from sparkpoint.savepoint.manifest import (
    OperatorInfo,
    QueryInfo,
    SinkInfo,
    SourceCut,
    SourceOffset,
    StoreInfo,
)

__all__ = ["describe_query"]


def describe_query(plan: BatchPlan, *, prefix: str, sink: SinkInfo | None) -> QueryInfo:
    """What a person or the operator wants to know about a query without reading its files."""
    return QueryInfo(
        prefix=prefix,
        id=plan.query_id,
        batch=plan.batch,
        watermark_ms=plan.offsets.watermark_ms,
        next_watermark_ms=plan.commit.next_watermark_ms,
        timestamp_ms=plan.offsets.timestamp_ms,
        sources=[SourceOffset(key=key, offset=offset) for key, offset in plan.offsets.sources],
        conf=dict(plan.offsets.conf),
        operators=[_operator(operator) for operator in plan.operators],
        sink=sink,
        pending=any(file.role is Role.PENDING for file in plan.files),
        offsets_version=plan.offsets.version,
        commits_version=plan.commit.version,
        source_cuts=[
            SourceCut(source=cut.source, path=cut.path, last=cut.last, interval=cut.interval)
            for cut in plan.rewrites
        ],
        warnings=list(plan.warnings),
    )


def _operator(operator: Operator) -> OperatorInfo:
    return OperatorInfo(
        id=operator.id,
        name=operator.name,
        metadata_version=operator.metadata_version,
        provider=operator.provider,
        partitions=operator.partitions,
        stores=[
            StoreInfo(
                name=store.name,
                partitions=store.partitions,
                base_versions=list(store.base_versions),
                files=store.files,
                bytes=store.bytes,
            )
            for store in operator.stores
        ],
    )
