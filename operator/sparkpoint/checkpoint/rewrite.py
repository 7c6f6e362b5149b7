"""What must change in a checkpoint's files when they move. Pure functions over bytes.

Operator metadata of version 2 names its schema files by absolute URI; a fork must not share the
query's id; a file source's log may survive only inside an entry that is too new.
"""

import json
import re
from collections.abc import Callable, Iterable

from sparkpoint.checkpoint.errors import DamagedError
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
from sparkpoint.checkpoint.names import batch_number, is_plain_name
from sparkpoint.checkpoint.operators import schema_tail
from sparkpoint.checkpoint.sources import COMPACT, MAX_SPLIT, compacted_upto

__all__ = [
    "absolute_schema_roots",
    "is_operator_metadata_v2",
    "rewrite_operator",
    "rewrite_query_id",
    "split_compact",
]

_METADATA_V2 = re.compile(r"state/([0-9]+)/_metadata/v2/([0-9]+)")


def is_operator_metadata_v2(path: str) -> bool:
    """Tell whether a file of a checkpoint must go through `rewrite_operator` when it moves."""
    return _METADATA_V2.fullmatch(path) is not None


def rewrite_operator(data: bytes, path: str, *, root: str) -> bytes:
    """Point the schema paths of operator metadata v2 below `root`, as Spark would write it.

    `root` is a URI such as `file:/data/ck` or `s3a://bucket/ck`. Other content passes unchanged.
    """
    found = _METADATA_V2.fullmatch(path)
    if not found:
        return data
    folder = f"{root.rstrip('/')}/state/{found[1]}"
    return _map_schemas(data, path, lambda uri: f"{folder}/{schema_tail(uri, path)}")


def absolute_schema_roots(data: bytes, path: str) -> tuple[str, ...]:
    """The checkpoint roots that operator metadata v2 points into; one, unless it was tampered."""
    found = _METADATA_V2.fullmatch(path)
    if not found:
        return ()
    roots: set[str] = set()
    suffix = f"/state/{found[1]}/"

    def note(uri: str) -> str:
        tail = schema_tail(uri, path)
        roots.add(uri[: -len(tail) - 1].removesuffix(suffix.rstrip("/")))
        return uri

    _map_schemas(data, path, note)
    return tuple(sorted(roots))


def rewrite_query_id(data: bytes, query_id: str) -> bytes:
    """Give the query a new id; anything else in `metadata` stays."""
    if not is_plain_name(query_id):
        raise ValueError(f"{query_id!r} cannot be the id of a query")
    content = as_object(parse("\n".join(lines_of(data, "metadata")), "metadata"), "metadata", "it")
    return _dumps({**content, "id": query_id}).encode()


def split_compact(data: bytes, path: str, *, last: int, interval: int) -> dict[str, bytes]:
    """The log entries 0 … `last` as Spark would have kept them, out of a newer compacted entry.

    File name -> content: the last two compacted entries up to `last`, if any, whose distance tells
    Spark the interval, and one for each after them.
    DamagedError for an interval that would make more of them than any log has.
    """
    lines = lines_of(data, path)
    version_of(lines[0], path, known=(1,))
    if interval < 1 or (last + 1) % interval > MAX_SPLIT:
        raise DamagedError(f"{path} cannot be cut at {last} with an interval of {interval}.")
    entries = [(_entry_batch(line, path), line) for line in lines[1:] if line]
    compacts = compacted_upto(last, interval)
    split: dict[str, bytes] = {}
    for number in compacts:
        upto = [entry for batch, entry in entries if batch <= number]
        split[f"{number}{COMPACT}"] = _entry(lines[0], upto)
    by_batch: dict[int, list[str]] = {}
    for batch, line in entries:
        by_batch.setdefault(batch, []).append(line)
    for number in range(max(compacts, default=-1) + 1, last + 1):
        split[str(number)] = _entry(lines[0], by_batch.get(number, ()))
    return split


def _map_schemas(data: bytes, path: str, change: Callable[[str], str]) -> bytes:
    lines = lines_of(data, path)
    version_of(lines[0], path, known=(2,))
    content = as_object(parse("\n".join(lines[1:]), path), path, "the content")
    stores = as_list(content.get("stateStoreInfo"), path, "stateStoreInfo")
    changed = [_map_store(as_object(s, path, "a store"), path, change) for s in stores]
    return f"{lines[0]}\n{_dumps({**content, 'stateStoreInfo': changed})}".encode()


def _map_store(store: dict[str, Json], path: str, change: Callable[[str], str]) -> Json:
    uris = as_list(store.get("stateSchemaFilePaths", []), path, "stateSchemaFilePaths")
    changed: list[Json] = [change(as_text(uri, path, "a schema path")) for uri in uris]
    return {**store, "stateSchemaFilePaths": changed}


def _entry_batch(line: str, path: str) -> int:
    fields = as_object(parse(line, path), path, "an entry")
    batch = as_int(fields.get("batchId"), path, "batchId")
    if batch_number(str(batch)) is None:
        raise DamagedError(f"{path}: {batch} is no batch id.")
    return batch


def _entry(version: str, entries: Iterable[str]) -> bytes:
    return "\n".join([version, *entries]).encode()


def _dumps(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
