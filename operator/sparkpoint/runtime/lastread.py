"""From where to where the newest batch of a savepoint has read its sources. Pure.

A batch that has nothing to read, as a rehearsal begins one, does not let Spark look into these
offsets. A query that goes on after a commit does: it asks each source of the first API for its last
batch once more, and only then for a new one.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sparkpoint.checkpoint.logs import file_source_offset, parse_offsets

__all__ = ["LastRead", "Offsets", "Part", "last_read", "sources_left", "topics_left"]

Offsets = Mapping[str, str | None]
"""By what the offset log calls a source: its number, or the name that the code gives it."""
Part = tuple[str, str | None, str]
"""What a source is called, and from where to where it was read."""
_SUBSCRIBED = re.compile(r"KafkaV2\[Subscribe\[(.*)\]\]")
"""How Spark describes a source that reads topics by their names."""


@dataclass(frozen=True, slots=True)
class LastRead:
    """Of each source."""

    starts: Offsets = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)

    def parts(self) -> list[Part]:
        """What Spark asks each source for once more when a query goes on after this batch."""
        # What was not there yet was read from its beginning.
        ends = self.ends.items()
        return [(name, self.starts.get(name), end) for name, end in ends if end is not None]

    def earlier_parts(self) -> list[Part]:
        """The newest files of sources that have read none in this batch: it may have been one
        without rows, while the last one before a stop has some."""
        return [
            (name, before, end)
            for name, start, end in self.parts()
            if start == end and (before := _entry_before(end)) != end
        ]


def last_read(before: bytes | None, offsets: bytes, number: int) -> LastRead:
    """In batch `number`, whose entry of the offset log is `offsets`; `before` is the one before."""
    ends = dict(parse_offsets(offsets, number).sources)
    starts = dict(parse_offsets(before, number - 1).sources) if before is not None else {}
    return LastRead(starts, ends)


def sources_left(read: LastRead, sources: Iterable[str]) -> list[str]:
    """Sources with offsets that the code has no more. Spark refuses another number of sources, but
    takes one with another name for a new one, and reads that from its beginning."""
    return sorted({name for name, end in read.ends.items() if end is not None} - set(sources))


def topics_left(read: LastRead, sources: Mapping[str, str]) -> list[str]:
    """Topics that the savepoint has offsets of, and that a source of the code, as it describes
    itself, does not read: Spark sees so only when it plans a batch with rows."""
    left: set[str] = set()
    for name, description in sources.items():
        subscribed, end = _SUBSCRIBED.fullmatch(description), read.ends.get(name)
        if subscribed is not None and end is not None:
            left |= _topics(end) - set(subscribed[1].split(", "))
    return sorted(left)


def _topics(offset: str) -> set[str]:
    try:
        found = json.loads(offset)
    except ValueError:
        return set()
    return set(found) if isinstance(found, dict) else set()


def _entry_before(offset: str) -> str | None:
    """Where the newest entry of a file source's log begins; the offset itself of other sources."""
    entry = file_source_offset(offset, "offsets")
    if entry is None:
        return offset
    return json.dumps({"logOffset": entry - 1}) if entry > 0 else None
