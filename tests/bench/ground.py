"""The ground of a run: a folder for its data, the state to measure on, and trees of files."""

import hashlib
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dev.cache import cache_root, cached, require_free_space
from dev.console import Problem, step
from sparkpoint.checkpoint.plan import plan_batch
from sparkpoint.storage import DirectoryStore
from tests.bench.memory import filled_memory
from tests.bench.stages import GENERATOR, KEYS, PARTITIONS, VALUE_BYTES

__all__ = [
    "check_same",
    "copy_planned",
    "link_tree",
    "real_state",
    "tree_bytes",
    "warm",
    "work_folder",
]

_ROOT = Path(__file__).resolve().parents[2]
_GIB_AT_FULL_SCALE = 14
_MARKER = ".sparkpoint"
_TEMPORARY = ".sparkpoint-tmp"


@contextmanager
def work_folder(scale: float) -> Iterator[Path]:
    """An empty folder beside the cached state, hence on the same disk; removed at the end."""
    base = cache_root() / "bench-work"
    require_free_space(base, gib=1 + math.ceil(_GIB_AT_FULL_SCALE * scale), purpose="The benchmark")
    with filled_memory(), tempfile.TemporaryDirectory(dir=base, prefix="run-") as folder:
        yield Path(folder)


def real_state(scale: float) -> Path:
    """The folder with one checkpoint per stage of tests/bench/generate.py."""
    keys = int(KEYS * scale)
    key = f"{GENERATOR}-{PARTITIONS}-{VALUE_BYTES}-{keys}"
    return cached("bench", key, lambda partial: _generate(partial, keys), keep=3)


def _generate(folder: Path, keys: int) -> None:
    with step(f"Making state of {keys} keys with Spark", usually="1 to 10 min, once"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.generate", str(folder), str(keys)],
            cwd=_ROOT,
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        raise Problem(
            f"Spark could not make the state:\n{done.stderr[-4000:]}",
            remedy="read the error above; a smaller --scale needs less memory and disk.",
        )


def link_tree(source: Path, target: Path) -> None:
    """The same files under another root. Nothing ever writes into one: Spark and we replace."""
    for folder, _, names in os.walk(source):
        below = target / Path(folder).relative_to(source)
        below.mkdir(parents=True, exist_ok=True)
        for name in names:
            # A query that runs may remove a temporary file at any time.
            if not name.endswith(".tmp"):
                os.link(Path(folder) / name, below / name)


def copy_planned(checkpoint: Path, target: Path) -> None:
    """A directory with exactly the files that a first capture of the checkpoint takes."""
    for file in plan_batch(DirectoryStore(checkpoint)).files:
        path = target / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(checkpoint / file.path, path)


def warm(*folders: Path) -> None:
    """Read everything, so that every reader afterwards finds it in the page cache."""
    for folder in folders:
        for path in _files(folder):
            with path.open("rb", buffering=0) as stream:
                while stream.read(1024 * 1024):
                    pass


def tree_bytes(folder: Path) -> int:
    """The size of all files."""
    return sum(path.stat().st_size for path in _files(folder))


def check_same(found: Path, wanted: Path) -> None:
    """Compare two trees byte by byte, but for what a restore leaves for itself."""
    ours, theirs = _digests(found), _digests(wanted)
    if ours != theirs:
        different = sorted(p for p in ours.keys() | theirs.keys() if ours.get(p) != theirs.get(p))
        raise Problem(
            f"The restored files are not those that were captured: {different[:5]}",
            remedy="this is a bug in savepoint/: do not publish figures before it is repaired.",
        )


def _digests(folder: Path) -> dict[str, str]:
    digests = {}
    for path in _files(folder):
        name = path.relative_to(folder)
        if name.parts[0] not in (_MARKER, _TEMPORARY):
            with path.open("rb") as stream:
                digests[str(name)] = hashlib.file_digest(stream, "sha256").hexdigest()
    return digests


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())
