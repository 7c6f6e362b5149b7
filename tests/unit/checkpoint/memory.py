"""A checkpoint in memory: a listing and a reader for the planner, and a store to read from."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from sparkpoint.checkpoint.names import is_visible
from sparkpoint.checkpoint.reader import Children
from sparkpoint.storage.errors import NotFoundError, TooLargeError
from sparkpoint.storage.interface import SMALL_FILE, Entry

__all__ = ["MemoryCheckpoint", "load_folder"]


class MemoryCheckpoint:
    """Files by path. Keeps the part of a store that reading a checkpoint needs."""

    def __init__(
        self, files: Mapping[str, bytes], *, modified: Mapping[str, float] | None = None
    ) -> None:
        self.files = dict(files)
        self.modified = dict(modified or {})
        self.read_paths: list[str] = []

    @property
    def parallelism(self) -> int:
        return 2

    def entries(self) -> dict[str, Entry]:
        return {path: self._entry(path) for path in sorted(self.files)}

    def list(self, prefix: str = "") -> Iterator[Entry]:
        start = f"{prefix}/" if prefix else ""
        return (e for p, e in self.entries().items() if p.startswith(start))

    def children(self, prefix: str = "") -> Children:
        start = f"{prefix}/" if prefix else ""
        rests = {p: p[len(start) :] for p in self.files if p.startswith(start)}
        folders = sorted({r.split("/")[0] for r in rests.values() if "/" in r})
        return folders, [self._entry(p) for p, r in sorted(rests.items()) if "/" not in r]

    def read(self, path: str, *, limit: int = SMALL_FILE) -> bytes:
        self.read_paths.append(path)
        if path not in self.files:
            raise NotFoundError(path)
        if len(self.files[path]) > limit:
            raise TooLargeError(path)
        return self.files[path]

    def head(self, path: str, size: int) -> bytes:
        return self.read(path)[:size]

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.read(path)[offset : offset + length]

    def _entry(self, path: str) -> Entry:
        if path not in self.files:
            raise NotFoundError(path)
        return Entry(path, len(self.files[path]), f"s{path}", self.modified.get(path, 0.0))


def load_folder(root: Path) -> MemoryCheckpoint:
    """Read a small folder whole, as Spark left it, hidden files too."""
    files = {p.relative_to(root).as_posix(): p for p in sorted(root.rglob("*")) if p.is_file()}
    return MemoryCheckpoint(
        {name: path.read_bytes() for name, path in files.items()},
        modified={name: path.stat().st_mtime for name, path in files.items() if is_visible(name)},
    )
