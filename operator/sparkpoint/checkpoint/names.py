"""Names of files in a checkpoint: what counts, what is ignored, what is refused.

Nothing here reads a file.
"""

import functools
import re
from dataclasses import dataclass
from enum import Enum

__all__ = [
    "CODEC",
    "DECODABLE",
    "HDFS_PROVIDER",
    "ROCKSDB_PROVIDER",
    "Kind",
    "VersionedName",
    "batch_number",
    "codec_name",
    "is_plain_name",
    "is_unique_id",
    "is_visible",
    "provider_name",
    "source_log_id",
    "versioned_name",
]

_STATE_PACKAGE = "org.apache.spark.sql.execution.streaming.state."
HDFS_PROVIDER = _STATE_PACKAGE + "HDFSBackedStateStoreProvider"
ROCKSDB_PROVIDER = _STATE_PACKAGE + "RocksDBStateStoreProvider"
_PROVIDERS = {HDFS_PROVIDER: "hdfs", ROCKSDB_PROVIDER: "rocksdb"}
CODEC = "spark.sql.streaming.stateStore.compression.codec"
DECODABLE = "lz4"
"""The codec whose changelogs can be looked into."""
_CODECS = (DECODABLE, "lzf", "snappy", "zstd")

# Eighteen digits always fit Spark's Long; leading zeros are never written.
_NUMBER = r"(?:0|[1-9][0-9]{0,17})"
_UNIQUE_ID = r"[A-Za-z0-9-]{1,64}"
_BATCH = re.compile(_NUMBER)
_SOURCE_LOG = re.compile(rf"({_NUMBER})(?:\.compact)?")
_VERSIONED = re.compile(rf"({_NUMBER})(?:_({_UNIQUE_ID}))?\.(delta|snapshot|changelog|zip)")
_INVISIBLE = ("", ".")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._ -]{0,199}")


class Kind(Enum):
    """What a file of a state store holds."""

    DELTA = "delta"
    SNAPSHOT = "snapshot"
    CHANGELOG = "changelog"
    ZIP = "zip"


@dataclass(frozen=True, slots=True)
class VersionedName:
    """`12.delta`, or `12_<unique id>.zip` in state checkpoint format 2."""

    version: int
    unique_id: str | None
    kind: Kind


def is_visible(path: str) -> bool:
    """Tell Spark's own files from checksums and temporary files of a Hadoop file system."""
    name = path.rpartition("/")[2]
    return name[:1] not in _INVISIBLE and not name.endswith(".tmp")


def is_plain_name(name: str) -> bool:
    """Tell whether a name found inside a file can be one component of a path, and no more."""
    return _PLAIN.fullmatch(name) is not None and ".." not in name


def is_unique_id(text: str) -> bool:
    """Tell whether this can be the unique id in the name of a state file."""
    return re.fullmatch(_UNIQUE_ID, text) is not None


def batch_number(name: str) -> int | None:
    """The number of a log entry or folder; None if the name is no number."""
    return int(name) if _BATCH.fullmatch(name) else None


def source_log_id(name: str) -> int | None:
    """The number of a file-source or file-sink log entry, compacted or not; None if it is none."""
    found = _SOURCE_LOG.fullmatch(name)
    return int(found[1]) if found else None


def versioned_name(name: str) -> VersionedName | None:
    """Parse the name of a state file; None if it is none."""
    found = _VERSIONED.fullmatch(name)
    if not found:
        return None
    return VersionedName(int(found[1]), found[2], Kind(found[3]))


def provider_name(class_name: str) -> str | None:
    """`hdfs` or `rocksdb`; None for a provider that is not Spark's own."""
    return _PROVIDERS.get(class_name)


@functools.lru_cache(maxsize=16)
def codec_name(text: str) -> str | None:
    """The short name of a compression codec, also out of its class; None for an unknown one."""
    short = text.rpartition(".")[2].removesuffix("CompressionCodec").lower()
    return short if short in _CODECS else None
