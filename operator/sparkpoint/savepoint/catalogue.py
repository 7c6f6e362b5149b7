"""Which savepoints there are: listing, finding by name, id or tag. Reads small manifests only.

There is one order of age, `Savepoint.order`, and one rule for what a savepoint goes by, `choose`.
"""

import contextlib
import difflib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime

from sparkpoint.savepoint.errors import (
    AmbiguousError,
    DamagedError,
    NewerFormatError,
    NoSuchSavepointError,
)
from sparkpoint.savepoint.manifest import (
    MANIFEST_LIMIT,
    Manifest,
    identity_of,
    moment,
    parse_manifest,
)
from sparkpoint.savepoint.names import (
    SAVEPOINTS,
    TAGS,
    check_digest,
    check_name,
    manifest_path,
    object_path,
    tag_path,
)
from sparkpoint.savepoint.table import Table, decode_table
from sparkpoint.storage import Entry, Store
from sparkpoint.storage.errors import AlreadyExistsError, NotFoundError, TooLargeError

__all__ = [
    "AmbiguousReferenceError",
    "Catalogue",
    "Savepoint",
    "Unreadable",
    "choose",
    "find",
    "find_unreadable",
    "newest",
    "newest_first",
    "published_since",
    "read_all",
    "read_if_present",
    "read_savepoint",
    "read_table",
    "read_with_entry",
]

_TABLE_LIMIT = 1024 * 1024 * 1024
_SHORTEST_ID = 4
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A manifest in the repository."""

    id: str
    path: str
    published: float
    """When it became visible, by the store's clock."""
    manifest: Manifest
    tags: tuple[str, ...] = ()
    stamp: str = ""
    """Of the file that was read; empty for what was just published."""

    @property
    def key(self) -> str:
        """`namespace/job/name`."""
        return f"{self.manifest.namespace}/{self.manifest.job}/{self.manifest.name}"

    @property
    def taken(self) -> datetime:
        """When it was captured, but no later than it was published.

        A copy is as old as its original. A host whose clock is fast cannot make its savepoints
        newer than the store saw them come.
        """
        return min(self.manifest.created, moment(self.published))

    @property
    def order(self) -> tuple[datetime, datetime, str]:
        """Sorts from the oldest to the newest; the same everywhere."""
        return self.taken, self.manifest.created, self.path


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file where a manifest should be, and what is wrong with it."""

    path: str
    problem: str
    newer: bool = False
    """Not damaged: a newer version of Sparkpoint wrote it, and reads it."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything that is listed, oldest first."""

    savepoints: tuple[Savepoint, ...]
    unreadable: tuple[Unreadable, ...] = field(default=())


def read_savepoint(store: Store, path: str) -> Savepoint:
    """The savepoint whose manifest is at this path."""
    where = f"{store.uri}/{path}"
    try:
        data, entry = read_with_entry(store, path, limit=MANIFEST_LIMIT)
    except NotFoundError as error:
        raise NoSuchSavepointError(f"There is no savepoint {where}.") from error
    except TooLargeError as error:
        raise DamagedError(f"{where} is too large for a manifest.") from error
    manifest = parse_manifest(data, where)
    if manifest_path(manifest.namespace, manifest.job, manifest.name) != path:
        raise DamagedError(f"{where} belongs to another name: it was moved or copied by hand.")
    return Savepoint(identity_of(data), path, entry.modified, manifest, stamp=entry.stamp)


def read_if_present(store: Store, path: str) -> Savepoint | None:
    """The same; None if there is none."""
    try:
        return read_savepoint(store, path)
    except NoSuchSavepointError:
        return None


def read_with_entry(store: Store, path: str, *, limit: int) -> tuple[bytes, Entry]:
    """A small file and its entry, with one request; errors as for `Store.read`."""
    with store.open_stamped(path) as (stream, entry):
        if entry.size > limit:
            raise TooLargeError(f"{store.uri}/{path} has {entry.size} bytes, more than {limit}.")
        return stream.read(), entry


def reread(store: Store, savepoint: Savepoint) -> Savepoint:
    """The same savepoint as it is now; NoSuchSavepointError if it was deleted meanwhile."""
    present = read_savepoint(store, savepoint.path)
    if present.id != savepoint.id:
        raise NoSuchSavepointError(f"{savepoint.key} was deleted and made anew meanwhile.")
    return present


def manifest_bytes(store: Store, savepoint: Savepoint) -> bytes:
    """The very bytes that the savepoint's id names; NoSuchSavepointError if others are there."""
    try:
        data = store.read(savepoint.path, limit=MANIFEST_LIMIT)
    except NotFoundError as error:
        raise NoSuchSavepointError(f"{savepoint.key} is gone already.") from error
    if identity_of(data) != savepoint.id:
        raise NoSuchSavepointError(f"{savepoint.key} was deleted and made anew meanwhile.")
    return data


def read_all(
    store: Store,
    *,
    namespace: str | None = None,
    job: str | None = None,
    known: Iterable[Savepoint] = (),
) -> Catalogue:
    """All savepoints, or those of a namespace, of a job, or of all jobs of a name; what vanishes
    meanwhile is left out. What is `known` is not read again if its file is still the same."""
    entries = list(store.list(_folder(namespace, job)))
    if namespace is None and job is not None:
        entries = [entry for entry in entries if entry.path.split("/")[2:3] == [job]]
    have = {(each.path, each.stamp): each for each in known}

    def read(entry: Entry) -> Savepoint | Unreadable | None:
        return have.get((entry.path, entry.stamp)) or _try_read(store, entry.path)

    with ThreadPoolExecutor(store.parallelism) as pool:
        found = list(pool.map(read, entries))
    tags = read_tags(store)
    savepoints = [
        replace(each, tags=tags.get(each.id, ())) for each in found if isinstance(each, Savepoint)
    ]
    savepoints.sort(key=lambda each: each.order)
    return Catalogue(
        tuple(savepoints), tuple(each for each in found if isinstance(each, Unreadable))
    )


def _folder(namespace: str | None, job: str | None) -> str:
    if namespace is None:
        return SAVEPOINTS
    check_name(namespace, "namespace")
    return f"{SAVEPOINTS}/{namespace}" + (f"/{check_name(job, 'job')}" if job else "")


def _try_read(store: Store, path: str) -> Savepoint | Unreadable | None:
    try:
        return read_savepoint(store, path)
    except NoSuchSavepointError:
        return None  # deleted since it was listed
    except DamagedError as error:
        return Unreadable(path, str(error))
    except NewerFormatError as error:
        return Unreadable(path, str(error), newer=True)


def newest(store: Store, *, namespace: str, job: str) -> Savepoint | None:
    """The newest savepoint of a job; reads few manifests, whatever the history."""
    return next(newest_first(store, namespace=namespace, job=job), None)


def newest_first(store: Store, *, namespace: str, job: str) -> Iterator[Savepoint]:
    """Those of a job, newest first; only as many manifests are read as somebody asks for."""
    return _newest_first(store, store.list(_folder(namespace, job)))


def published_since(store: Store, since: float) -> Iterator[Savepoint]:
    """Savepoints of all jobs from this time of the store's clock on, newest first."""
    entries = (entry for entry in store.list(SAVEPOINTS) if entry.modified >= since)
    return _newest_first(store, entries)


def _newest_first(store: Store, entries: Iterable[Entry]) -> Iterator[Savepoint]:
    """In the one order, and yet without reading all: none is newer than when it was published."""
    read: list[Savepoint] = []
    for entry in sorted(entries, key=lambda each: (each.modified, each.path), reverse=True):
        while read and read[-1].taken > moment(entry.modified):
            yield read.pop()
        found = _try_read(store, entry.path)
        if isinstance(found, Savepoint):
            read = sorted([*read, found], key=lambda each: each.order)
    yield from reversed(read)


class AmbiguousReferenceError(AmbiguousError):
    """Several savepoints go by this; `candidates` are all of them."""

    def __init__(self, reference: str, found: Iterable[Savepoint]) -> None:
        each = sorted((savepoint.key, savepoint.id[:12]) for savepoint in found)
        self.candidates = tuple(key for key, _ in each)
        listed = "\n".join(f"  {key} ({identity})" for key, identity in each)
        super().__init__(
            f"{reference!r} could be any of these; give NAMESPACE/JOB/NAME or more of the id:"
            f"\n{listed}"
        )


def find(
    store: Store, reference: str, *, namespace: str | None = None, job: str | None = None
) -> Savepoint:
    """The one savepoint that goes by this; a full name reads one manifest."""
    parts = reference.split("/")
    if len(parts) == 3 and all(parts):
        with contextlib.suppress(NoSuchSavepointError):
            found = read_savepoint(store, manifest_path(*parts))
            return replace(found, tags=read_tags(store).get(found.id, ()))
    of_job = job if len(parts) == 1 else None
    return choose(store, read_all(store, namespace=namespace, job=of_job), reference)


def choose(store: Store, catalogue: Catalogue, reference: str) -> Savepoint:
    """The one among these that goes by a name, JOB/NAME, NAMESPACE/JOB/NAME, start of an id or tag.

    Never guesses among several: AmbiguousReferenceError lists them.
    """
    found = [each for each in catalogue.savepoints if _goes_by(each, reference)]
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousReferenceError(reference, found)
    damaged = find_unreadable(catalogue, reference)
    if damaged is not None:
        return read_savepoint(store, damaged.path)  # raises what is wrong with it
    raise NoSuchSavepointError(
        f"No savepoint in {store.uri} goes by {reference!r}."
        f"{_suggestion(catalogue, reference)} `sparkpoint savepoint list` shows what there is."
    )


def _goes_by(savepoint: Savepoint, reference: str) -> bool:
    names = (savepoint.manifest.name, savepoint.key, savepoint.key.split("/", 1)[1])
    may_be_id = len(reference) >= _SHORTEST_ID and _HEX.issuperset(reference)
    return (
        reference in names
        or reference in savepoint.tags
        or (may_be_id and savepoint.id.startswith(reference))
    )


def _suggestion(catalogue: Catalogue, reference: str) -> str:
    names = Counter(each.manifest.name for each in catalogue.savepoints)
    names.update(tag for each in catalogue.savepoints for tag in each.tags)
    close = difflib.get_close_matches(reference.rsplit("/", 1)[-1], names, n=1)
    if close and names[close[0]] > 1:
        # What several go by would lead to the next question.
        keys = [each.key for each in catalogue.savepoints if each.manifest.name == close[0]]
        close = difflib.get_close_matches(reference, keys, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def find_unreadable(catalogue: Catalogue, reference: str) -> Unreadable | None:
    """A damaged manifest of exactly this NAMESPACE/JOB/NAME, or the only one of this name."""
    found = [
        each
        for each in catalogue.unreadable
        if (key := each.path.removeprefix(f"{SAVEPOINTS}/").removesuffix(".json")) == reference
        or key.rsplit("/", 1)[-1] == reference
    ]
    return found[0] if len(found) == 1 else None


def read_table(store: Store, savepoint: Savepoint) -> Table:
    """The files of a savepoint, their table checked against the manifest."""
    return read_table_object(
        store, savepoint.manifest.files.table, where=f"the file table of {savepoint.key}"
    )


def read_table_object(store: Store, digest: str, *, where: str) -> Table:
    """A table by its digest."""
    path = object_path(digest)
    try:
        data = store.read(path, limit=_TABLE_LIMIT)
    except NotFoundError as error:
        raise DamagedError(f"{store.uri}/{path}, {where}, is missing.") from error
    if identity_of(data) != digest:
        raise DamagedError(f"{store.uri}/{path}, {where}, is damaged: its digest is another one.")
    return decode_table(data, f"{store.uri}/{path}")


def read_tags(store: Store) -> Mapping[str, tuple[str, ...]]:
    """Savepoint id -> its tags."""
    return _tags_below(store, TAGS)


def read_tags_of(store: Store, identity: str) -> tuple[str, ...]:
    """The tags of one savepoint."""
    return _tags_below(store, f"{TAGS}/{check_digest(identity)}").get(identity, ())


def _tags_below(store: Store, folder: str) -> dict[str, tuple[str, ...]]:
    tags: dict[str, list[str]] = {}
    for entry in store.list(folder):
        parts = entry.path.removesuffix(".json").split("/")
        if len(parts) == 3:
            tags.setdefault(parts[1], []).append(parts[2])
    return {identity: tuple(sorted(names)) for identity, names in tags.items()}


def add_tags(store: Store, identity: str, tags: Iterable[str]) -> None:
    """Give a savepoint tags; one that it has already is fine."""
    for tag in tags:
        content = json.dumps({"format": 1, "savepoint": identity, "tag": tag}, sort_keys=True)
        with contextlib.suppress(AlreadyExistsError):
            store.create(tag_path(identity, tag), f"{content}\n".encode())


def remove_tags(store: Store, identity: str, tags: Iterable[str]) -> None:
    """Take tags away; one that it has not is fine."""
    for tag in tags:
        store.delete(tag_path(identity, tag))
