"""What a checkpoint holds, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = [
    "BatchPlan",
    "CommitEntry",
    "OffsetEntry",
    "Operator",
    "PlannedFile",
    "Role",
    "StateStore",
]


class Role(Enum):
    """Why a file belongs to a savepoint."""

    METADATA = "metadata"
    OFFSETS = "offsets"
    COMMITS = "commits"
    PENDING = "pending"
    """`offsets/N+1` without its commit: kept to resume the same job, dropped for a fork or rewind."""
    SOURCE = "source"
    OPERATOR = "operator"
    """Operator metadata and state schemas: small, and partly rewritten when restored."""
    STATE = "state"


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file that the batch needs, as it was listed."""

    path: str
    size: int
    stamp: str
    role: Role


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """`offsets/N`: what batch N reads."""

    batch: int
    version: int
    watermark_ms: int
    timestamp_ms: int
    conf: Mapping[str, str]
    sources: tuple[tuple[str, str | None], ...]
    """(source key, offset JSON) in order; the key is the index, or the name with source evolution."""


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """`commits/N`: batch N is done."""

    batch: int
    version: int
    next_watermark_ms: int
    state_ids: Mapping[int, tuple[tuple[tuple[str, ...], ...], ...]] = field(default_factory=dict)
    """operator -> partition -> store -> unique ids (state checkpoint format 2), else empty."""


@dataclass(frozen=True, slots=True)
class StateStore:
    """One store of one operator, over all partitions."""

    name: str
    partitions: int
    base_versions: tuple[int, ...]
    """Per partition, the snapshot version that the plan starts from (0: from empty)."""
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Operator:
    """One stateful operator."""

    id: int
    name: str | None
    """None for checkpoints of Spark 3.5, which do not record it."""
    metadata_version: int | None
    provider: str
    """`hdfs` or `rocksdb`."""
    partitions: int
    stores: tuple[StateStore, ...]


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The minimal complete file set of one committed batch, and what is known about it."""

    query_id: str
    batch: int
    offsets: OffsetEntry
    commit: CommitEntry
    operators: tuple[Operator, ...]
    files: tuple[PlannedFile, ...]
    """Soonest-purged first: the order in which a live capture must copy."""
    warnings: tuple[str, ...] = ()
