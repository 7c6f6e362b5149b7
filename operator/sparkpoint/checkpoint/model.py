"""What a checkpoint holds, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

__all__ = [
    "BatchPlan",
    "Checkpoint",
    "CommitEntry",
    "OffsetEntry",
    "Operator",
    "PlannedFile",
    "Role",
    "SourceRewrite",
    "StateStore",
]


class Role(Enum):
    """Why a file belongs to a savepoint."""

    METADATA = "metadata"
    OFFSETS = "offsets"
    COMMITS = "commits"
    PENDING = "pending"
    """`offsets/N+1` without its commit: kept to resume, dropped for a fork or rewind."""
    SOURCE = "source"
    OPERATOR = "operator"
    """Operator metadata and state schemas: small, and partly rewritten when restored."""
    STATE = "state"


@dataclass(slots=True, unsafe_hash=True)
class PlannedFile:
    """A file that the batch needs, as it was listed. Frozen as Entry is."""

    path: Final[str]
    size: Final[int]
    stamp: Final[str]
    role: Final[Role]
    held: Final[bool] = False
    """The live directory no longer has it: take it from the parent savepoint. No stamp."""


@dataclass(frozen=True, slots=True)
class SourceRewrite:
    """A file source whose log entries up to `last` survive only inside a newer compacted entry."""

    source: str
    path: str
    """The compacted entry, a planned file; `split_compact` makes the older entries of it."""
    last: int
    interval: int


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """`offsets/N`: what batch N reads."""

    batch: int
    version: int
    watermark_ms: int
    timestamp_ms: int
    conf: Mapping[str, str]
    sources: tuple[tuple[str, str | None], ...]
    """(source key, offset JSON) in order; the key is the index, or the source's name."""


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
    rows: int | None = None
    """If the snapshots tell, and nothing came after them."""


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
    doubts: tuple[str, ...] = ()
    """Those of the warnings by which the state itself may be wrong."""
    rewrites: tuple[SourceRewrite, ...] = ()
    """Source logs that must be rewritten when restored; nearly always empty."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An overview of one query's checkpoint."""

    query_id: str
    batches: tuple[int, ...]
    """Committed batches whose offsets still exist: candidates, oldest first."""
    last_committed: int | None
    pending: int | None
    """The batch that was begun and not committed; None after a stop at a boundary."""
    offsets: OffsetEntry | None
    commit: CommitEntry | None
    operators: tuple[Operator, ...]
    files: int
    bytes: int
    hazards: tuple[str, ...]
    """What would make it unsafe to restore, as sentences; empty when nothing is known."""

    @property
    def clean(self) -> bool:
        """Whether the query ended at a boundary, with nothing in flight."""
        return self.pending is None and self.last_committed is not None
