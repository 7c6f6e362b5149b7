"""State store providers, as confs that can be set while a session runs."""

from collections.abc import Mapping

__all__ = ["ALL", "PROVIDERS", "ROCKSDB_ONLY"]

_CLASS = "spark.sql.streaming.stateStore.providerClass"
_PACKAGE = "org.apache.spark.sql.execution.streaming.state."
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


def _confs(provider: str, *, changelog: bool = False, version: int = 1) -> Mapping[str, str]:
    return {
        _CLASS: f"{_PACKAGE}{provider}",
        _CHANGELOG: str(changelog).lower(),
        _FORMAT: str(version),
    }


PROVIDERS: Mapping[str, Mapping[str, str]] = {
    "hdfs": _confs("HDFSBackedStateStoreProvider"),
    "rocksdb": _confs("RocksDBStateStoreProvider"),
    "rocksdb-changelog": _confs("RocksDBStateStoreProvider", changelog=True),
    "rocksdb-v2": _confs("RocksDBStateStoreProvider", changelog=True, version=2),
}
ALL = tuple(PROVIDERS)
ROCKSDB_ONLY = ALL[1:]
