"""Publishing: the one write that makes a savepoint exist, and what comes before and after it."""

import time

from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.errors import LeaseLostError, NameTakenError, NoSuchSavepointError
from sparkpoint.savepoint.leases import Lease, read_leases
from sparkpoint.savepoint.manifest import identity_of, parse_manifest
from sparkpoint.savepoint.names import COLLECT_LEASE, deleted_path, object_path
from sparkpoint.savepoint.objects import ObjectWriter
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
    store.sync()
    identity = identity_of(data)
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
    manifest = parse_manifest(data, f"{store.uri}/{path}")
    savepoint = Savepoint(identity, path, lease.now(), manifest, tuple(sorted(tags)))
    _confirm(store, savepoint, writer, lease)
    return savepoint


def _confirm(store: Store, savepoint: Savepoint, writer: ObjectWriter, lease: Lease) -> None:
    """Make sure that no collection removed an object that existed and was refreshed by us.

    A collection that had decided to delete it may have looked at its age just before. So wait for a
    running one to end, and look: whatever is there then, stays, because the manifest names it.
    """
    if not writer.refreshed:
        return
    deadline = time.monotonic() + _PATIENCE
    while _collecting(store, lease.now()) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    for digest in sorted(writer.refreshed):
        try:
            store.stat(object_path(digest))
        except NotFoundError as error:
            withdraw(store, savepoint, keep_record=False)
            raise LeaseLostError(
                f"A collection removed {object_path(digest)} while it was used again for "
                f"{savepoint.key}; that savepoint was withdrawn. Run this again."
            ) from error


def _collecting(store: Store, now: float) -> bool:
    leases = [lease for lease in read_leases(store) if lease.path == COLLECT_LEASE]
    return any(lease.is_active(now) for lease in leases)


def withdraw(store: Store, savepoint: Savepoint, *, keep_record: bool = True) -> None:
    """Remove a savepoint from sight. Its objects stay for as long as the record of it is young.

    Record, then manifest, then tags: dying in between leaves a savepoint that is still there, and
    the same call again finishes the work.
    """
    if keep_record:
        try:
            data = store.read(savepoint.path)
        except NotFoundError as error:
            raise NoSuchSavepointError(f"{savepoint.key} is gone already.") from error
        try:
            store.create(deleted_path(savepoint.id), data)
        except AlreadyExistsError:
            store.touch(deleted_path(savepoint.id))
    store.delete(savepoint.path)
    catalogue.remove_tags(store, savepoint.id, catalogue.read_tags(store).get(savepoint.id, ()))
