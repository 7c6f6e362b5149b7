"""What a checkpoint says about its number of partitions, and how to make it say another one.

Pure functions over bytes. Spark takes the number from the newest offset log entry, whatever the
session says; operator metadata repeats it for readers.
"""

import json

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.checkpoint.jsonlog import (
    Json,
    as_int,
    as_list,
    as_object,
    lines_of,
    parse,
    version_of,
)

__all__ = ["PARTITIONS", "prefix_columns", "with_conf", "with_partitions", "with_store_partitions"]

PARTITIONS = "spark.sql.shuffle.partitions"


def with_partitions(data: bytes, path: str, *, partitions: int) -> bytes:
    """An entry of the offset log that pins another number of partitions; all else stays."""
    return with_conf(data, path, PARTITIONS, str(partitions))


def with_conf(data: bytes, path: str, key: str, value: str) -> bytes:
    """An entry of the offset log that pins another value; all else stays."""
    lines = lines_of(data, path)
    version_of(lines[0], path, known=(1, 2))
    if len(lines) < 3:
        raise DamagedError(f"{path} names no source offset: it is truncated.")
    head = as_object(parse(lines[1], path), path, "line 2")
    conf = as_object(head.get("conf"), path, "conf")
    lines[1] = _dumps({**head, "conf": {**conf, key: value}})
    return "\n".join(lines).encode()


def with_store_partitions(data: bytes, path: str, *, partitions: int) -> bytes:
    """Operator metadata of version 1 that tells another number of partitions."""
    lines = lines_of(data, path)
    version_of(lines[0], path, known=(1,))
    content = as_object(parse("\n".join(lines[1:]), path), path, "the content")
    stores = as_list(content.get("stateStoreInfo"), path, "stateStoreInfo")
    changed: list[Json] = [
        {**as_object(store, path, "a store"), "numPartitions": partitions} for store in stores
    ]
    return f"{lines[0]}\n{_dumps({**content, 'stateStoreInfo': changed})}".encode()


def prefix_columns(data: bytes, path: str, *, store: str) -> int:
    """How many columns of a store's key Spark scans by, as operator metadata of version 1 says."""
    lines = lines_of(data, path)
    version_of(lines[0], path, known=(1,))
    content = as_object(parse("\n".join(lines[1:]), path), path, "the content")
    for each in as_list(content.get("stateStoreInfo"), path, "stateStoreInfo"):
        found = as_object(each, path, "a store")
        if found.get("storeName") == store:
            return as_int(found.get("numColsPrefixKey", 0), path, "numColsPrefixKey")
    raise DamagedError(f"{path} names no store {store}.")


def _dumps(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
