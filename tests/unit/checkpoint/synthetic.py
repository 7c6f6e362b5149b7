"""Checkpoints made by a model of Spark's writer, and a model of its loader to judge plans by.

The loader shares no code with the planner: it loads a store by recursion, as the documentation of
the state store tells it, and returns which changes the loaded state contains.
"""

import io
import json
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.unit.checkpoint.memory import MemoryCheckpoint

__all__ = ["SyntheticStore", "checkpoint_of", "load", "lz4_raw"]

_PACKAGE = "org.apache.spark.sql.execution.streaming.state."
_END = b"LZ4Block\x15" + bytes(12)
_CLASSES = {"hdfs": "HDFSBackedStateStoreProvider", "rocksdb": "RocksDBStateStoreProvider"}


@dataclass(frozen=True)
class SyntheticStore:
    """How one store of one partition was written."""

    snapshots: frozenset[int]
    changelog: bool = True
    """RocksDB only; without it every version has a snapshot and no change."""
    losers: frozenset[int] = field(default_factory=frozenset)
    """Versions that a second, abandoned task attempt wrote too: format 2 only."""


def checkpoint_of(
    stores: list[list[SyntheticStore]],
    *,
    provider: str,
    batch: int,
    written: int,
    unique: bool = False,
    names: tuple[str, ...] = ("default",),
) -> MemoryCheckpoint:
    """Partitions of stores, committed up to `batch`, with state written up to version `written`."""
    files = _logs(len(stores), provider=provider, batch=batch)
    ids: list[list[str]] = []
    for partition, of_partition in enumerate(stores):
        ids.append([])
        for name, store in zip(names, of_partition, strict=True):
            folder = f"state/0/{partition}" + ("" if name == "default" else f"/{name}")
            tag = f"p{partition}-{name}" if unique else None
            files |= {
                f"{folder}/{file}": data
                for file, data in _store(store, provider, written, tag).items()
            }
            ids[-1].append(f"u{batch + 1}-{tag}")
    info = [{"storeName": n, "numColsPrefixKey": 0, "numPartitions": 99} for n in names]
    files["state/0/_metadata/metadata"] = (
        b"v1\n"
        + json.dumps(
            {"operatorInfo": {"operatorId": 0, "operatorName": "op"}, "stateStoreInfo": info}
        ).encode()
    )
    if unique:
        commit = {"nextBatchWatermarkMs": 0, "stateUniqueIds": {"0": ids}}
        files[f"commits/{batch}"] = b"v2\n" + json.dumps(commit).encode()
    return MemoryCheckpoint(files)


def load(
    files: Mapping[str, bytes], folder: str, version: int, *, provider: str, uid: str | None = None
) -> list[int]:
    """The changes that the store contains at `version`; KeyError if a needed file is missing."""
    if uid is not None:
        return _load_unique(files, folder, version, uid)
    snapshot, change = {"hdfs": ("snapshot", "delta"), "rocksdb": ("zip", "changelog")}[provider]
    if version == 0:
        return []
    if f"{folder}/{version}.{snapshot}" in files:
        return _snapshot(files, folder, f"{version}.{snapshot}")
    before = load(files, folder, version - 1, provider=provider)
    return [*before, _body(files[f"{folder}/{version}.{change}"])]


def lz4_raw(text: bytes) -> bytes:
    """Frame bytes as lz4-java does, without compressing them."""
    return struct.pack("<8sBIII", b"LZ4Block", 0x15, len(text), len(text), 0) + text + _END


def _body(data: bytes) -> Any:
    """What a stream holds that is only ended as lz4-java does."""
    return json.loads(data.removesuffix(_END))


def _load_unique(files: Mapping[str, bytes], folder: str, version: int, uid: str) -> list[int]:
    if f"{folder}/{version}_{uid}.zip" in files:
        return _snapshot(files, folder, f"{version}_{uid}.zip")
    lineage, own = _changelog(files[f"{folder}/{version}_{uid}.changelog"])
    chain = [*lineage, (version, uid)]
    bases = [(v, u) for v, u in chain if f"{folder}/{v}_{u}.zip" in files]
    base = bases[-1] if bases else (0, "")
    loaded = _snapshot(files, folder, f"{base[0]}_{base[1]}.zip") if base[0] else []
    todo = [(v, u) for v, u in chain if v > base[0]]
    if [v for v, _ in todo] != list(range(base[0] + 1, version + 1)):
        raise KeyError(f"lineage of {version} does not reach a base")
    changes = [_changelog(files[f"{folder}/{v}_{u}.changelog"])[1] for v, u in todo[:-1]]
    return [*loaded, *changes, own]


def _snapshot(files: Mapping[str, bytes], folder: str, name: str) -> list[int]:
    if name.endswith(".snapshot"):
        return list(_body(files[f"{folder}/{name}"]))
    with zipfile.ZipFile(io.BytesIO(files[f"{folder}/{name}"])) as archive:
        text = archive.read("metadata").decode().split("\n", 1)[1]
    content: list[int] = []
    for sst in json.loads(text)["sstFiles"]:
        content += json.loads(files[f"{folder}/SSTs/{sst['dfsSstFileName']}"])
    return content


def _changelog(data: bytes) -> tuple[list[tuple[int, str]], int]:
    text = data[21:].removesuffix(_END)
    at = 2 + struct.unpack_from(">H", text)[0]
    end = at + 2 + struct.unpack_from(">H", text, at)[0]
    items = json.loads(text[at + 2 : end])
    return [(i["version"], i["checkpointUniqueId"]) for i in items], json.loads(text[end:])


def _store(store: SyntheticStore, provider: str, written: int, tag: str | None) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    lineage: list[dict[str, object]] = []
    for version in range(1, written + 1):
        attempts: list[str | None] = [f"u{version}-{tag}"] if tag else [None]
        if tag and version in store.losers:
            attempts.append(f"lost{version}-{tag}")
        for uid in attempts:
            wrong = uid is not None and uid.startswith("lost")
            files |= _version(store, provider, version, uid, lineage, wrong=wrong)
        if tag:
            if version in store.snapshots or not store.changelog:
                lineage = []
            lineage = [*lineage, {"version": version, "checkpointUniqueId": f"u{version}-{tag}"}]
    return files


def _version(
    store: SyntheticStore,
    provider: str,
    version: int,
    uid: str | None,
    lineage: list[dict[str, object]],
    *,
    wrong: bool,
) -> dict[str, bytes]:
    stem = str(version) if uid is None else f"{version}_{uid}"
    change = -version if wrong else version
    history = json.dumps([*range(1, version), change]).encode()
    files: dict[str, bytes] = {}
    if provider == "hdfs":
        files[f"{stem}.delta"] = json.dumps(change).encode() + _END
        if version in store.snapshots:
            files[f"{stem}.snapshot"] = history + _END
        return files
    if store.changelog:
        body = json.dumps(change).encode()
        head = json.dumps(lineage).encode()
        packed = struct.pack(">H", 2) + b"v3" + struct.pack(">H", len(head)) + head + body
        files[f"{stem}.changelog"] = lz4_raw(packed) if uid else body + _END
        if uid:
            files[f"{stem}.changelog.crc"] = b"{}"
    if version in store.snapshots or not store.changelog:
        sst = f"{version:06d}-{'x' if wrong else 'y'}.sst"
        files[f"SSTs/{sst}"] = history
        files[f"{stem}.zip"] = _zip(sst, len(history))
    return files


def _zip(sst: str, size: int) -> bytes:
    entry = {"localFileName": sst, "dfsSstFileName": sst, "sizeBytes": size}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("metadata", "v1\n" + json.dumps({"sstFiles": [entry], "numKeys": 1}))
    return buffer.getvalue()


def _logs(partitions: int, *, provider: str, batch: int) -> dict[str, bytes]:
    conf = {
        "spark.sql.streaming.stateStore.providerClass": _PACKAGE + _CLASSES[provider],
        "spark.sql.shuffle.partitions": str(partitions),
    }
    head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": conf})
    files = {"metadata": b'{"id":"query"}'}
    for number in range(batch + 1):
        files[f"offsets/{number}"] = f"v1\n{head}\n{number}".encode()
        files[f"commits/{number}"] = b'v1\n{"nextBatchWatermarkMs":0}'
    return files
