"""The input of the queries, in two halves. Rows of the second meet rows of the first in state."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["FIRST", "SECOND", "WIDE", "Row", "all_rows", "schema", "write_half"]

WIDE = ("a", "b", "c", "d", "e", "f", "g")
"""As many columns as make a key wide, all of one type: the only difference is their order."""
FIRST, SECOND = 1, 2
_START = 1_700_000_040  # a whole minute
_ROWS, _KEYS = 24, 4
_LATER = 3600


@dataclass(frozen=True, slots=True)
class Row:
    """One event; `ts` is in seconds."""

    id: int
    k: str
    v: int
    side: str
    ts: int

    def as_json(self) -> str:
        stamp = datetime.fromtimestamp(self.ts, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        wide = {name: self.id * 10 + at for at, name in enumerate(WIDE)}
        return json.dumps({**asdict(self), "ts": stamp, **wide})


def schema() -> str:
    """What the source is told."""
    wide = ", ".join(f"{name} long" for name in WIDE)
    return f"id long, k string, v long, side string, ts timestamp, {wide}"


def all_rows() -> list[Row]:
    """Of both halves."""
    return [row for half in (FIRST, SECOND) for rows in _files(half) for row in rows]


def write_half(half: int, folder: Path) -> None:
    """A file for each batch. The first half alone is there once the first half is written."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob(f"{SECOND}-*.json"):
        path.unlink()
    for number, rows in enumerate(_files(half)):
        path = folder / f"{half}-{number}.json"
        path.write_text("".join(f"{row.as_json()}\n" for row in rows))


def _files(half: int) -> list[list[Row]]:
    if half == FIRST:
        return [list(_events(0, "L"))]
    # The same again, which duplicates are; partners of half of them; and an event on each side so
    # late that the watermark passes all others. (Spark 3.5 has one watermark for each side.)
    partners = [row for row in _events(0, "R") if row.id % 2 == 0]
    ends = [Row(_ROWS * 2 + at, "end", 0, side, _START + _LATER) for at, side in enumerate("LR")]
    return [[*_events(0, "L"), *_events(_ROWS, "L"), *partners, *ends]]


def _events(since: int, side: str) -> Iterator[Row]:
    for number in range(since, since + _ROWS):
        yield Row(number, f"k{number % _KEYS}", number, side, _START + 2 * number)
