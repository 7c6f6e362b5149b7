"""State of the HDFS-backed provider, written by hand: rows, files and whole checkpoints.

Independent of the code under test: rows are packed here from values, and partitions are told by
a Murmur3 that follows its definition, word by word.
"""

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sparkpoint.checkpoint.lz4 import framed

__all__ = ["Fields", "HandMade", "StoreOf", "file_of", "pack_row", "partition_of", "schema_of"]

Fields = Sequence[tuple[str, str]]
"""Names and types: `long`, `integer`, `string`, `timestamp`, and `window`, whose value is when it
begins."""
Row = tuple[int | str | None, ...]
_END = struct.pack("<8sBIII", b"LZ4Block", 0x15, 0, 0, 0)
_FORMS = {"long": "<q", "integer": "<ixxxx", "timestamp": "<q", "date": "<ixxxx"}
_BOUNDS = (("start", "timestamp"), ("end", "timestamp"))


def pack_row(values: Row, fields: Fields) -> bytes:
    """An UnsafeRow."""
    head = bytearray((len(fields) + 63) // 64 * 8)
    words, behind = b"", b""
    start = len(head) + 8 * len(fields)
    for number, (value, (_, kind)) in enumerate(zip(values, fields, strict=True)):
        if value is None:
            head[number // 8] |= 1 << number % 8
            words += bytes(8)
        elif isinstance(value, str) or kind == "window":
            data = value.encode() if isinstance(value, str) else _window(value)
            words += struct.pack("<II", len(data), start + len(behind))
            behind += data + bytes(-len(data) % 8)
        else:
            words += struct.pack(_FORMS[kind], value)
    return bytes(head) + words + behind


def _window(start: int) -> bytes:
    return pack_row((start, start + 1_000_000), _BOUNDS)


def partition_of(values: Row, fields: Fields, partitions: int) -> int:
    """Where Spark looks for a key of these columns."""
    seed = 42
    for value, (_, kind) in zip(values, fields, strict=True):
        if value is None:
            continue
        if isinstance(value, str):
            seed = _murmur(value.encode(), seed)
        else:
            seed = _murmur(struct.pack("<i" if kind == "integer" else "<q", value), seed)
    return (seed - (1 << 32) if seed >> 31 else seed) % partitions


def _murmur(data: bytes, seed: int) -> int:
    whole = len(data) // 4 * 4
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, whole, 4)]
    words += [byte - 256 if byte > 127 else byte for byte in data[whole:]]
    for word in words:
        word = word * 0xCC9E2D51 % 2**32
        word = (word * 2**15 % 2**32 + word // 2**17) * 0x1B873593 % 2**32
        seed ^= word
        seed = (seed * 2**13 % 2**32 + seed // 2**19) * 5 % 2**32 + 0xE6546B64
        seed %= 2**32
    seed ^= len(data)
    seed = (seed ^ seed // 2**16) * 0x85EBCA6B % 2**32
    seed = (seed ^ seed // 2**13) * 0xC2B2AE35 % 2**32
    return seed ^ seed // 2**16


def file_of(entries: Iterable[tuple[bytes, bytes | None]]) -> bytes:
    """A delta or snapshot; None removes a key."""
    data = b""
    for key, value in entries:
        data += struct.pack(">i", len(key)) + key
        data += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return framed(data + struct.pack(">i", -1), level=5) + _END


def schema_of(key: Fields, value: Fields) -> bytes:
    """A schema file of version 2."""
    data = b"\0\2v2"
    for fields in (key, value):
        text = json.dumps(_struct(fields)).encode()
        data += struct.pack(">iH", 1, len(text)) + text
    return data


def _struct(fields: Fields) -> dict[str, object]:
    columns = [
        {"name": n, "type": _struct(_BOUNDS) if t == "window" else t, "nullable": True}
        for n, t in fields
    ]
    return {"type": "struct", "fields": [{**each, "metadata": {}} for each in columns]}


@dataclass(frozen=True)
class StoreOf:
    """A store, and what each version changes; None removes a key."""

    key: Fields
    value: Fields
    changes: Sequence[Mapping[Row, Row | None]]
    hashed: int | None = None
    """How many columns of the key place it; all if None."""


@dataclass
class HandMade:
    """A checkpoint with one operator, one batch per change, and a snapshot where asked for."""

    root: Path
    stores: Mapping[str, StoreOf]
    partitions: int = 2
    name: str | None = "stateStoreSave"
    snapshots: Sequence[int] = ()
    conf: Mapping[str, str] = field(default_factory=dict)
    place: Callable[[Row, Fields, int], int] = partition_of

    def write(self) -> Path:
        """Write all of it; the root."""
        self._put("metadata", b'{"id":"7b4c26e8-0000-4000-8000-000000000001"}')
        batches = max(len(store.changes) for store in self.stores.values())
        for number in range(batches):
            self._batch(number)
        if self.name is not None:
            self._metadata()
        for store_name, store in self.stores.items():
            self._put(
                f"{self._folder(0, store_name)}/_metadata/schema", schema_of(store.key, store.value)
            )
            self._state(store_name, store)
        return self.root

    def rows(self, store_name: str = "default") -> dict[Row, Row]:
        """What the store holds after the last batch."""
        found: dict[Row, Row] = {}
        for changes in self.stores[store_name].changes:
            for key, value in changes.items():
                found.pop(key, None)
                if value is not None:
                    found[key] = value
        return found

    def _batch(self, number: int) -> None:
        provider = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
        conf = {
            "spark.sql.streaming.stateStore.providerClass": provider,
            "spark.sql.streaming.statefulOperator.useStrictDistribution": "true",
            "spark.sql.streaming.stateStore.compression.codec": "lz4",
            "spark.sql.shuffle.partitions": str(self.partitions),
            **self.conf,
        }
        head = {"batchWatermarkMs": 0, "batchTimestampMs": 1_760_000_000_000 + number, "conf": conf}
        self._put("sources/0/0", b"v1\n{}")
        text = f'v1\n{json.dumps(head)}\n{{"topic":{{"0":{number}}}}}'
        self._put(f"offsets/{number}", text.encode())
        self._put(f"commits/{number}", b'v1\n{"nextBatchWatermarkMs":0}')

    def _metadata(self) -> None:
        stores = [
            {"storeName": name, "numColsPrefixKey": 0, "numPartitions": self.partitions}
            for name in self.stores
        ]
        info = {"operatorId": 0, "operatorName": self.name}
        content = {"operatorInfo": info, "stateStoreInfo": stores}
        self._put("state/0/_metadata/metadata", f"v1\n{json.dumps(content)}".encode())

    def _state(self, name: str, store: StoreOf) -> None:
        partitions = self.partitions if store.key and store.hashed != 0 else 1
        live: list[dict[bytes, bytes]] = [{} for _ in range(partitions)]
        for version, changes in enumerate(store.changes, start=1):
            deltas: list[dict[bytes, bytes | None]] = [{} for _ in range(partitions)]
            for key, value in changes.items():
                hashed = len(store.key) if store.hashed is None else store.hashed
                number = self.place(key[:hashed], store.key[:hashed], partitions)
                packed = None if value is None else pack_row(value, store.value)
                deltas[number][pack_row(key, store.key)] = packed
            for number, delta in enumerate(deltas):
                for raw, packed in delta.items():
                    live[number].pop(raw, None)
                    if packed is not None:
                        live[number][raw] = packed
                folder = self._folder(number, name)
                self._put(f"{folder}/{version}.delta", file_of(delta.items()))
                if version in self.snapshots:
                    self._put(f"{folder}/{version}.snapshot", file_of(live[number].items()))

    def _folder(self, partition: int, store: str) -> str:
        return f"state/0/{partition}" if store == "default" else f"state/0/{partition}/{store}"

    def _put(self, path: str, data: bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
