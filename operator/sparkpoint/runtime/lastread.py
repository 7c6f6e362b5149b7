"""From where to where the newest batch of a savepoint has read its sources. Pure.

A batch that has nothing to read, as a rehearsal begins one, does not let Spark look into these
offsets. A query that goes on after a commit does: it asks each source of the first API for its last
batch once more, and only then for a new one.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sparkpoint.checkpoint.logs import file_source_offset, parse_offsets

__all__ = ["LastRead", "Part", "last_read", "topics_left"]

Part = tuple[int, str | None, str]
"""The number of a source, and from where to where it was read."""
_SUBSCRIBED = re.compile(r"KafkaV2\[Subscribe\[(.*)\]\]")
"""How Spark describes a source that reads topics by their names."""


@dataclass(frozen=True, slots=True)
class LastRead:
    """By the number of the source; empty if sources have names, as Spark then finds them by these,
    in any order."""

    starts: tuple[str | None, ...] = ()
    ends: tuple[str | None, ...] = ()

    def parts(self) -> list[Part]:
        """What Spark asks each source for once more when a query goes on after this batch."""
        pairs = enumerate(zip(self.starts, self.ends, strict=True))
        return [(number, start, end) for number, (start, end) in pairs if end is not None]

    def earlier_parts(self) -> list[Part]:
        """The newest files of sources that have read none in this batch: it may have been one
        without rows, while the last one before a stop has some."""
        return [
            (number, before, end)
            for number, start, end in self.parts()
            if start == end and (before := _entry_before(end)) != end
        ]


def last_read(before: bytes | None, offsets: bytes, number: int) -> LastRead:
    """In batch `number`, whose entry of the offset log is `offsets`; `before` is the one before."""
    ends = _numbered(offsets, number)
    starts = _numbered(before, number - 1) if before is not None else ()
    # What was not there yet was read from its beginning.
    starts += (None,) * (len(ends) - len(starts))
    return LastRead(starts[: len(ends)], ends)


def topics_left(read: LastRead, sources: Sequence[str]) -> list[str]:
    """Topics that the savepoint has offsets of, and that a source of the code, as it describes
    itself, does not read: Spark sees so only when it plans a batch with rows."""
    left: set[str] = set()
    for description, end in zip(sources, read.ends, strict=False):
        subscribed = _SUBSCRIBED.fullmatch(description)
        if subscribed is not None and end is not None:
            left |= _topics(end) - set(subscribed[1].split(", "))
    return sorted(left)


def _topics(offset: str) -> set[str]:
    try:
        found = json.loads(offset)
    except ValueError:
        return set()
    return set(found) if isinstance(found, dict) else set()


def _numbered(offsets: bytes, number: int) -> tuple[str | None, ...]:
    sources = parse_offsets(offsets, number).sources
    numbered = all(key == str(index) for index, (key, _) in enumerate(sources))
    return tuple(offset for _, offset in sources) if numbered else ()


def _entry_before(offset: str) -> str | None:
    """Where the newest entry of a file source's log begins; the offset itself of other sources."""
    entry = file_source_offset(offset, "offsets")
    if entry is None:
        return offset
    return json.dumps({"logOffset": entry - 1}) if entry > 0 else None
