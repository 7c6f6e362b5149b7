"""Things that are built once and kept outside the checkout, under keys that name their content.

An entry appears whole or not at all: it is built under another name and renamed. An interrupted
build leaves a `.partial-*` folder, which the next build of the same entry removes.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dev.console import Problem

__all__ = [
    "cache_root",
    "cached",
    "digest_of",
    "exclusive",
    "has_entries",
    "is_cached",
    "require_free_space",
]

_GIB = 1024**3


def cache_root() -> Path:
    """The folder of all caches; `SPARKPOINT_CACHE` moves it."""
    chosen = os.environ.get("SPARKPOINT_CACHE") or Path.home() / ".cache" / "sparkpoint"
    return Path(chosen).absolute()


def digest_of(parts: Iterable[str | Path]) -> str:
    """A short digest of texts and of files' or folders' contents, in order."""
    sha = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            files = [part] if part.is_file() else sorted(p for p in part.rglob("*") if p.is_file())
            for file in files:
                if "__pycache__" not in file.parts:
                    executable = os.access(file, os.X_OK)
                    sha.update(f"{file.relative_to(part.parent)} {executable}\0".encode())
                    sha.update(file.read_bytes())
        else:
            sha.update(part.encode() + b"\0")
    return sha.hexdigest()[:12]


@contextmanager
def exclusive(name: str) -> Iterator[None]:
    """Let one process at a time do the thing called `name`."""
    folder = cache_root() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name.replace("/", "_")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cached(kind: str, key: str, build: Callable[[Path], None], *, keep: int = 2) -> Path:
    """The entry `kind/key`, built by `build(folder)` if it is not there; the `keep` newest stay."""
    entry = cache_root() / kind / key
    if entry.exists():
        os.utime(entry)
        return entry
    with exclusive(f"{kind}-{key}"):
        if entry.exists():
            return entry
        for leftover in entry.parent.glob(f".partial-{key}-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        # With our process id: children of a killed builder may still be writing to its folder.
        partial = entry.parent / f".partial-{key}-{os.getpid()}"
        partial.mkdir(parents=True)
        build(partial)
        partial.rename(entry)
        _forget_old(entry.parent, keep=keep)
    return entry


def is_cached(kind: str, key: str) -> bool:
    """Whether the entry was built to its end."""
    return (cache_root() / kind / key).exists()


def has_entries(kind: str) -> bool:
    """Whether any entry of this kind was built to its end; what was interrupted does not count."""
    return bool(_entries(cache_root() / kind))


def require_free_space(folder: Path, *, gib: int, purpose: str) -> None:
    """Refuse to begin what would fill the disk half-way."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < gib * _GIB:
        raise Problem(
            f"{purpose} needs {gib} GB free under {folder}, and there are {free / _GIB:.1f} GB.",
            remedy="free some space, or set SPARKPOINT_CACHE to a folder on a larger disk.",
        )


def _forget_old(folder: Path, *, keep: int) -> None:
    entries = sorted(_entries(folder), key=lambda p: p.stat().st_mtime, reverse=True)
    for old in entries[keep:]:
        # Renamed first: an entry that was removed half-way must not look like a whole one.
        doomed = old.rename(old.with_name(f".partial-old-{old.name}"))
        shutil.rmtree(doomed, ignore_errors=True)


def _entries(folder: Path) -> list[Path]:
    """The finished ones: what begins with a dot is being built, or removed."""
    found = folder.iterdir() if folder.exists() else ()
    return [path for path in found if not path.name.startswith(".")]
