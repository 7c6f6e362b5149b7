"""A checkpoint as text, hazards last, where the eye stays."""

from collections.abc import Iterator, Sequence

from sparkpoint.checkpoint.model import Checkpoint, Operator
from sparkpoint.cli.render.text import count, fields, size

__all__ = ["checkpoint_text"]

_LONGEST = 160


def checkpoint_text(uri: str, queries: Sequence[tuple[str, Checkpoint]]) -> str:
    """All queries of a checkpoint."""
    parts = [line for name, each in queries for line in ["", *_query(name, each)]]
    return "\n".join([f"{uri}: {count(len(queries), 'query', 'queries')}", *parts])


def _query(name: str, checkpoint: Checkpoint) -> Iterator[str]:
    yield f"Query {name or '(the checkpoint itself)'}"
    offsets = checkpoint.offsets
    yield from fields(
        [
            ("id", checkpoint.query_id or "unknown"),
            ("last batch", _batch(checkpoint)),
            ("stopped", _stopped(checkpoint)),
            ("a savepoint takes", _takes(checkpoint)),
            ("provider", ", ".join(sorted({each.provider for each in checkpoint.operators}))),
        ]
    )
    for key, offset in offsets.sources if offsets else ():
        yield f"  source {key}: {_cut(offset or 'no offset')}"
    for operator in checkpoint.operators:
        yield from _operator(operator)
    if offsets and offsets.conf:
        yield "  pinned configuration"
        yield from (f"    {key}={_cut(value)}" for key, value in sorted(offsets.conf.items()))
    yield "  hazards" if checkpoint.hazards else "  hazards: none known"
    yield from (f"    - {hazard}" for hazard in checkpoint.hazards)


def _batch(checkpoint: Checkpoint) -> str:
    if checkpoint.last_committed is None:
        return "none is committed"
    more = len(checkpoint.batches)
    return f"{checkpoint.last_committed} (committed batches still here: {more})"


def _takes(checkpoint: Checkpoint) -> str:
    if not checkpoint.files:
        return "nothing: none can be made of this, see the hazards"
    return f"{size(checkpoint.bytes)} in {count(checkpoint.files, 'file')}"


def _stopped(checkpoint: Checkpoint) -> str:
    if checkpoint.pending is not None:
        return f"not at a boundary: batch {checkpoint.pending} is pending"
    return "at a boundary, nothing pending" if checkpoint.clean else "before its first commit"


def _operator(operator: Operator) -> Iterator[str]:
    partitions = count(operator.partitions, "partition")
    name = operator.name or "unnamed"
    yield f"  operator {operator.id}: {name}, {operator.provider}, {partitions}"
    for store in operator.stores:
        yield f"    store {store.name}: {size(store.bytes)} in {count(store.files, 'file')}"


def _cut(text: str) -> str:
    flat = text.replace("\n", " ")
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]}…"
