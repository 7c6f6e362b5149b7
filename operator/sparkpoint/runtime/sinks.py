"""Where a query writes, out of what Spark itself says of its sink. Pure."""

import re

from sparkpoint.runtime.model import QuerySink, SinkKind

__all__ = ["describe_sink"]

_CLASSES: tuple[tuple[str, SinkKind], ...] = (
    (r".*\.FileStreamSink", "file"),
    (r"(org\.apache\.spark\.sql|io)\.delta\..*", "delta"),
    (r"org\.apache\.iceberg\..*", "iceberg"),
    (r"org\.apache\.spark\.sql\.kafka010\..*", "kafka"),
    (r".*\.ForeachBatchSink", "foreachBatch"),
)
_NAMED = re.compile(r"\w+\[(.+)\]", re.DOTALL)
"""`FileSink[/data/out]`, `DeltaSink[/data/table]`."""
_WITH_PLACE: tuple[SinkKind, ...] = ("file", "delta")


def describe_sink(name: str, text: str) -> QuerySink:
    """Of the sink's class and of what it calls itself."""
    kind = _kind(name)
    named = _NAMED.fullmatch(text) if kind in _WITH_PLACE else None
    return QuerySink(kind=kind, uri=named[1] if named else None)


def _kind(name: str) -> SinkKind:
    for pattern, kind in _CLASSES:
        if re.fullmatch(pattern, name):
            return kind
    return "other"
