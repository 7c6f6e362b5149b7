"""Writing snapshots of the HDFS-backed provider: one for each partition, filled side by side.

Rows come in any order of partitions, and there may be thousands of those: files are opened only to
append whole blocks, and what waits in memory is bounded for all partitions together.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

from sparkpoint.state.blocks import BLOCK, END, framed_blocks
from sparkpoint.state.records import FINISH, encode

__all__ = ["SnapshotWriter"]

_WAITING = 16 * 1024 * 1024
_MANY = 1024
_SMALL_BLOCK = 4 * 1024
"""With so many partitions, smaller blocks keep what waits for a whole one bounded."""


class SnapshotWriter:
    """Snapshots that grow until `finish`. The files must not exist yet."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._block = BLOCK if len(paths) <= _MANY else _SMALL_BLOCK
        self._limit = max(_WAITING, 2 * self._block * len(paths))
        self._buffers = [bytearray() for _ in paths]
        self._waiting = 0
        for folder in {path.parent for path in paths}:
            folder.mkdir(parents=True, exist_ok=True)

    def add(self, partition: int, key: bytes, value: bytes) -> None:
        """Put one row into the snapshot of a partition."""
        self._buffers[partition] += encode(key, value)
        self._waiting += len(key) + len(value)
        if self._waiting >= self._limit:
            self._flush()

    def finish(self) -> None:
        """Write what is left, and the end of every file."""
        for buffer in self._buffers:
            buffer += FINISH
        self._flush(whole_only=False)
        for path in self._paths:
            with path.open("ab") as file:
                file.write(END)

    def _flush(self, *, whole_only: bool = True) -> None:
        """Append blocks to their files, all at once: together their checksums are faster."""
        parts = [self._cut(buffer, whole_only=whole_only) for buffer in self._buffers]
        framed = framed_blocks(list(itertools.chain.from_iterable(parts)))
        for path, blocks in zip(self._paths, parts, strict=True):
            if blocks:
                with path.open("ab") as file:
                    # A header and a content for each block.
                    file.writelines(itertools.islice(framed, 2 * len(blocks)))
        self._waiting = sum(map(len, self._buffers))

    def _cut(self, buffer: bytearray, *, whole_only: bool) -> list[bytes]:
        """Take blocks off the beginning of a buffer."""
        end = len(buffer) // self._block * self._block if whole_only else len(buffer)
        blocks = [bytes(buffer[at : at + self._block]) for at in range(0, end, self._block)]
        del buffer[:end]
        return blocks
