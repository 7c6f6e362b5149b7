"""What a checkpoint says about its number of partitions, and how to make it say another one.

Pure functions over bytes. Spark takes the number from the newest offset log entry, whatever the
session says; operator metadata repeats it for readers.
"""

import json

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.checkpoint.jsonlog import Json, as_list, as_object, lines_of, parse, version_of

__all__ = ["PARTITIONS", "with_partitions", "with_store_partitions"]

PARTITIONS = "spark.sql.shuffle.partitions"


def with_partitions(data: bytes, path: str, *, partitions: int) -> bytes:
    """An entry of the offset log that pins another number of partitions; all else stays."""
    lines = lines_of(data, path)
    version_of(lines[0], path, known=(1, 2))
    if len(lines) < 3:
        raise DamagedError(f"{path} names no source offset: it is truncated.")
    head = as_object(parse(lines[1], path), path, "line 2")
    conf = as_object(head.get("conf"), path, "conf")
    lines[1] = _dumps({**head, "conf": {**conf, PARTITIONS: str(partitions)}})
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


def _dumps(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
