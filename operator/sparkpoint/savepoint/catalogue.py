"""Which savepoints there are: listing, finding by name or id, tags. Reads small manifests only."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from sparkpoint.savepoint.errors import (
    AmbiguousError,
    DamagedError,
    NewerFormatError,
    NoSuchSavepointError,
)
from sparkpoint.savepoint.manifest import MANIFEST_LIMIT, Manifest, identity_of, parse_manifest
from sparkpoint.savepoint.names import (
    SAVEPOINTS,
    TAGS,
    check_name,
    manifest_path,
    object_path,
    tag_path,
)
from sparkpoint.savepoint.table import Table, decode_table
from sparkpoint.storage import Entry, Store
from sparkpoint.storage.errors import AlreadyExistsError, NotFoundError, TooLargeError

__all__ = [
    "Catalogue",
    "Savepoint",
    "Unreadable",
    "find",
    "newest",
    "published_since",
    "read_all",
    "read_savepoint",
    "read_table",
]

_TABLE_LIMIT = 1024 * 1024 * 1024
_SHORTEST_ID = 6


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A manifest in the repository."""

    id: str
    path: str
    published: float
    """When it became visible, by the store's clock."""
    manifest: Manifest
    tags: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/job/name`."""
        return f"{self.manifest.namespace}/{self.manifest.job}/{self.manifest.name}"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file where a manifest should be, and what is wrong with it."""

    path: str
    problem: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything that is listed, oldest first."""

    savepoints: tuple[Savepoint, ...]
    unreadable: tuple[Unreadable, ...] = field(default=())


def read_savepoint(store: Store, path: str) -> Savepoint:
    """The savepoint whose manifest is at this path."""
    where = f"{store.uri}/{path}"
    try:
        data = store.read(path, limit=MANIFEST_LIMIT)
        published = store.stat(path).modified
    except NotFoundError as error:
        raise NoSuchSavepointError(f"There is no savepoint {where}.") from error
    except TooLargeError as error:
        raise DamagedError(f"{where} is too large for a manifest.") from error
    manifest = parse_manifest(data, where)
    if manifest_path(manifest.namespace, manifest.job, manifest.name) != path:
        raise DamagedError(f"{where} belongs to another name: it was moved or copied by hand.")
    return Savepoint(identity_of(data), path, published, manifest)


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


def read_all(store: Store, *, namespace: str | None = None, job: str | None = None) -> Catalogue:
    """All savepoints, or those of a namespace or job; what vanishes meanwhile is left out."""
    paths = [entry.path for entry in store.list(_folder(namespace, job))]
    with ThreadPoolExecutor(store.parallelism) as pool:
        found = list(pool.map(lambda path: _try_read(store, path), paths))
    tags = read_tags(store)
    savepoints = [
        Savepoint(each.id, each.path, each.published, each.manifest, tags.get(each.id, ()))
        for each in found
        if isinstance(each, Savepoint)
    ]
    savepoints.sort(key=lambda each: (each.manifest.created, each.published, each.path))
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
    except (DamagedError, NewerFormatError) as error:
        return Unreadable(path, str(error))


def newest(store: Store, *, namespace: str, job: str) -> Savepoint | None:
    """The savepoint of a job that was published last; reads one manifest, whatever the history."""
    entries = list(store.list(_folder(namespace, job)))
    for entry in sorted(entries, key=lambda each: (each.modified, each.path), reverse=True):
        found = _try_read(store, entry.path)
        if isinstance(found, Savepoint):
            return found
    return None


def published_since(store: Store, moment: float) -> Iterator[Savepoint]:
    """Savepoints of all jobs from this time of the store's clock on, newest first."""
    entries = [entry for entry in store.list(SAVEPOINTS) if entry.modified >= moment]
    for entry in sorted(entries, key=lambda each: (each.modified, each.path), reverse=True):
        found = _try_read(store, entry.path)
        if isinstance(found, Savepoint):
            yield found


def find(
    store: Store, reference: str, *, namespace: str | None = None, job: str | None = None
) -> Savepoint:
    """The savepoint with this name, `job/name`, `namespace/job/name`, id, or start of an id."""
    parts = reference.split("/")
    if len(parts) > 3 or not all(parts):
        raise NoSuchSavepointError(f"{reference!r} is neither a name nor an id of a savepoint.")
    wanted = [namespace, job, None][: 3 - len(parts)] + parts
    found = [read_savepoint(store, path) for path in _matching(store, wanted)]
    if not found and len(parts) == 1 and _may_be_id(reference):
        catalogue = read_all(store, namespace=namespace, job=job)
        found = [each for each in catalogue.savepoints if each.id.startswith(reference)]
    return _only(found, reference, store)


def _matching(store: Store, wanted: list[str | None]) -> list[str]:
    """Paths of manifests that go by these parts; only a part that is missing makes us search."""
    namespace, job, name = wanted
    if namespace is None or job is None or name is None:
        return [entry.path for entry in store.list(SAVEPOINTS) if _fits(entry, wanted)]
    try:
        return [store.stat(manifest_path(namespace, job, name)).path]
    except NotFoundError:
        return []


def _fits(entry: Entry, wanted: list[str | None]) -> bool:
    parts = entry.path.removesuffix(".json").split("/")[1:]
    return len(parts) == len(wanted) and all(
        want is None or want == part for want, part in zip(wanted, parts, strict=True)
    )


def _may_be_id(reference: str) -> bool:
    return len(reference) >= _SHORTEST_ID and not set(reference) - set("0123456789abcdef")


def _only(found: list[Savepoint], reference: str, store: Store) -> Savepoint:
    if not found:
        raise NoSuchSavepointError(
            f"No savepoint in {store.uri} goes by {reference!r}. `sparkpoint savepoint list` shows "
            "what there is."
        )
    if len(found) > 1:
        keys = ", ".join(each.key for each in found[:5])
        raise AmbiguousError(f"{reference!r} could be any of {keys}. Give namespace/job/name.")
    return found[0]


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
        raise DamagedError(f"{store.uri}/{path}, {where}, is damaged: its SHA-256 is another one.")
    return decode_table(data, f"{store.uri}/{path}")


def read_tags(store: Store) -> Mapping[str, tuple[str, ...]]:
    """Savepoint id -> its tags."""
    tags: dict[str, list[str]] = {}
    for entry in store.list(TAGS):
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
