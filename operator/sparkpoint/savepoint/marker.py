"""The note that a restore leaves in its target: what it put there, and whether it got to the end.

It lies in `.sparkpoint/`, which Spark does not look into. It is written first, in the state
"filling", and last, in the state "complete": a half-filled target is never taken for a whole one.
"""

from typing import Annotated, Literal

from pydantic import Field

from sparkpoint.savepoint.manifest import (
    NEWEST,
    ContentDigest,
    Count,
    Digest,
    Strict,
    Text,
    parse_document,
)
from sparkpoint.savepoint.sinknote import is_sink_note
from sparkpoint.storage import Entry, Store
from sparkpoint.storage.errors import NotFoundError

__all__ = [
    "CLOCKS",
    "GAVE_UP",
    "MARKER",
    "SIGN_OF_LIFE",
    "FileNote",
    "Marker",
    "files_of",
    "read_marker",
]

MARKER = ".sparkpoint/restored.json"
SIGN_OF_LIFE = ".sparkpoint/filling"
"""Written again and again by a restore that takes long; only its age matters."""
CLOCKS = ".sparkpoint/clock-"
"""How names of files begin that are written only to learn what time it is by the target's clock."""
GAVE_UP = ""
"""The owner of a target whose restore has failed in an orderly way."""
_LIMIT = 1024 * 1024 * 1024


class FileNote(Strict):
    """A file as the restore left it."""

    size: Count
    stamp: Text
    digest: ContentDigest


class Marker(Strict):
    """What is, or will be, in the target."""

    format: Literal[1, 2] = 1
    state: Literal["filling", "complete"]
    savepoint: Digest
    key: Text | None = None
    """`namespace/job/name`, so that the savepoint is found again without a search for its id."""
    mode: Literal["resume", "rewind", "fork"]
    attempt: Text
    """Tells one restore from the next, so that the slower of two notices."""
    owner: Text | None = None
    """Which process fills the target; empty once it has given up."""
    query_ids: dict[str, Text]
    """Folder -> id that the query has here; a fork that is run again keeps its new id."""
    files: Annotated[dict[str, FileNote], Field(max_length=10_000_000)]
    """While filling: what is known to be whole already."""
    paths: Annotated[list[Text], Field(max_length=20_000_000)] = Field(default_factory=list)
    """While filling: everything that may be there, what was there before and what is to come."""

    @property
    def complete(self) -> bool:
        """Whether the restore got to the end."""
        return self.state == "complete"


def read_marker(store: Store) -> Marker | None:
    """The note in this directory, if there is one."""
    try:
        data = store.read(MARKER, limit=_LIMIT)
    except NotFoundError:
        return None
    return parse_document(Marker, data, f"{store.uri}/{MARKER}", newest=NEWEST)


def files_of(store: Store) -> dict[str, Entry]:
    """Everything in the target but our notes."""
    return {entry.path: entry for entry in store.list() if not _is_note(entry.path)}


def _is_note(path: str) -> bool:
    return path in (MARKER, SIGN_OF_LIFE) or path.startswith(CLOCKS) or is_sink_note(path)
