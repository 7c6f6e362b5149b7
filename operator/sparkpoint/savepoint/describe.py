"""A batch plan in the words of the manifest."""

from dataclasses import dataclass

from sparkpoint.checkpoint.model import BatchPlan, Operator, Role
from sparkpoint.savepoint.manifest import (
    OperatorInfo,
    QueryInfo,
    SinkInfo,
    SourceCut,
    SourceOffset,
    StoreInfo,
)

__all__ = ["StateCount", "describe_query", "is_shown"]

_JOIN = "symmetricHashJoin"
_ROW_BY_ROW = frozenset(
    {
        "stateStoreSave",
        "sessionWindowStateStoreSaveExec",
        "dedupe",
        "dedupeWithinWatermark",
        "flatMapGroupsWithState",
        "applyInPandasWithState",
        "globalLimit",
        _JOIN,
    }
)
"""Operators of whose state Spark's reader shows what Spark counts. Of the variables of
`transformWithState` it shows an element each, and a key may have many."""


@dataclass(frozen=True, slots=True)
class StateCount:
    """What Spark has said of a query's state when it had committed a batch."""

    batch: int
    rows: int
    counts: int
    """Stores of partitions that they were counted in. Spark sums over all tasks, also over those
    that were done again, as when a function of `foreachBatch` computes its rows twice."""

    def is_of(self, plan: BatchPlan) -> bool:
        """Whether it is about this very batch, with each store of each partition counted once.

        No rows at all is what Spark says, too, if it was told not to count.
        """
        stores = sum(store.partitions for each in plan.operators for store in each.stores)
        return self.batch == plan.batch and self.counts == stores and self.rows > 0


def is_shown(store: str) -> bool:
    """Whether Spark's reader shows what is in a store: of those of a join, the ones with rows."""
    return not store.endswith("-keyToNumValues")


def describe_query(
    plan: BatchPlan, *, prefix: str, sink: SinkInfo | None, count: StateCount | None = None
) -> QueryInfo:
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
        rows=_rows(plan, count),
        pending=any(file.role is Role.PENDING for file in plan.files),
        offsets_version=plan.offsets.version,
        commits_version=plan.commit.version,
        source_cuts=[
            SourceCut(source=cut.source, path=cut.path, last=cut.last, interval=cut.interval)
            for cut in plan.rewrites
        ],
        warnings=list(plan.warnings),
    )


def _rows(plan: BatchPlan, count: StateCount | None) -> int | None:
    """Of all state, by whoever knows: Spark itself, or the snapshots that it has written."""
    shown = [s for operator in plan.operators for s in operator.stores if is_shown(s.name)]
    if not shown or not all(map(_is_row_by_row, plan.operators)):
        return None
    if count is not None and count.is_of(plan):
        return count.rows
    rows = [store.rows for store in shown if store.rows is not None]
    return sum(rows) if len(rows) == len(shown) else None


def _is_row_by_row(operator: Operator) -> bool:
    """Newer joins keep lists of rows, or all that they have in a single store."""
    rows = [store.name for store in operator.stores if is_shown(store.name)]
    is_join = operator.name == _JOIN
    return operator.name in _ROW_BY_ROW and all(
        name.endswith("-keyWithIndexToValue") is is_join for name in rows
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
