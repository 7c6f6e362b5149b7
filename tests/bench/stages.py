"""The moments at which the measured state is frozen, and the parameters that make it.

- `loaded`: all keys, and a snapshot of every partition;
- `changed`: 1 % of the keys changed, no new snapshot;
- `snapshot`: another 1 %, and a new full snapshot of every partition;
- `compacted`: another 1 %, and every SST file rewritten by a compaction before the snapshot.
"""

from collections.abc import Mapping

__all__ = [
    "CHANGED",
    "GENERATOR",
    "KEYS",
    "MIN_DELTAS",
    "PARTITIONS",
    "SNAPSHOT_AT_ONCE",
    "STAGES",
    "VALUE_BYTES",
]

GENERATOR = 1
"""Raised whenever tests/bench/generate.py makes other state, so that cached state is not used."""
KEYS = 1_000_000
"""At full scale; with their values about 1 GiB."""
PARTITIONS = 64
VALUE_BYTES = 1000
CHANGED = 0.01
"""The share of the keys that each later stage changes."""

MIN_DELTAS = "spark.sql.streaming.stateStore.minDeltasForSnapshot"
SNAPSHOT_AT_ONCE = "1"
_NO_SNAPSHOT = "100000"
_COMPACT = "spark.sql.streaming.stateStore.rocksdb.compactOnCommit"
STAGES: Mapping[str, Mapping[str, str]] = {
    "loaded": {MIN_DELTAS: SNAPSHOT_AT_ONCE, _COMPACT: "false"},
    "changed": {MIN_DELTAS: _NO_SNAPSHOT, _COMPACT: "false"},
    "snapshot": {MIN_DELTAS: SNAPSHOT_AT_ONCE, _COMPACT: "false"},
    "compacted": {MIN_DELTAS: SNAPSHOT_AT_ONCE, _COMPACT: "true"},
}
"""Name -> what the query is configured with while it runs the batch of that stage."""
