"""How the planner reads the few small files that it must look into, several at a time."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeAlias, TypeVar

from sparkpoint.checkpoint.errors import DamagedError, IncompleteError
from sparkpoint.storage.errors import NotFoundError, TooLargeError
from sparkpoint.storage.interface import SMALL_FILE, Entry

__all__ = ["NEAR", "BatchReader", "CheckpointStore", "Children", "Reader", "StoreReader"]

NEAR = 0.0005
"""Seconds for a small file within which it counts as near: a disk, and no server.

Near ones are read sooner by one thread: several hand the interpreter to each other at every call.
Far ones are waited for, which many threads do better.
"""

_T = TypeVar("_T")

# Spelt outside of the class, where `list` is a method.
Children: TypeAlias = tuple[list[str], list[Entry]]


class CheckpointStore(Protocol):
    """The part of a store that reading a checkpoint needs."""

    @property
    def parallelism(self) -> int:
        """How many threads it pays to use at once."""
        ...

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Every file below the folder `prefix`."""
        ...

    def children(self, prefix: str = "") -> Children:
        """Names of folders, and files, directly in `prefix`."""
        ...

    def read(self, path: str, *, limit: int = SMALL_FILE) -> bytes:
        """The whole content."""
        ...

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """These bytes of the file; fewer if it ends before."""
        ...


class Reader(Protocol):
    """Reads files of a checkpoint by their path; NotFoundError if one is gone."""

    @property
    def parallelism(self) -> int:
        """How many threads it pays to use at once."""
        ...

    def read(self, path: str) -> bytes:
        """The whole content of a small file."""
        ...

    def head(self, path: str, size: int) -> bytes:
        """The first `size` bytes, or fewer if the file is shorter."""
        ...


class StoreReader:
    """Reads from a store."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store

    @property
    def parallelism(self) -> int:
        """That of the store."""
        return self._store.parallelism

    def read(self, path: str) -> bytes:
        """The whole content, up to the store's bound for small files."""
        return self._store.read(path)

    def head(self, path: str, size: int) -> bytes:
        """The first bytes, without reading the rest."""
        return self._store.read_range(path, 0, size)


class BatchReader:
    """Reads on behalf of one batch: what is gone, or absurdly large, is said in its words."""

    def __init__(self, reader: Reader, *, batch: int) -> None:
        self._reader, self._batch = reader, batch
        self._fastest = math.inf

    def read(self, path: str) -> bytes:
        """The whole content of a small file."""
        begun = time.monotonic()
        content = self._guarded(self._reader.read, path)
        self._fastest = min(self._fastest, time.monotonic() - begun)
        return content

    def map(self, paths: Iterable[str], parse: Callable[[bytes, str], _T]) -> dict[str, _T]:
        """What `parse` makes of the content and path of several small files, read at once."""
        return self._several(lambda path: parse(self.read(path), path), paths)

    def map_heads(
        self, paths: Iterable[str], parse: Callable[[bytes, str], _T], *, size: int
    ) -> dict[str, _T]:
        """What `parse` makes of the beginnings of several files, read at once."""
        return self._several(lambda path: parse(self._head(path, size), path), paths)

    def _head(self, path: str, size: int) -> bytes:
        return self._guarded(lambda p: self._reader.head(p, size), path)

    def _several(self, work: Callable[[str], _T], paths: Iterable[str]) -> dict[str, _T]:
        """Do the whole work in threads: a join of 200 partitions has 800 snapshots of up to
        megabytes, and only what is parsed of them may stay in memory. If what was read before is
        near, one thread is enough."""
        wanted = list(paths)
        if len(wanted) < 2 or self._fastest < NEAR:
            return {path: work(path) for path in wanted}
        with ThreadPoolExecutor(min(self._reader.parallelism, len(wanted)), "plan") as pool:
            return dict(zip(wanted, pool.map(work, wanted), strict=True))

    def _guarded(self, read: Callable[[str], _T], path: str) -> _T:
        try:
            return read(path)
        except NotFoundError as error:
            raise IncompleteError([path], batch=self._batch) from error
        except TooLargeError as error:
            raise DamagedError(f"{path} is too large for what it should hold.") from error
