"""Deterministic input: file i is a pure function of a seed and i, and so is all that follows.

File i covers minute i. Some rows repeat one of the same file or of the file before, at most two
minutes late, which is the watermark's delay: no row is ever dropped as late, whatever the batches.
"""

import json
import os
import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["DELAY", "SCHEMA", "Row", "file_rows", "rows_of", "write_files"]

SCHEMA = "id string, k string, v long, side string, ts timestamp"
DELAY = "2 minutes"
_START = 1_700_000_040  # a whole minute
_KEYS = 5
_ROWS = 12


@dataclass(frozen=True, slots=True)
class Row:
    """One event; `ts` is in milliseconds."""

    id: str
    k: str
    v: int
    side: str
    ts: int

    def as_json(self) -> str:
        """The row as the source reads it."""
        stamp = datetime.fromtimestamp(self.ts / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return json.dumps({**asdict(self), "ts": stamp})


def file_rows(number: int, *, seed: int = 7, rows: int = _ROWS, keys: int = _KEYS) -> list[Row]:
    """The rows of file `number`."""
    fresh = _fresh(number, seed=seed, rows=rows, keys=keys)
    repeated = [fresh[0]]
    if number > 0:
        repeated.append(_fresh(number - 1, seed=seed, rows=rows, keys=keys)[-1])
    return [*fresh, *repeated]


def rows_of(files: Iterable[int], *, seed: int = 7) -> list[Row]:
    """The rows of several files, in order."""
    return [row for number in files for row in file_rows(number, seed=seed)]


def write_files(folder: Path, files: Iterable[int], *, seed: int = 7) -> None:
    """Write files, each appearing whole, with ascending times: Spark takes the oldest first."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in files:
        text = "".join(f"{row.as_json()}\n" for row in file_rows(number, seed=seed))
        hidden = folder / f".{number:05d}.json"
        hidden.write_text(text)
        os.utime(hidden, (_START + number, _START + number))
        hidden.rename(folder / f"{number:05d}.json")


def _fresh(number: int, *, seed: int, rows: int, keys: int) -> list[Row]:
    # Not for secrets: the same seed must give the same rows on every machine.
    chance = random.Random(f"{seed}:{number}")
    minute = _START + 60 * number
    return [
        Row(
            id=f"{chance.randrange(4)}-{i % 6}",
            k=f"k{chance.randrange(keys)}",
            v=chance.randrange(1000),
            side=chance.choice("LR"),
            ts=1000 * (minute + chance.randrange(60)),
        )
        for i in range(rows)
    ]
