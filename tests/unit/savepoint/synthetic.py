"""A pretend query that writes checkpoints in Spark's real layouts, without Spark.

Contents are random but for what the planner reads: logs, operator metadata, snapshot zips. It
commits batches, snapshots, and purges as Spark does, so that captures can race against it.
"""

import io
import json
import random
import uuid
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

__all__ = ["SyntheticQuery", "seed_of"]

_PROVIDERS = {
    "hdfs": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}


_END = b"LZ4Block\x15" + bytes(12)
"""The empty block that ends what Spark compresses."""


def seed_of(text: str) -> random.Random:
    """A generator that any run can repeat."""
    return random.Random(text)


@dataclass
class SyntheticQuery:
    """One query at `root`; call `batch` to let it commit."""

    root: Path
    provider: Literal["hdfs", "rocksdb"] = "hdfs"
    partitions: int = 2
    delta_bytes: int = 2000
    snapshot_bytes: int = 40_000
    snapshot_every: int = 4
    ssts: int = 2
    retain: int = 100
    operator_version: int = 1
    codec: str | None = None
    seed: str = "seed"
    committed: int = -1
    rng: random.Random = field(init=False)
    base: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = seed_of(self.seed)
        self._write("metadata", json.dumps({"id": str(uuid.UUID(int=self.rng.getrandbits(128)))}))

    def run(self, batches: int) -> "SyntheticQuery":
        """Commit so many batches."""
        for _ in range(batches):
            self.batch()
        return self

    def batch(self) -> None:
        """One micro-batch in Spark's order: offsets, state, commit; then maintenance and purge."""
        number = self.committed + 1
        self.begin(number)
        for partition in range(self.partitions):
            self._delta(partition, number + 1)
        self._write(f"commits/{number}", f'v1\n{{"nextBatchWatermarkMs":{number * 1000}}}')
        self.committed = number
        if (number + 1) % self.snapshot_every == 0:
            for partition in range(self.partitions):
                self.snapshot(partition, number + 1)
        self._purge()

    def begin(self, number: int) -> None:
        """Write the offsets of a batch, as Spark does before running it."""
        if number == 0:
            self._operator()
        conf = {
            "spark.sql.streaming.stateStore.providerClass": _PROVIDERS[self.provider],
            "spark.sql.shuffle.partitions": str(self.partitions),
        }
        if self.codec is not None:
            conf["spark.sql.streaming.stateStore.compression.codec"] = self.codec
        head = {
            "batchWatermarkMs": number * 1000,
            "batchTimestampMs": 1_760_000_000_000 + self.rng.randrange(10**9),
            "conf": conf,
        }
        self._write("sources/0/0", "v1\n{}") if number == 0 else None
        self._write(f"offsets/{number}", f'v1\n{json.dumps(head)}\n{{"topic":{{"0":{number}}}}}')

    def snapshot(self, partition: int, version: int) -> None:
        """A full snapshot of one partition, as maintenance writes it."""
        folder = f"state/0/{partition}"
        if self.provider == "hdfs":
            self._write(f"{folder}/{version}.snapshot", self._stream(self.snapshot_bytes))
        else:
            self._write(f"{folder}/{version}.zip", self._zip(folder, version))
        self.base[partition] = version

    def _zip(self, folder: str, version: int) -> bytes:
        files = []
        for number in range(self.ssts):
            name = f"{version * 100 + number:06d}-{uuid.UUID(int=self.rng.getrandbits(128))}.sst"
            self._write(f"{folder}/SSTs/{name}", self._noise(self.snapshot_bytes))
            files.append(
                {
                    "localFileName": f"{number:06d}.sst",
                    "dfsSstFileName": name,
                    "sizeBytes": self.snapshot_bytes,
                }
            )
        content = {"sstFiles": files, "numKeys": 10}
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("metadata", f"v1\n{json.dumps(content)}")
            archive.writestr("CURRENT", "MANIFEST-000001\n")
        return buffer.getvalue()

    def _delta(self, partition: int, version: int) -> None:
        kind = "delta" if self.provider == "hdfs" else "changelog"
        self._write(f"state/0/{partition}/{version}.{kind}", self._stream(self.delta_bytes))

    def _operator(self) -> None:
        store: dict[str, object] = {
            "storeName": "default",
            "numColsPrefixKey": 0,
            "numPartitions": self.partitions,
        }
        info = {"operatorId": 0, "operatorName": "stateStoreSave"}
        path = "state/0/_metadata/metadata"
        if self.operator_version == 2:
            schema = f"state/0/_stateSchema/default/0_{uuid.UUID(int=self.rng.getrandbits(128))}"
            self._write(schema, _schema("v3"))
            store["stateSchemaFilePaths"] = [f"file:{self.root.resolve()}/{schema}"]
            store["stateSchemaId"] = 0
            path = "state/0/_metadata/v2/0"
        content = {"operatorInfo": info, "stateStoreInfo": [store], "operatorPropertiesJson": "{}"}
        self._write(path, f"v{self.operator_version}\n{json.dumps(content)}")
        self._write("state/0/0/_metadata/schema", _schema("v1"))

    def _purge(self) -> None:
        """Remove what no batch within the retention needs."""
        oldest = self.committed - self.retain + 1
        for folder in ("offsets", "commits"):
            for path in (self.root / folder).iterdir():
                if int(path.name) < oldest:
                    path.unlink()
        for partition, base in self.base.items():
            if base > oldest:
                continue
            for path in (self.root / f"state/0/{partition}").iterdir():
                if path.is_file() and int(path.name.split(".")[0]) < base:
                    path.unlink()

    def _stream(self, size: int) -> bytes:
        return self._noise(max(0, size - len(_END))) + _END

    def _noise(self, size: int) -> bytes:
        return self.rng.randbytes(size)

    def _write(self, path: str, data: bytes | str) -> None:
        """Beside and renamed, as Hadoop's local file system does."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.tmp")
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)
        temporary.replace(target)


def _schema(version: str) -> bytes:
    """A state schema as Java's writeUTF writes it: version, key, value."""
    fields = [{"name": "key", "type": "string", "nullable": True, "metadata": {}}]
    text = json.dumps({"type": "struct", "fields": fields})
    parts = [part.encode() for part in (version, text, text)]
    return b"".join(len(part).to_bytes(2, "big") + part for part in parts)
