"""The logs of a query: `metadata`, `offsets/N`, `commits/N`.

Parses bytes into values and refuses by name what it does not know. Reads no store.
"""

from typing import TypeAlias

from sparkpoint.checkpoint.errors import DamagedError, UnknownFormatError
from sparkpoint.checkpoint.jsonlog import (
    Json,
    as_int,
    as_list,
    as_object,
    as_text,
    lines_of,
    parse,
    version_of,
)
from sparkpoint.checkpoint.model import CommitEntry, OffsetEntry
from sparkpoint.checkpoint.names import is_plain_name, is_unique_id

__all__ = ["file_source_offset", "parse_commit", "parse_offsets", "parse_query_id"]

_OFFSET_VERSIONS = (1, 2)
_COMMIT_VERSIONS = (1, 2, 3)
_NAMED_SOURCES = 2
_VOID = "-"
_MAX_OPERATORS = 10_000

_StateIds: TypeAlias = dict[int, tuple[tuple[tuple[str, ...], ...], ...]]


def parse_query_id(data: bytes, path: str = "metadata") -> str:
    """The query's id out of the `metadata` file."""
    lines = lines_of(data, path)
    content = as_object(parse("\n".join(lines), path), path, "the content")
    query_id = as_text(content.get("id"), path, "id")
    if not is_plain_name(query_id):
        raise DamagedError(f"{path}: {query_id[:80]!r} cannot be the id of a query.")
    return query_id


def parse_offsets(data: bytes, batch: int) -> OffsetEntry:
    """What `offsets/<batch>` says."""
    path = f"offsets/{batch}"
    lines = lines_of(data, path)
    version = version_of(lines[0], path, known=_OFFSET_VERSIONS)
    if len(lines) < 3:
        raise DamagedError(f"{path} names no source offset: it is truncated.")
    head = as_object(parse(lines[1], path), path, "line 2") if lines[1].strip() else {}
    watermark, timestamp = head.get("batchWatermarkMs", 0), head.get("batchTimestampMs", 0)
    conf = as_object(head.get("conf", {}), path, "conf")
    return OffsetEntry(
        batch=batch,
        version=version,
        watermark_ms=as_int(watermark, path, "batchWatermarkMs"),
        timestamp_ms=as_int(timestamp, path, "batchTimestampMs"),
        conf={key: as_text(value, path, key) for key, value in conf.items()},
        sources=tuple(_source(line, i, version, path) for i, line in enumerate(lines[2:])),
    )


def parse_commit(data: bytes, batch: int) -> CommitEntry:
    """What `commits/<batch>` says."""
    path = f"commits/{batch}"
    lines = lines_of(data, path)
    version = version_of(lines[0], path, known=_COMMIT_VERSIONS)
    # Spark takes a missing second line for an empty object, and so do we.
    content = parse(lines[1], path) if len(lines) > 1 and lines[1].strip() else {}
    fields = as_object(content, path, "line 2")
    if version > 1 and not fields:
        raise DamagedError(f"{path} is of version v{version}, but empty: it is truncated.")
    return CommitEntry(
        batch=batch,
        version=version,
        next_watermark_ms=as_int(fields.get("nextBatchWatermarkMs", 0), path, "the watermark"),
        state_ids=_state_ids(fields.get("stateUniqueIds"), path),
    )


def file_source_offset(offset: str | None, path: str) -> int | None:
    """The last log entry that a file source's offset covers; None for any other kind of source."""
    if offset is None or not offset.lstrip().startswith("{"):
        return None
    fields = as_object(parse(offset, path), path, "the source offset")
    # A topic of Kafka may be called so; its offsets are no number.
    if fields.keys() != {"logOffset"} or not isinstance(fields["logOffset"], int):
        return None
    return as_int(fields["logOffset"], path, "logOffset")


def _source(line: str, index: int, version: int, path: str) -> tuple[str, str | None]:
    key, offset = str(index), line
    if version == _NAMED_SOURCES:
        key, colon, offset = line.partition(":")
        # The name becomes a folder below sources/.
        if not colon or not is_plain_name(key):
            raise DamagedError(f"{path}: line {index + 3} names no source: it is damaged.")
    if not offset:
        raise DamagedError(f"{path}: line {index + 3} is empty: it is truncated.")
    if offset == _VOID:
        return key, None
    if offset[0] in '{["':
        parse(offset, path)
    return key, offset


def _state_ids(value: Json, path: str) -> _StateIds:
    if value is None:
        return {}
    operators = as_object(value, path, "stateUniqueIds")
    if len(operators) > _MAX_OPERATORS:
        raise UnknownFormatError(f"{path} names {len(operators)} stateful operators.")
    return {
        _operator_id(key, path): tuple(
            tuple((_unique_id(uid, path),) for uid in as_list(stores, path, "unique ids"))
            for stores in as_list(partitions, path, "partitions")
        )
        for key, partitions in operators.items()
    }


def _operator_id(key: str, path: str) -> int:
    if not key.isascii() or not key.isdigit() or len(key) > 9:
        raise DamagedError(f"{path}: {key[:40]!r} is no operator id.")
    return int(key)


def _unique_id(value: Json, path: str) -> str:
    uid = as_text(value, path, "a unique id")
    if not is_unique_id(uid):
        raise DamagedError(f"{path}: {uid[:80]!r} cannot be the unique id of a state file.")
    return uid
