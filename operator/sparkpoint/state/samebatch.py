"""Undoing the batch that Spark's repartitioning adds, while its state stays.

Spark writes repartitioned state as a batch of its own, N+1, which reads nothing and writes nothing.
A file sink never hears of that batch, and so a query restored from it would look as if output were
missing. Here the new state becomes that of batch N itself: the query goes on with batch N+1 as if
nothing had happened, and all sinks agree with it.

Works on a copy of a checkpoint that nobody else uses, and changes it in place.
"""

import re
import shutil
from pathlib import Path

from sparkpoint.state.pinned import with_partitions, with_store_partitions

__all__ = ["keep_batch"]

_STATE_FILE = re.compile(r"([0-9]+)((?:_[^.]+)?)\.(zip|changelog|snapshot|delta)")


def keep_batch(root: Path, *, batch: int, partitions: int) -> None:
    """Let the state of the batch behind `batch` be that of `batch`."""
    _forget_checksums(root)
    (root / f"commits/{batch + 1}").replace(root / f"commits/{batch}")
    (root / f"offsets/{batch + 1}").unlink()
    for path in sorted((root / "offsets").iterdir()):
        name = f"offsets/{path.name}"
        path.write_bytes(with_partitions(path.read_bytes(), name, partitions=partitions))
    for operator in sorted((root / "state").iterdir()):
        _keep_metadata(operator, batch, partitions)
        for path in [path for path in operator.iterdir() if path.name.isdigit()]:
            if int(path.name) >= partitions:
                shutil.rmtree(path)
        for folder in _store_folders(operator):
            _keep_state(folder, version=batch + 1)


def _forget_checksums(root: Path) -> None:
    """Hadoop's hidden checksums would not fit files that have another name or content now."""
    for path in root.rglob(".*.crc"):
        path.unlink()


def _keep_metadata(operator: Path, batch: int, partitions: int) -> None:
    first, later = operator / "_metadata/metadata", operator / "_metadata/v2"
    if first.is_file():
        # Spark leaves the number of version 1 as it was.
        data = with_store_partitions(first.read_bytes(), str(first), partitions=partitions)
        first.write_bytes(data)
    written = later / str(batch + 1)
    if written.is_file():
        known = [int(path.name) for path in later.iterdir() if path.name.isdigit()]
        written.replace(later / str(max(number for number in known if number <= batch)))


def _store_folders(operator: Path) -> list[Path]:
    partitions = [path for path in operator.iterdir() if path.name.isdigit()]
    inner = [path for each in partitions for path in each.iterdir() if path.is_dir()]
    skipped = ("_metadata", "SSTs", "logs")
    return [*partitions, *(path for path in inner if path.name not in skipped)]


def _keep_state(folder: Path, *, version: int) -> None:
    """Leave one snapshot, under the version before its own; what it is made of stays."""
    for path in list(folder.iterdir()):
        found = _STATE_FILE.fullmatch(path.name)
        if found is not None and (int(found[1]), found[3]) != (version + 1, "zip"):
            path.unlink()
    for path in list(folder.glob("*.zip")):
        path.replace(folder / path.name.replace(str(version + 1), str(version), 1))
