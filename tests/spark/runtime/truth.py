"""What the scripts must have made of the input, in plain Python, and what they did make."""

import json
from collections import Counter
from pathlib import Path

from tests.spark.workloads.base import Known
from tests.spark.workloads.inputs import Row, rows_of
from tests.spark.workloads.sinks import read_files

__all__ = ["batches", "committed", "files", "is_clean", "last", "rows", "totals"]


def rows(count: int) -> list[Row]:
    """All rows of the first files."""
    return rows_of(range(count))


def totals(count: int) -> dict[str, tuple[int, int]]:
    """Key -> number of rows, sum of values."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows(count):
        n, total = found.get(row.k, (0, 0))
        found[row.k] = (n + 1, total + row.v)
    return found


def files(folder: Path, *columns: str) -> Counter[Known]:
    """Every row that a reader of a file sink sees, with its count."""
    return Counter(tuple(row[name] for name in columns) for row in read_files(folder))


def batches(folder: Path) -> dict[int, list[dict[str, object]]]:
    """The rows of each batch that a `foreachBatch` wrote."""
    return {int(path.stem): json.loads(path.read_text()) for path in folder.glob("[0-9]*.json")}


def last(folder: Path) -> dict[str, tuple[int, int]]:
    """What is known of each key after the last batch that named it."""
    found: dict[str, tuple[int, int]] = {}
    for _, listed in sorted(batches(folder).items()):
        for row in listed:
            n, total = row["n"], row["total"]
            assert isinstance(n, int)
            assert isinstance(total, int)
            found[str(row["k"])] = (n, total)
    return found


def committed(checkpoint: Path) -> int:
    """How many input files the committed batches cover."""
    done = _numbers(checkpoint / "commits")
    if not done:
        return 0
    try:
        lines = (checkpoint / "offsets" / str(max(done))).read_text().splitlines()
    except FileNotFoundError:
        lines = []
    if len(lines) < 3:
        return 0  # a restore that is still writing the directory; the next look sees more
    offset: int = json.loads(lines[2])["logOffset"]
    return offset + 1


def is_clean(checkpoint: Path) -> bool:
    """Whether nothing is in flight."""
    offsets, commits = _numbers(checkpoint / "offsets"), _numbers(checkpoint / "commits")
    return max(offsets, default=None) == max(commits, default=None)


def _numbers(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.glob("[0-9]*")]
