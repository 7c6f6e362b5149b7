"""Operator metadata and state schemas: who owns the state, in which stores, over which schemas.

Spark 3.5 writes no operator metadata; then the stores are told by their folders, elsewhere.
"""

import struct
from dataclasses import dataclass
from typing import TypeAlias

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
from sparkpoint.checkpoint.names import is_plain_name

__all__ = [
    "LIMIT_FIELDS",
    "Fields",
    "OperatorMetadata",
    "StoreMetadata",
    "family_schemas",
    "parse_operator",
    "schema_fields",
    "schema_tail",
    "schema_texts",
    "variable_names",
]

_STATE_SCHEMA = "_stateSchema"

Fields: TypeAlias = tuple[tuple[str, str], ...]
"""Names and simple types of columns."""
LIMIT_FIELDS: tuple[Fields, Fields] = (("key", "void"),), (("value", "long"),)
"""The columns by which `limit` is told in Spark 3.5, which records no names of operators."""


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """One store of an operator, as Spark recorded it."""

    name: str
    partitions: int
    """At the time of the first start; a later repartition leaves it stale."""
    schema_paths: tuple[str, ...] = ()
    """Absolute URIs, in version 2 only."""


@dataclass(frozen=True, slots=True)
class OperatorMetadata:
    """`_metadata/metadata` (version 1) or `_metadata/v2/<batch>` (version 2)."""

    version: int
    id: int
    name: str
    stores: tuple[StoreMetadata, ...]


def parse_operator(data: bytes, path: str) -> OperatorMetadata:
    """What an operator's metadata file says."""
    version, content = _metadata(data, path)
    info = as_object(content.get("operatorInfo"), path, "operatorInfo")
    stores = as_list(content.get("stateStoreInfo"), path, "stateStoreInfo")
    if not stores:
        raise DamagedError(f"{path} names no state store.")
    return OperatorMetadata(
        version=version,
        id=as_int(info.get("operatorId"), path, "operatorId"),
        name=as_text(info.get("operatorName"), path, "operatorName"),
        stores=tuple(_store(store, version, path) for store in stores),
    )


def schema_tail(uri: str, path: str) -> str:
    """`_stateSchema/<store>/<file>` out of an absolute schema URI: the part that moves along."""
    head, found, tail = uri.rpartition(f"/{_STATE_SCHEMA}/")
    if not found or not head or not all(is_plain_name(part) for part in tail.split("/")):
        raise DamagedError(f"{path}: {uri[:200]!r} is no path of a state schema.")
    return f"{_STATE_SCHEMA}/{tail}"


def schema_fields(data: bytes, path: str) -> tuple[Fields, Fields] | None:
    """Names and simple types of the columns of key and value; None in a version we skip.

    Needed to see that an operator without grouping keys keeps all its state in one partition.
    """
    texts = schema_texts(data, path)
    return None if texts is None else (_fields(texts[0], path), _fields(texts[1], path))


def schema_texts(data: bytes, path: str) -> tuple[str, str] | None:
    """The JSON of the key's and of the value's schema; None in a version we skip."""
    version, rest = _utf(data, path)
    if version not in ("v1", "v2"):
        return None
    read = _utf if version == "v1" else _chunked
    key, rest = read(rest, path)
    return key, read(rest, path)[0]


def family_schemas(data: bytes, path: str) -> dict[str, tuple[str, str]]:
    """Column family -> the JSON of its key's and of its value's schema; none in other versions."""
    version, rest = _utf(data, path)
    if version != "v3":
        return {}
    number, rest = _fixed(">i", rest, path)
    found: dict[str, tuple[str, str]] = {}
    for _ in range(number):
        name, rest = _utf(rest, path)
        _, rest = _fixed(">H", rest, path)  # which schema of the key it is
        key, rest = _chunked(rest, path)
        _, rest = _fixed(">H", rest, path)
        value, rest = _chunked(rest, path)
        for _ in ("how keys are encoded", "the key of a map"):
            _, rest = _chunked(rest, path)
        found[name] = (key, value)
    return found


def variable_names(data: bytes, path: str) -> tuple[str, ...] | None:
    """The state variables that an operator's metadata names, in order; None where it has none."""
    _, content = _metadata(data, path)
    text = content.get("operatorPropertiesJson")
    if not isinstance(text, str) or not text.strip():
        return None
    properties = as_object(parse(text, path), path, "operatorPropertiesJson")
    if "stateVariables" not in properties:
        return None
    found = as_list(properties["stateVariables"], path, "stateVariables")
    names = (as_object(each, path, "a state variable").get("stateName") for each in found)
    return tuple(sorted(as_text(name, path, "stateName") for name in names))


def _metadata(data: bytes, path: str) -> tuple[int, dict[str, Json]]:
    lines = lines_of(data, path)
    version = version_of(lines[0], path, known=(1, 2))
    return version, as_object(parse("\n".join(lines[1:]), path), path, "the content")


def _store(value: Json, version: int, path: str) -> StoreMetadata:
    fields = as_object(value, path, "a state store")
    name = as_text(fields.get("storeName"), path, "storeName")
    if not is_plain_name(name):
        raise DamagedError(f"{path}: {name[:80]!r} cannot be the name of a state store.")
    paths = as_list(fields.get("stateSchemaFilePaths", []), path, "stateSchemaFilePaths")
    return StoreMetadata(
        name=name,
        partitions=as_int(fields.get("numPartitions"), path, "numPartitions"),
        schema_paths=tuple(as_text(p, path, "a schema path") for p in paths) if version > 1 else (),
    )


def _fields(schema: str, path: str) -> Fields:
    fields = as_list(
        as_object(parse(schema, path), path, "a schema").get("fields"), path, "its fields"
    )
    return tuple(_field(as_object(field, path, "a field"), path) for field in fields)


def _field(field: dict[str, Json], path: str) -> tuple[str, str]:
    kind = field.get("type")
    return as_text(field.get("name"), path, "a field's name"), (
        kind if isinstance(kind, str) else "nested"
    )


def _utf(data: bytes, path: str) -> tuple[str, bytes]:
    """Read what Java's writeUTF wrote, and what follows it."""
    halves, rest = _halves(data, path)
    return _joined(halves), rest


def _joined(halves: str) -> str:
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _halves(data: bytes, path: str) -> tuple[str, bytes]:
    """The same, as Java has it: characters that it keeps in two halves are two here."""
    if len(data) < 2:
        raise DamagedError(f"{path} is truncated.")
    end = 2 + int(struct.unpack_from(">H", data)[0])
    if len(data) < end:
        raise DamagedError(f"{path} is truncated.")
    # Java's modified UTF-8 differs only in NUL and in surrogates.
    text = data[2:end].replace(b"\xc0\x80", b"\0")
    try:
        return text.decode(errors="surrogatepass"), data[end:]
    except UnicodeDecodeError as error:
        raise DamagedError(f"{path} holds what is no text: it is damaged.") from error


def _fixed(form: str, data: bytes, path: str) -> tuple[int, bytes]:
    size = struct.calcsize(form)
    if len(data) < size:
        raise DamagedError(f"{path} is truncated.")
    return int(struct.unpack_from(form, data)[0]), data[size:]


def _chunked(data: bytes, path: str) -> tuple[str, bytes]:
    chunks, rest = _fixed(">i", data, path)
    if not 0 < chunks <= len(data):
        raise DamagedError(f"{path} is damaged: {chunks} chunks of schema.")
    # Where Spark cuts, it may cut a character in two.
    text = ""
    for _ in range(chunks):
        chunk, rest = _halves(rest, path)
        text += chunk
    return _joined(text), rest
