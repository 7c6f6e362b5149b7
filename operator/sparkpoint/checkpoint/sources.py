"""Logs of sources: which of their files batch N needs.

A file source keeps its own log, compacted now and then; any other source is taken whole.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.checkpoint.logs import file_source_offset
from sparkpoint.checkpoint.model import OffsetEntry, SourceRewrite
from sparkpoint.checkpoint.names import is_visible, source_log_id
from sparkpoint.checkpoint.sourcefolders import source_folders

__all__ = [
    "COMPACT",
    "MAX_SPLIT",
    "SourceFiles",
    "compact_interval",
    "compacted_upto",
    "compacts_of",
    "source_files",
]

MAX_SPLIT = 100_000
"""Entries that are made out of a compacted one at most; Spark's default interval makes 9."""
COMPACT = ".compact"
_DEFAULT_INTERVAL = 10
# A hundred entries a second for three centuries; to find a divisor below it takes no time.
_MAX_ENTRY = 10**12


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Paths below `sources/`."""

    needed: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    """Needed only to replay the batch that was begun and not committed."""
    missing: tuple[str, ...] = ()
    rewrites: tuple[SourceRewrite, ...] = ()
    warnings: tuple[str, ...] = ()


def source_files(
    paths: Iterable[str], offsets: OffsetEntry, pending: OffsetEntry | None
) -> SourceFiles:
    """The files that the sources of batch `offsets` need."""
    by_source: dict[str, list[str]] = {}
    for path in paths:
        # Most are state, and there may be tens of thousands: those are not taken apart.
        if path.startswith("sources/"):
            match path.split("/"):
                case [_, key, *rest] if rest and is_visible(path):
                    by_source.setdefault(key, []).append(path)
    replayed = dict(pending.sources) if pending else {}
    folders = _folders(offsets, replayed, by_source.keys())
    # Of lines that share a folder one is enough: they are the same.
    readings = {
        folder: (offset, replayed.get(key))
        for folder, (key, offset) in zip(folders, offsets.sources, strict=True)
    }
    parts = [
        _one_source(folder, by_source.get(folder, []), offset, upto, offsets.batch)
        for folder, (offset, upto) in readings.items()
    ]
    return SourceFiles(
        needed=tuple(path for part in parts for path in part.needed),
        pending=tuple(path for part in parts for path in part.pending),
        missing=tuple(path for part in parts for path in part.missing),
        rewrites=tuple(rewrite for part in parts for rewrite in part.rewrites),
        warnings=tuple(_shared(folders)),
    )


def _folders(
    offsets: OffsetEntry, replayed: Mapping[str, str | None], there: Collection[str]
) -> tuple[str, ...]:
    keys = [key for key, _ in offsets.sources]
    if keys != [str(number) for number in range(len(keys))]:
        return tuple(keys)  # sources with names have folders of these names
    where = f"offsets/{offsets.batch}"
    logged = [
        number
        for number, (_, offset) in enumerate(offsets.sources)
        if file_source_offset(offset, where) is not None
    ]
    lines = [(offset, replayed.get(key)) for key, offset in offsets.sources]
    return source_folders(lines, logged, there)


def _shared(folders: Iterable[str]) -> Iterable[str]:
    """Told, as a log that was lost, of a source that is as far as another one, looks the same."""
    for folder, times in Counter(folders).items():
        if times > 1:
            yield (
                f"{times} offsets are equal and sources/ has folders for fewer: taken for one "
                f"source that the query reads {times} times, sources/{folder}."
            )


def compact_interval(compacts: Iterable[int], default: int = _DEFAULT_INTERVAL) -> int:
    """How often Spark compacts this log, told by the compacted entries as Spark tells it.

    DamagedError for a number that no log can have reached.
    """
    newest = sorted(compacts, reverse=True)[:2]
    if not newest:
        return default
    if len(newest) == 2:
        return newest[0] - newest[1]
    entries = newest[0] + 1
    if entries <= default or default >= entries // 2:
        return entries
    if entries > _MAX_ENTRY:
        raise DamagedError(f"{newest[0]}{COMPACT} cannot be an entry of a source's log.")
    return _divisor(entries, least=default)


def compacted_upto(last: int, interval: int) -> tuple[int, ...]:
    """The last two entries up to `last` that are compacted: their distance tells the interval."""
    newest = (last + 1) // interval * interval - 1
    return tuple(number for number in (newest - interval, newest) if number >= 0)


def compacts_of(entries: Mapping[int, str]) -> list[int]:
    """Which of a log's entries (number -> name) are compacted."""
    return [number for number, name in entries.items() if name.endswith(COMPACT)]


def _divisor(number: int, *, least: int) -> int:
    """The smallest divisor that is `least` or more."""
    smallest = number
    for i in range(1, math.isqrt(number) + 1):
        if number % i == 0:
            if i >= least:
                return i
            if number // i >= least:
                smallest = number // i
    return smallest


def _one_source(
    key: str, paths: list[str], offset: str | None, replayed: str | None, batch: int
) -> SourceFiles:
    last = file_source_offset(offset, f"offsets/{batch}")
    if last is None:
        return SourceFiles(needed=tuple(sorted(paths)))
    entries = _entries(paths)
    found = _file_source(key, entries, last)
    upto = file_source_offset(replayed, f"offsets/{batch + 1}")
    if upto is None:
        return found
    pending, missing = _replayed(key, entries, last=last, upto=upto)
    return SourceFiles(
        needed=found.needed,
        pending=tuple(path for path in pending if path not in found.needed),
        missing=(*found.missing, *missing),
        rewrites=found.rewrites,
    )


def _replayed(
    key: str, entries: Mapping[int, str], *, last: int, upto: int
) -> tuple[list[str], list[str]]:
    """What the entries after `last` up to `upto` are read from, and which are missing.

    Spark finds those that are gone in the newest compacted entry, which holds all before it.
    """
    compact = max(compacts_of(entries), default=-1)
    inside = min(compact, upto)
    kept = {n for n in entries if last < n <= upto}
    if sum(n <= inside for n in kept) < inside - last:
        kept.add(compact)
    # The offset may claim anything: one more than there are files is missing already.
    after = range(max(last, inside) + 1, upto + 1)[: len(entries) + 1]
    missing = [f"sources/{key}/{n}" for n in after if n not in entries]
    return [entries[n] for n in sorted(kept)], missing


def _entries(paths: list[str]) -> dict[int, str]:
    """number -> path; a compacted entry wins, as it holds the others too."""
    entries: dict[int, str] = {}
    for path in sorted(paths):
        number = source_log_id(path.rsplit("/", 1)[-1])
        if number is not None:
            entries[number] = path
    return entries


def _file_source(key: str, entries: Mapping[int, str], last: int) -> SourceFiles:
    """The newest compacted entry ≤ last and every entry after it; and the one compacted before.

    Spark reads nothing of that one, but takes the distance of the two for its interval. From one
    alone it derives an interval, which may be another: then it looks for entries that never were.
    """
    needed: list[str] = []
    for number in range(last, -1, -1):
        path = entries.get(number)
        if path is None:
            return _newer_compact(key, entries, last) or SourceFiles(
                missing=(f"sources/{key}/{number}",)
            )
        needed.append(path)
        if path.endswith(COMPACT):
            needed += _compacted_before(number, entries)
            break
    return SourceFiles(needed=tuple(reversed(needed)))


def _compacted_before(number: int, entries: Mapping[int, str]) -> list[str]:
    older = [n for n in compacts_of(entries) if n < number]
    return [entries[max(older)]] if older else []


def _newer_compact(key: str, entries: Mapping[int, str], last: int) -> SourceFiles | None:
    compacts = compacts_of(entries)
    newer = [number for number in compacts if number > last]
    if not newer:
        return None
    path = entries[min(newer)]
    rewrite = SourceRewrite(key, path, last, compact_interval(compacts))
    if (last + 1) % rewrite.interval > MAX_SPLIT:
        return None
    return SourceFiles(needed=(path,), rewrites=(rewrite,))
