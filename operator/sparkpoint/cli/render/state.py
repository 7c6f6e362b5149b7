"""State as text and as documents: what it is made of, and how it was moved."""

from collections.abc import Sequence

from sparkpoint.cli.render.text import fields, size, table
from sparkpoint.state import ChildResult, StoreSurvey
from sparkpoint.state.repartition import MovedStore

__all__ = ["moved_document", "moved_text", "survey_document", "survey_text"]


def survey_text(key: str, stores: Sequence[StoreSurvey]) -> str:
    """What `state show` prints."""
    if not stores:
        return f"{key} holds no state."
    header = ("QUERY", "OPERATOR", "STORE", "PROVIDER", "PARTITIONS", "ROWS", "SIZE", "SKEW")
    right = "PARTITIONS ROWS SIZE SKEW"
    return "\n".join([key, table(header, map(_row, stores), right=right)])


def _row(store: StoreSurvey) -> tuple[str, ...]:
    return (
        store.query or "-",
        f"{store.operator} {store.operator_name or ''}".strip(),
        store.store,
        store.provider,
        str(len(store.stored)),
        "-" if store.tally is None else str(store.tally.rows),
        size(sum(store.stored)),
        f"{store.skew:.2f}",
    )


def survey_document(store: StoreSurvey) -> dict[str, object]:
    """One store of `state show`."""
    tally = store.tally
    return {
        "query": store.query,
        "operator": store.operator,
        "operatorName": store.operator_name,
        "store": store.store,
        "provider": store.provider,
        "partitions": len(store.stored),
        "rows": tally.rows if tally else None,
        "bytes": sum(store.stored),
        "rowBytes": tally.bytes if tally else None,
        "digest": tally.digest if tally else None,
        "skew": round(store.skew, 4),
        "rowsByPartition": [each.rows for each in tally.partitions] if tally else None,
        "bytesByPartition": list(store.stored),
        "unread": store.unread,
    }


def moved_text(result: ChildResult) -> str:
    """What `state repartition` and `state migrate` print."""
    lines = fields(
        [
            ("id", result.savepoint.id),
            ("parent", result.parent.key),
            ("rows", f"{result.rows}, each where Spark looks for it"),
            ("bytes", size(result.savepoint.manifest.files.bytes)),
            ("seconds", f"{result.seconds:.2f}"),
        ]
    )
    stores = [_moved_line(query, m) for query, each in result.moved.items() for m in each]
    return "\n".join([f"Created {result.savepoint.key}", *lines, *stores])


def _moved_line(query: str, moved: MovedStore) -> str:
    where = f"query {query}, " if query else ""
    name = f"operator {moved.after.operator} {moved.operator_name or ''}".strip()
    return (
        f"  {where}{name}, store {moved.after.store}: {moved.after.rows} rows, "
        f"{len(moved.before.partitions)} -> {len(moved.after.partitions)} partitions"
    )


def moved_document(query: str, moved: MovedStore) -> dict[str, object]:
    """One store of `state repartition`."""
    return {
        "query": query,
        "operator": moved.after.operator,
        "operatorName": moved.operator_name,
        "store": moved.after.store,
        "rows": moved.after.rows,
        "digest": moved.after.digest,
        "partitionsBefore": len(moved.before.partitions),
        "partitions": len(moved.after.partitions),
        "rowsByPartition": [each.rows for each in moved.after.partitions],
    }
