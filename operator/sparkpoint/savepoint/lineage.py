"""What is known from the parent savepoint: content that is stored, and files that did not change.

A file whose size and stamp are those of the parent's table need not be read. In a restored
directory the stamps are new; the note that the restore left there (see marker.py) tells them.

The parent's base snapshots are used again only for the very same run of the query: its id and the
offsets of the parent's batch must still be there, unchanged. Otherwise a checkpoint that was wiped,
or rewound in place, could get the deltas of one run on top of another's base.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.errors import DamagedError
from sparkpoint.savepoint.manifest import QueryInfo, SinkInfo
from sparkpoint.savepoint.marker import Marker
from sparkpoint.savepoint.names import object_path
from sparkpoint.savepoint.objects import Location, lacking
from sparkpoint.savepoint.progress import Progress
from sparkpoint.savepoint.table import FileRecord
from sparkpoint.storage import Store
from sparkpoint.storage.errors import NotFoundError

__all__ = ["Known", "Lineage", "no_lineage", "read_lineage"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as it was when its content was last known."""

    size: int
    stamp: str
    digest: str


@dataclass(frozen=True, slots=True)
class Known:
    """The part of the parent that one query can use; paths are relative to the query."""

    query: QueryInfo | None = None
    records: Mapping[str, FileRecord] = field(default_factory=dict)
    seen: Mapping[str, Seen] = field(default_factory=dict)

    def digest_of(self, path: str, *, size: int, stamp: str) -> str | None:
        """The content of a live file, if it is the one that was seen."""
        seen = self.seen.get(path)
        unchanged = seen is not None and (seen.size, seen.stamp) == (size, stamp)
        return seen.digest if seen is not None and unchanged else None

    def held(self, live: Store) -> dict[str, int]:
        """Sizes of the parent's files that may stand in for purged ones; none for another run."""
        if self.query is None:
            return {}
        proof = f"offsets/{self.query.batch}"
        try:
            entry = live.stat(proof)
        except NotFoundError:
            return {}
        if self.digest_of(proof, size=entry.size, stamp=entry.stamp) is None:
            return {}
        return {path: record.size for path, record in self.records.items()}


@dataclass(frozen=True, slots=True)
class Lineage:
    """The parent, read once."""

    savepoint: Savepoint | None
    records: Mapping[str, FileRecord]
    seen: Mapping[str, Seen]
    locations: Mapping[str, Location]

    def of_query(self, prefix: str) -> Known:
        """What concerns the query in this folder."""
        if self.savepoint is None:
            return Known()
        queries = {query.prefix: query for query in self.savepoint.manifest.queries}
        start = f"{prefix}/" if prefix else ""
        return Known(
            queries.get(prefix),
            {p[len(start) :]: r for p, r in self.records.items() if p.startswith(start)},
            {p[len(start) :]: s for p, s in self.seen.items() if p.startswith(start)},
        )

    def sink_of(self, prefix: str, query_id: str) -> SinkInfo | None:
        """Where the parent says that this very query writes; another run's sink is not its own."""
        queries = self.savepoint.manifest.queries if self.savepoint is not None else []
        same = (query for query in queries if (query.prefix, query.id) == (prefix, query_id))
        return next((query.sink for query in same), None)


def no_lineage() -> Lineage:
    """For a savepoint without parent."""
    return Lineage(None, {}, {}, {})


def read_lineage(
    store: Store, source: Store, marker: Marker | None, parent: Savepoint, progress: Progress
) -> Lineage:
    """What the parent tells about this checkpoint, and still has; what it lacks is noted."""
    records = _whole_records(store, parent, progress)
    locations = {each.digest: Location(each.object, each.offset) for each in records.values()}
    seen: dict[str, Seen] = {}
    if parent.manifest.source.uri == source.uri:
        seen = {p: Seen(r.size, r.stamp, r.digest) for p, r in records.items() if r.stamp}
    if marker is not None and marker.complete:
        seen |= {
            path: Seen(note.size, note.stamp, note.digest)
            for path, note in marker.files.items()
            if note.digest in locations
        }
    return Lineage(parent, records, seen, locations)


def _whole_records(store: Store, parent: Savepoint, progress: Progress) -> Mapping[str, FileRecord]:
    """The parent's files whose objects are there: whoever builds on others is damaged from birth.

    That costs few requests, whatever the history; that the bytes are right is taken on trust.
    """
    try:
        records = catalogue.read_table(store, parent).files
    except DamagedError as error:
        progress.note(f"Nothing of {parent.key} is used again. {error} {_WAY_OUT}")
        return {}
    bad = lacking(store, records.values())
    if not bad:
        return records
    progress.note(
        f"{parent.key} is damaged: {store.uri}/{object_path(min(bad))} is missing or has another "
        f"size ({len(bad)} such). What it held is captured anew. {_WAY_OUT}"
    )
    return {path: record for path, record in records.items() if record.object not in bad}


_WAY_OUT = "`sparkpoint savepoint verify` tells which savepoints are damaged, and what to do."
