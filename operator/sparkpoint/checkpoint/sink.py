"""The log of a file sink, `_spark_metadata`: what a rewind must cut off and a fork must put there.

A file sink skips every batch up to the newest in this log, before it runs: the rows *and* the state
are then missing. A reader of the sink wants an unbroken log from the last compacted entry on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparkpoint.checkpoint.errors import CannotRewindError, DamagedError
from sparkpoint.checkpoint.jsonlog import as_object, as_text, lines_of, parse, version_of
from sparkpoint.checkpoint.names import is_visible, source_log_id
from sparkpoint.checkpoint.sources import COMPACT, compact_interval, compacted_upto, compacts_of

__all__ = ["SINK_LOG", "SinkLog", "SinkRewind", "parse_sink_entry", "read_sink_log", "seed_sink"]

SINK_LOG = "_spark_metadata"
_EMPTY = b"v1"
_DEFAULT_INTERVAL = 10


@dataclass(frozen=True, slots=True)
class SinkRewind:
    """What makes a sink's log end at a batch; names are relative to the log's folder."""

    keep: tuple[str, ...]
    delete: tuple[str, ...]
    """Newest first: a rewind that is cut off leaves a log that merely ends later."""


@dataclass(frozen=True, slots=True)
class SinkLog:
    """The entries of a sink's log: number -> name."""

    entries: Mapping[int, str]

    @property
    def latest(self) -> int | None:
        """The newest batch in the log: every batch up to it would be skipped."""
        return max(self.entries, default=None)

    def rewind(self, batch: int) -> SinkRewind:
        """Plan the truncation to batches ≤ `batch`.

        CannotRewindError if an entry that a reader needs then was already deleted after a newer
        compaction: its entries do not say which batch wrote them, so they cannot be cut apart.
        """
        newer = sorted((n for n in self.entries if n > batch), reverse=True)
        last = max((n for n in self.entries if n <= batch), default=None)
        missing = self._missing(batch if newer and last is None else last)
        if missing is None and newer:
            missing = self._expected(last)
        if missing is not None:
            raise CannotRewindError(
                f"{SINK_LOG}/{missing} is gone, so the sink's log cannot be cut at batch {batch}: "
                "entries inside newer compacted ones do not say which batch wrote them. "
                "Fork to a new sink directory instead."
            )
        return SinkRewind(
            keep=tuple(name for n, name in sorted(self.entries.items()) if n <= batch),
            delete=tuple(self.entries[n] for n in newer),
        )

    def _missing(self, last: int | None) -> int | None:
        for number in range(-1 if last is None else last, -1, -1):
            name = self.entries.get(number)
            if name is None:
                return number
            if name.endswith(COMPACT):
                break
        return None

    def _expected(self, last: int | None) -> int | None:
        """A compacted entry that Spark would look for and that never was, once the log ends here.

        The distance of the two newest ones is its interval. From one alone, if the one before was
        deleted, it derives one, which may be shorter than the one that the log was written with.
        """
        compacts = compacts_of(self.entries)
        kept = [n for n in compacts if last is not None and n <= last]
        if last is None or not kept or kept == compacts:
            return None
        if max(kept) + 1 == compact_interval(compacts):
            return None  # the first one: then the interval is that of the query's own settings
        following = max(kept) + compact_interval(kept)
        return following if following <= last else None


def read_sink_log(names: Iterable[str]) -> SinkLog:
    """Sort out the names in `_spark_metadata`; hidden and temporary files are left out."""
    entries: dict[int, str] = {}
    for name in sorted(names):
        number = source_log_id(name) if is_visible(name) else None
        if number is not None:
            entries[number] = name
    return SinkLog(entries)


def seed_sink(batch: int, *, interval: int = _DEFAULT_INTERVAL) -> dict[str, bytes]:
    """File name -> content of a log without rows that ends at `batch`, for a fork's new sink.

    The first compacted entries matter: Spark derives its interval from them.
    """
    if batch < 0:
        return {}
    compacts = compacted_upto(batch, interval)
    names = [f"{number}{COMPACT}" for number in compacts]
    names += map(str, range(max(compacts, default=-1) + 1, batch + 1))
    return dict.fromkeys(names, _EMPTY)


def parse_sink_entry(data: bytes, path: str) -> tuple[str, ...]:
    """The URIs of the files that one entry adds."""
    lines = lines_of(data, path)
    version_of(lines[0], path, known=(1,))
    added = []
    for line in (line for line in lines[1:] if line):
        fields = as_object(parse(line, path), path, "an entry")
        if as_text(fields.get("action"), path, "action") not in ("add", "delete"):
            raise DamagedError(f"{path}: unknown action.")
        if fields["action"] == "add":
            added.append(as_text(fields.get("path"), path, "path"))
    return tuple(added)
