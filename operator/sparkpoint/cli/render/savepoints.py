"""Savepoints as text: the table, the whole story, and what was just done to one."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from sparkpoint.cli.render.text import (
    age,
    count,
    fields,
    moment,
    new_share,
    one_line,
    seconds,
    size,
    table,
)
from sparkpoint.savepoint import CaptureResult, Manifest, MaterializeResult, Savepoint
from sparkpoint.savepoint.catalogue import Unreadable
from sparkpoint.savepoint.manifest import OperatorInfo, Parent, QueryInfo
from sparkpoint.savepoint.sinks import SinkAction
from sparkpoint.savepoint.transfer import CopyResult
from sparkpoint.savepoint.verify import Verification

__all__ = [
    "batches",
    "capture_text",
    "copy_text",
    "list_text",
    "parent_text",
    "restore_text",
    "savepoint_text",
    "verification_text",
]


def batches(manifest: Manifest) -> str:
    """`41`, or `clicks 41, visits 17` if there are several queries."""
    if len(manifest.queries) == 1:
        return str(manifest.queries[0].batch)
    return ", ".join(f"{query.prefix} {query.batch}" for query in manifest.queries)


def parent_text(manifest: Manifest) -> str:
    """The parent's name, with whatever of its job is another one; `-` for none."""
    parent = manifest.parent
    if parent is None:
        return "-"
    if (parent.namespace, parent.job) == (manifest.namespace, manifest.job):
        return parent.name
    return _key(parent)


def _key(parent: Parent) -> str:
    return f"{parent.namespace}/{parent.job}/{parent.name}"


def list_text(savepoints: Sequence[Savepoint], now: datetime) -> str:
    """A table, in the order given."""
    if not savepoints:
        return "No savepoints."
    header = ("NAME", "JOB", "BATCH", "AGE", "SIZE", "NEW", "TAGS", "PARENT")
    return table(header, (_row(each, now) for each in savepoints), right="BATCH SIZE NEW")


def _row(savepoint: Savepoint, now: datetime) -> tuple[str, ...]:
    manifest = savepoint.manifest
    return (
        manifest.name,
        f"{manifest.namespace}/{manifest.job}",
        batches(manifest),
        age(manifest.created, now),
        size(manifest.files.bytes),
        size(manifest.files.new_bytes),
        ",".join(savepoint.tags) or "-",
        parent_text(manifest),
    )


def capture_text(result: CaptureResult) -> str:
    """What `create` prints."""
    savepoint = result.savepoint
    manifest = savepoint.manifest
    # The manifest counts every query's tries; a person wants to know about those in vain.
    tries = 1 + max(0, manifest.timing.tries - len(manifest.queries))
    lines = fields(
        [
            ("id", savepoint.id),
            ("batch", batches(manifest)),
            ("files", str(manifest.files.count)),
            ("bytes", size(manifest.files.bytes)),
            ("new bytes", new_share(manifest.files.new_bytes, manifest.files.bytes)),
            ("seconds", f"{result.seconds:.2f}"),
            ("tries", f"{tries}" + (" (Spark purged files meanwhile)" if tries > 1 else "")),
            ("parent", parent_text(manifest)),
            ("tags", ", ".join(savepoint.tags)),
        ]
    )
    return "\n".join([f"Created {savepoint.key}", *lines])


def savepoint_text(savepoint: Savepoint, now: datetime) -> str:
    """What `show` prints."""
    manifest = savepoint.manifest
    parent = manifest.parent
    lines = fields(
        [
            ("id", savepoint.id),
            ("created", f"{moment(manifest.created)} ({age(manifest.created, now)})"),
            ("parent", f"{_key(parent)} ({parent.id[:12]})" if parent else "none"),
            ("tags", ", ".join(savepoint.tags)),
            ("revision", one_line(manifest.revision or "")),
            ("Spark", manifest.spark_version or ""),
            ("trigger", manifest.trigger or ""),
            ("captured from", manifest.source.uri),
            ("epoch", manifest.source.epoch or ""),
            ("size", f"{size(manifest.files.bytes)} in {count(manifest.files.count, 'file')}"),
            ("new", new_share(manifest.files.new_bytes, manifest.files.bytes)),
            ("took", f"{seconds(manifest.timing.seconds)}, "
             f"{count(manifest.timing.tries, 'try', 'tries')}"),
        ]
    )  # fmt: skip
    parts = [line for query in manifest.queries for line in ["", *_query_lines(query)]]
    return "\n".join([savepoint.key, *lines, *parts])


def _query_lines(query: QueryInfo) -> Iterator[str]:
    yield f"Query {query.prefix or '(the only one)'}"
    sink = f"{query.sink.kind} {query.sink.uri or ''}".strip() if query.sink else "unknown"
    pending = f"batch {query.batch + 1} had begun" if query.pending else "none, a clean boundary"
    yield from fields(
        [
            ("id", query.id),
            ("batch", str(query.batch)),
            ("in flight", pending),
            ("watermark", _watermark(query.watermark_ms)),
            ("state", "" if query.rows is None else count(query.rows, "row")),
            ("sink", sink),
        ]
    )
    for source in query.sources:
        yield f"  source {source.key}: {_short(source.offset or 'no offset')}"
    for operator in query.operators:
        yield from _operator_lines(operator)
    if query.conf:
        yield "  pinned configuration"
        yield from (f"    {key}={value}" for key, value in sorted(query.conf.items()))
    for warning in query.warnings:
        yield f"  warning: {warning}"


def _operator_lines(operator: OperatorInfo) -> Iterator[str]:
    name = operator.name or "unnamed"
    partitions = count(operator.partitions, "partition")
    yield f"  operator {operator.id}: {name}, {operator.provider}, {partitions}"
    for store in operator.stores:
        yield f"    store {store.name}: {size(store.bytes)} in {count(store.files, 'file')}"


def _watermark(milliseconds: int) -> str:
    if milliseconds <= 0:
        return "none"
    try:
        return moment(datetime.fromtimestamp(milliseconds / 1000, tz=UTC))
    except (OverflowError, ValueError):
        return f"{milliseconds} ms"


def _short(text: str, limit: int = 200) -> str:
    flat = json.dumps(text)[1:-1].replace('\\"', '"')
    return flat if len(flat) <= limit else f"{flat[:limit]}…"


def verification_text(found: Iterable[Verification], unreadable: Iterable[Unreadable]) -> str:
    """One line per savepoint, and one per problem."""
    lines = []
    for each in found:
        amount = f"{count(each.files, 'file')}, {size(each.bytes)}"
        lines.append(f"{'ok     ' if each.good else 'DAMAGED'}  {each.savepoint.key}  {amount}")
        lines += [f"         {problem}" for problem in each.problems]
    for bad in unreadable:
        word = "NEWER  " if bad.newer else "DAMAGED"
        lines += [f"{word}  {bad.path}", f"         {bad.problem}"]
    return "\n".join(lines) or "No savepoints."


def restore_text(result: MaterializeResult) -> str:
    """What `restore` prints."""
    lines = fields(
        [
            ("mode", result.mode.value),
            ("batch", batches(result.savepoint.manifest)),
            ("files", f"{result.files} ({result.copied_files} copied, "
             f"{result.removed_files} removed)"),
            ("bytes", f"{size(result.bytes)} ({size(result.copied_bytes)} copied)"),
            ("seconds", f"{result.seconds:.2f}"),
        ]
    )  # fmt: skip
    ids = [f"  query {name or '(the only one)'} has id {i}" for name, i in result.query_ids.items()]
    sinks = [
        f"  sink {action.uri}: {count(_entries(action), 'log entry', 'log entries')} removed, "
        f"{len(action.create)} written"
        for action in result.sink_actions
    ]
    return "\n".join([f"Restored {result.savepoint.key} to {result.uri}", *lines, *ids, *sinks])


def _entries(action: SinkAction) -> int:
    """How many entries go; each may have a checksum beside it, of which nobody need know."""
    return sum(not path.endswith(".crc") for path in action.delete)


def copy_text(result: CopyResult, target: str) -> str:
    """What `copy` prints."""
    savepoint, copied, verified = result.savepoint, result.copied_bytes, result.verified_bytes
    lines = fields(
        [
            ("id", savepoint.id),
            ("bytes", size(savepoint.manifest.files.bytes)),
            ("copied", size(copied)),
            *([("verified", size(verified))] if verified else []),
        ]
    )
    done = f"Copied {savepoint.key} to {target}"
    is_done = copied or result.is_new
    return "\n".join([done if is_done else f"{savepoint.key} is in {target} already", *lines])
