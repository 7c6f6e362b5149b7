"""Collect: remove objects that no savepoint needs. Mark and sweep, with a grace period and leases.

The plan is made first and can be printed; carrying it out is dumb. Why this is safe while others
capture, restore and delete is argued in docs/repository-format.md, and tested there step by step in
every order (tests/unit/savepoint/test_interleavings.py).
"""

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.errors import CollectorBusyError, DamagedError, NewerFormatError
from sparkpoint.savepoint.filling import run_all
from sparkpoint.savepoint.leases import ActiveLease, Lease, hold, read_lease, read_leases
from sparkpoint.savepoint.manifest import MANIFEST_LIMIT, parse_manifest
from sparkpoint.savepoint.names import (
    COLLECT_LEASE,
    DELETED,
    OBJECTS,
    TAGS,
    digest_of_path,
)
from sparkpoint.savepoint.progress import Progress, Silent
from sparkpoint.savepoint.reserve import keep_reserve, with_reserve
from sparkpoint.savepoint.uses import USES
from sparkpoint.storage import Entry, Store
from sparkpoint.storage.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    ChangedError,
    FullError,
    NotFoundError,
)

__all__ = ["DEFAULT_GRACE", "CollectPlan", "CollectResult", "collect"]

DEFAULT_GRACE = 3600.0
"""Longer than any capture should take from reading its parent to its manifest."""
_CLOCK_GRAIN = 2.0
"""S3 tells times in whole seconds."""


@dataclass(frozen=True, slots=True)
class CollectPlan:
    """What no savepoint needs any more."""

    objects: tuple[Entry, ...]
    records: tuple[Entry, ...]
    """Of savepoints that were deleted longer ago than the grace period."""
    tags: tuple[Entry, ...]
    """And notes on restores, of savepoints that do not exist."""
    leases: tuple[Entry, ...]
    temporaries: tuple[Entry, ...]
    kept_objects: int
    kept_bytes: int
    young_bytes: int
    """Unreferenced, but too young or shielded by a running operation: a later run frees them."""
    wasted_bytes: int
    """Dead files inside packs that others still need."""

    @property
    def bytes(self) -> int:
        """What is freed."""
        return sum(entry.size for entry in (*self.objects, *self.temporaries))


@dataclass(frozen=True, slots=True)
class CollectResult:
    """The plan, and what of it was done."""

    plan: CollectPlan
    freed_bytes: int
    removed_objects: int
    dry_run: bool


def collect(
    store: Store,
    *,
    grace: float = DEFAULT_GRACE,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> CollectResult:
    """Free what no savepoint needs; with `dry_run` only say what that would be."""
    if dry_run:
        plan = _foreseen(store, grace=grace, progress=progress or Silent())
        return CollectResult(plan, 0, 0, dry_run=True)
    result = with_reserve(store, lambda: _collect(store, grace=grace))
    keep_reserve(store)
    return result


def _foreseen(store: Store, *, grace: float, progress: Progress) -> CollectPlan:
    """The plan, for whoever only counts: also where nothing can be written."""
    try:
        with _exclusive(store) as lease:
            return _plan(store, now=lease.now(), grace=grace)
    except (AccessDeniedError, FullError) as error:
        progress.note(
            f"Counted without a lease, by this host's clock, and maybe while others write: {error}"
        )
        return _plan(store, now=time.time(), grace=grace)


def _collect(store: Store, *, grace: float) -> CollectResult:
    with _exclusive(store) as lease:
        plan = _plan(store, now=lease.now(), grace=grace)
        removed: list[Entry] = []
        tasks = [partial(_sweep, store, entry, lease, removed) for entry in plan.objects]
        run_all(tasks, threads=store.parallelism, name="collect")
        for entry in (*plan.records, *plan.tags, *plan.leases):
            _sweep(store, entry, lease, [])
        for entry in plan.temporaries:
            store.discard(entry)
        freed = sum(entry.size for entry in (*removed, *plan.temporaries))
        return CollectResult(plan, freed, len(removed), dry_run=False)


@contextlib.contextmanager
def _exclusive(store: Store) -> Iterator[Lease]:
    """Be the only collector. A dead one's lease is taken over, by whoever is first."""
    with contextlib.ExitStack() as stack:
        try:
            lease = stack.enter_context(
                hold(store, "collect", path=COLLECT_LEASE, over=_expired(store))
            )
        except (AlreadyExistsError, ChangedError) as error:
            raise CollectorBusyError(
                f"Another collection of {store.uri} is under way. Let it finish."
            ) from error
        yield lease


def _expired(store: Store) -> str | None:
    """The stamp of a dead collector's lease; None if there is no lease, or a living one."""
    with _understood():
        other = read_lease(store, COLLECT_LEASE)
    if other is None:
        return None
    # What time it is by the store's clock, a lease of our own tells.
    with hold(store, "look whether the collector lives") as lease:
        return None if other.is_active(lease.now()) else other.stamp


def _others(store: Store) -> list[ActiveLease]:
    """All leases but the collector's: what they pin stays, so that each has to be understood."""
    with _understood():
        return [lease for lease in read_leases(store) if lease.path != COLLECT_LEASE]


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except (DamagedError, NewerFormatError) as error:
        raise type(error)(f"Nothing was collected. {error}") from error


def _sweep(store: Store, entry: Entry, lease: Lease, removed: list[Entry]) -> None:
    """Delete it unless somebody wrote it again since it was listed."""
    lease.check()
    try:
        present = store.stat(entry.path)
    except NotFoundError:
        return
    if (present.modified, present.stamp) == (entry.modified, entry.stamp):
        store.delete(entry.path)
        removed.append(entry)


def _plan(store: Store, *, now: float, grace: float) -> CollectPlan:
    # The order is the point: manifests, then leases, then the manifests that came meanwhile, then
    # records of deleted savepoints, then objects. Whoever publishes holds a lease before and a
    # manifest after. A savepoint that goes away is one that was read, or it went before the leases
    # were read, or it came so late that its record is young: its record alone does not tell when.
    before = _all_readable(store)
    leases = _others(store)
    found = (*before, *_all_readable(store, known=before))
    active = [lease for lease in leases if lease.is_active(now)]
    cutoff = min([now - grace, *(lease.started - _CLOCK_GRAIN for lease in active)])
    records = list(store.list(DELETED))
    young = [entry for entry in records if entry.modified >= now - grace]
    tables = {savepoint.manifest.files.table for savepoint in found}
    spared = {pin for lease in active for pin in lease.document.pins}
    spared |= {table for entry in young if (table := _table_of(store, entry))}
    live = _Live(store)
    for table in tables:
        live.mark(table)
    for table in spared - tables:
        with contextlib.suppress(DamagedError):  # its savepoint is gone, and its table too
            live.mark(table)
    identities = {savepoint.id for savepoint in found}
    return _sorted_out(
        store,
        live,
        cutoff=cutoff,
        records=tuple(entry for entry in records if entry not in young),
        tags=tuple(
            entry
            for entry in (*store.list(TAGS), *store.list(USES))
            if entry.modified < cutoff and entry.path.split("/")[1] not in identities
        ),
        leases=tuple(
            Entry(lease.path, 0, lease.stamp, lease.modified)
            for lease in leases
            if lease not in active
        ),
    )


def _all_readable(store: Store, *, known: Iterable[Savepoint] = ()) -> tuple[Savepoint, ...]:
    found = catalogue.read_all(store, known=known)
    if found.unreadable:
        first = found.unreadable[0]
        kind = NewerFormatError if first.newer else DamagedError
        raise kind(
            f"Nothing was collected, because {first.path} cannot be read, and so what it needs is "
            f"unknown: {first.problem}"
        )
    return found.savepoints


def _table_of(store: Store, record: Entry) -> str | None:
    try:
        data = store.read(record.path, limit=MANIFEST_LIMIT)
    except NotFoundError:
        return None
    return parse_manifest(data, f"{store.uri}/{record.path}").files.table


class _Live:
    """Objects that are needed, and how much of each."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parts: dict[str, set[tuple[int, int]]] = {}

    def mark(self, table: str) -> None:
        """Everything that a table names, and the table itself."""
        read = catalogue.read_table_object(self._store, table, where="a file table")
        self._parts.setdefault(table, set())
        for record in read.files.values():
            self._parts.setdefault(record.object, set()).add((record.offset, record.size))

    def __contains__(self, digest: str) -> bool:
        return digest in self._parts

    def waste(self, digest: str, size: int) -> int:
        """Bytes of this object that nobody needs."""
        parts = self._parts[digest]
        return max(0, size - sum(length for _, length in parts)) if parts else 0


def _sorted_out(
    store: Store,
    live: _Live,
    *,
    cutoff: float,
    records: tuple[Entry, ...],
    tags: tuple[Entry, ...],
    leases: tuple[Entry, ...],
) -> CollectPlan:
    garbage: list[Entry] = []
    kept = kept_bytes = young_bytes = wasted = 0
    for entry in store.list(OBJECTS):
        digest = digest_of_path(entry.path)
        if digest is not None and digest in live:
            kept, kept_bytes = kept + 1, kept_bytes + entry.size
            wasted += live.waste(digest, entry.size)
        elif entry.modified < cutoff:
            garbage.append(entry)
        else:
            young_bytes += entry.size
    return CollectPlan(
        objects=tuple(garbage),
        records=records,
        tags=tags,
        leases=leases,
        temporaries=tuple(entry for entry in store.abandoned(OBJECTS) if entry.modified < cutoff),
        kept_objects=kept,
        kept_bytes=kept_bytes,
        young_bytes=young_bytes,
        wasted_bytes=wasted,
    )
