"""Logs of sources: which of their files batch N needs.

A file source keeps its own log, compacted now and then; any other source is taken whole.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparkpoint.checkpoint.logs import file_source_offset
from sparkpoint.checkpoint.model import OffsetEntry, SourceRewrite
from sparkpoint.checkpoint.names import is_visible, source_log_id

__all__ = ["SourceFiles", "compact_interval", "source_files"]

_COMPACT = ".compact"
_DEFAULT_INTERVAL = 10


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Paths below `sources/`."""

    needed: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    """Needed only to replay the batch that was begun and not committed."""
    missing: tuple[str, ...] = ()
    rewrites: tuple[SourceRewrite, ...] = ()


def source_files(
    paths: Iterable[str], offsets: OffsetEntry, pending: OffsetEntry | None
) -> SourceFiles:
    """The files that the sources of batch `offsets` need."""
    by_source: dict[str, list[str]] = {}
    for path in paths:
        match path.split("/"):
            case ["sources", key, *rest] if rest and is_visible(path):
                by_source.setdefault(key, []).append(path)
    replayed = dict(pending.sources) if pending else {}
    parts = [
        _one_source(key, by_source.get(key, []), offset, replayed.get(key), offsets.batch)
        for key, offset in offsets.sources
    ]
    return SourceFiles(
        needed=tuple(path for part in parts for path in part.needed),
        pending=tuple(path for part in parts for path in part.pending),
        missing=tuple(path for part in parts for path in part.missing),
        rewrites=tuple(rewrite for part in parts for rewrite in part.rewrites),
    )


def compact_interval(compacts: Iterable[int], default: int = _DEFAULT_INTERVAL) -> int:
    """How often Spark compacts this log, told by the compacted entries as Spark tells it."""
    newest = sorted(compacts, reverse=True)[:2]
    if not newest:
        return default
    if len(newest) == 2:
        return newest[0] - newest[1]
    entries = newest[0] + 1
    if entries <= default or default >= entries // 2:
        return entries
    return next(i for i in range(default, entries + 1) if entries % i == 0)


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
    replay = range(last + 1, min(upto, last + len(paths) + 1) + 1)
    return SourceFiles(
        needed=found.needed,
        pending=tuple(p for i in replay if (p := entries.get(i)) and p not in found.needed),
        missing=(*found.missing, *(f"sources/{key}/{i}" for i in replay if i not in entries)),
        rewrites=found.rewrites,
    )


def _entries(paths: list[str]) -> dict[int, str]:
    """number -> path; a compacted entry wins, as it holds the others too."""
    entries: dict[int, str] = {}
    for path in sorted(paths):
        number = source_log_id(path.rsplit("/", 1)[-1])
        if number is not None:
            entries[number] = path
    return entries


def _file_source(key: str, entries: Mapping[int, str], last: int) -> SourceFiles:
    """The newest compacted entry ≤ last and every entry after it."""
    needed: list[str] = []
    for number in range(last, -1, -1):
        path = entries.get(number)
        if path is None:
            return _newer_compact(key, entries, last) or SourceFiles(
                missing=(f"sources/{key}/{number}",)
            )
        needed.append(path)
        if path.endswith(_COMPACT):
            break
    return SourceFiles(needed=tuple(reversed(needed)))


def _newer_compact(key: str, entries: Mapping[int, str], last: int) -> SourceFiles | None:
    compacts = [number for number, path in entries.items() if path.endswith(_COMPACT)]
    newer = [number for number in compacts if number > last]
    if not newer:
        return None
    path = entries[min(newer)]
    rewrite = SourceRewrite(key, path, last, compact_interval(compacts))
    return SourceFiles(needed=(path,), rewrites=(rewrite,))
