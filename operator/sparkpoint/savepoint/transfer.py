"""Copying a savepoint to another repository: the same manifest, so the same id."""

from functools import partial

from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.errors import DamagedError, NameTakenError, NoSuchSavepointError
from sparkpoint.savepoint.filling import run_all
from sparkpoint.savepoint.leases import hold, hold_to_read
from sparkpoint.savepoint.names import manifest_path, object_path
from sparkpoint.savepoint.objects import Location, ObjectWriter
from sparkpoint.savepoint.progress import Amount, Progress, Silent
from sparkpoint.savepoint.publish import publish
from sparkpoint.storage import Store
from sparkpoint.storage.errors import NotFoundError

__all__ = ["copy_savepoint"]


def copy_savepoint(
    origin: Store, savepoint: Savepoint, target: Store, *, progress: Progress | None = None
) -> Savepoint:
    """Copy what the target lacks, checked on the way; a savepoint that is there already is fine."""
    present = catalogue.read_if_present(target, savepoint.path)
    if present is not None:
        return _same(present, savepoint, target)
    progress = progress or Silent()
    base = _base(target, savepoint)
    pins = [base.manifest.files.table] if base else []
    purpose, read = f"copy {savepoint.key}", [savepoint.manifest.files.table]
    with (
        hold_to_read(origin, purpose, pins=read, progress=progress),
        hold(target, purpose, pins=pins) as lease,
    ):
        # Read once, now that the lease pins it: what is published later must be these bytes, even
        # if somebody deletes the savepoint meanwhile and makes another of the same name.
        data = catalogue.manifest_bytes(origin, savepoint)
        table = catalogue.read_table(origin, savepoint)
        writer = ObjectWriter(target, _known(target, base))
        wanted = sorted({*table.objects, savepoint.manifest.files.table})
        progress.start(f"copy {savepoint.key}", Amount(len(wanted), 0))
        tasks = [partial(_copy, writer, origin, digest, progress) for digest in wanted]
        run_all(tasks, threads=max(origin.parallelism, target.parallelism), name="copy")
        tags = catalogue.read_tags(origin).get(savepoint.id, ())
        return publish(target, data, path=savepoint.path, lease=lease, writer=writer, tags=tags)


def _same(present: Savepoint, savepoint: Savepoint, target: Store) -> Savepoint:
    if present.id != savepoint.id:
        raise NameTakenError(
            f"{target.uri}/{present.path} exists already and is another savepoint. Delete it "
            "there, or copy under the name it has.",
            present,
        )
    return present


def _base(target: Store, savepoint: Savepoint) -> Savepoint | None:
    """A savepoint that the target has and that probably shares most objects."""
    parent = savepoint.manifest.parent
    if parent is not None:
        path = manifest_path(parent.namespace, parent.job, parent.name)
        found = catalogue.read_if_present(target, path)
        if found is not None and found.id == parent.id:
            return found
    manifest = savepoint.manifest
    return catalogue.newest(target, namespace=manifest.namespace, job=manifest.job)


def _known(target: Store, base: Savepoint | None) -> dict[str, Location]:
    if base is None:
        return {}
    try:
        present = catalogue.reread(target, base)
    except NoSuchSavepointError:
        return {}
    objects = catalogue.read_table(target, present).objects
    return {digest: Location(digest, 0) for digest in objects}


def _copy(writer: ObjectWriter, origin: Store, digest: str, progress: Progress) -> None:
    if writer.knows(digest):
        progress.advance(Amount(1, 0))
        return
    try:
        content = writer.take_object(origin, digest)
    except NotFoundError as error:
        raise DamagedError(f"{origin.uri}/{object_path(digest)} is missing.") from error
    if content.digest != digest:
        raise DamagedError(f"{origin.uri}/{object_path(digest)} is damaged; nothing was copied.")
    progress.advance(Amount(1, content.size))
