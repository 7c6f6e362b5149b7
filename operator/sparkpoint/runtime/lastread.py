"""From where to where the newest batch of a savepoint has read its sources. Pure.

A batch that has nothing to read, as a rehearsal begins one, does not let Spark look into these
offsets. A query that goes on after a commit does: it asks each source of the first API for its last
batch once more, and only then for a new one.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparkpoint.checkpoint.logs import file_source_offset, parse_offsets

__all__ = ["LastRead", "last_read", "topics_left"]

_SUBSCRIBED = re.compile(r"KafkaV2\[Subscribe\[(.*)\]\]")
"""How Spark describes a source that reads topics by their names."""


@dataclass(frozen=True, slots=True)
class LastRead:
    """By the number of the source; empty if sources have names, as Spark then finds them by these,
    in any order."""

    starts: tuple[str | None, ...] = ()
    ends: tuple[str | None, ...] = ()

    def parts(self) -> Iterator[tuple[int, str | None, str]]:
        """Source, start and end of what it has read last; nothing of one that has read nothing."""
        for number, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            if end is not None:
                yield number, _start(start, end), end


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


def _start(start: str | None, end: str) -> str | None:
    """Of files always the newest entry of their log: a batch that took none says nothing of where
    they are, and the one before the stop may take some."""
    entry = file_source_offset(end, "offsets")
    if entry is None:
        return start
    return json.dumps({"logOffset": entry - 1}) if entry > 0 else None
