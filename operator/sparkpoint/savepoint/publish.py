"""Publishing: the one write that makes a savepoint exist, what comes before it, and its undoing.

Nobody sees a savepoint before everything about it is certain: whoever sees one may build on it.
"""

import time

from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.errors import CollectorBusyError, LeaseLostError, NameTakenError
from sparkpoint.savepoint.leases import Lease, read_lease
from sparkpoint.savepoint.manifest import identity_of, parse_manifest
from sparkpoint.savepoint.names import COLLECT_LEASE, deleted_path, object_path
from sparkpoint.savepoint.objects import ObjectWriter
from sparkpoint.savepoint.reserve import with_reserve
from sparkpoint.storage import Store
from sparkpoint.storage.errors import AlreadyExistsError, NotFoundError

__all__ = ["publish", "withdraw"]

_PAUSE = 0.2
_PATIENCE = 600.0


def publish(
    store: Store,
    data: bytes,
    *,
    path: str,
    lease: Lease,
    writer: ObjectWriter,
    tags: tuple[str, ...] = (),
) -> Savepoint:
    """Make everything durable, then create the manifest; NameTakenError if somebody was faster."""
    manifest = parse_manifest(data, f"{store.uri}/{path}")
    identity = identity_of(data)
    store.sync()
    _confirm(store, path, writer, lease)
    # Tags first: a savepoint that must not be forgotten is then never without them, and tags of a
    # savepoint that never came to be are collected.
    catalogue.add_tags(store, identity, tags)
    lease.check()
    try:
        store.create(path, data)
    except AlreadyExistsError as error:
        existing = catalogue.read_savepoint(store, path)
        if existing.id != identity:
            raise NameTakenError(
                f"{store.uri}/{path} was created by somebody else meanwhile. Choose another name.",
                existing,
            ) from error
    # Not read again: somebody may have deleted it since, which is none of our business.
    return Savepoint(identity, path, lease.now(), manifest, tuple(sorted(tags)))


def _confirm(store: Store, path: str, writer: ObjectWriter, lease: Lease) -> None:
    """Make sure that no collection removed an object that existed and was refreshed by us.

    A collection that had decided to delete it may have looked at its age just before. So wait for a
    running one to end, and look: whatever is there then, stays, because every later collection
    sees our lease, which is older than the object's new time.
    """
    if not writer.refreshed:
        return
    deadline = time.monotonic() + _PATIENCE
    while _collecting(store, lease.now()):
        if time.monotonic() > deadline:
            raise CollectorBusyError(
                f"A collection of {store.uri} has not ended for {_PATIENCE:.0f} s, and may still "
                f"remove what {path} needs. Nothing was published; run this again later."
            )
        time.sleep(_PAUSE)
    for digest in sorted(writer.refreshed):
        try:
            store.stat(object_path(digest))
        except NotFoundError as error:
            raise LeaseLostError(
                f"A collection removed {object_path(digest)} while it was used again for {path}. "
                "Nothing was published; run this again."
            ) from error


def _collecting(store: Store, now: float) -> bool:
    """By its own lease alone: whoever else cannot be understood does not delete."""
    lease = read_lease(store, COLLECT_LEASE)
    return lease is not None and lease.is_active(now)


def withdraw(store: Store, savepoint: Savepoint) -> None:
    """Remove a savepoint from sight. Its objects stay for as long as the record of it is young.

    NoSuchSavepointError if it is gone, or if another one has its name now. Record, then manifest,
    then tags: dying in between leaves a savepoint that is still there, and the same call again
    finishes the work.
    """
    with_reserve(store, lambda: _withdraw(store, savepoint))


def _withdraw(store: Store, savepoint: Savepoint) -> None:
    _record(store, deleted_path(savepoint.id), catalogue.manifest_bytes(store, savepoint))
    store.delete(savepoint.path)
    catalogue.remove_tags(store, savepoint.id, catalogue.read_tags_of(store, savepoint.id))


def _record(store: Store, path: str, data: bytes) -> None:
    """Leave a record that is as young as now. An old one, of a deletion that died, may be swept at
    any time."""
    while True:
        try:
            return store.create(path, data)
        except AlreadyExistsError:
            if store.touch(path):
                return None
