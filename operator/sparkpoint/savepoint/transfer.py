"""Copying a savepoint to another repository: the same manifest, so the same id."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.errors import DamagedError, NameTakenError, NoSuchSavepointError
from sparkpoint.savepoint.filling import run_all
from sparkpoint.savepoint.leases import hold, hold_to_read
from sparkpoint.savepoint.names import manifest_path, object_path
from sparkpoint.savepoint.objects import Location, ObjectWriter, lacking
from sparkpoint.savepoint.progress import Amount, Progress, Silent, Steps
from sparkpoint.savepoint.publish import publish
from sparkpoint.savepoint.table import Table
from sparkpoint.storage import Store, chunks_of
from sparkpoint.storage.digest import new_digester
from sparkpoint.storage.errors import ChangedError, NotFoundError, TooLargeError

__all__ = ["CopyResult", "copy_savepoint"]


@dataclass(frozen=True, slots=True)
class CopyResult:
    """The savepoint as the target has it, and what it took."""

    savepoint: Savepoint
    copied_bytes: int
    """Of objects that the target did not have, or not whole."""
    verified_bytes: int
    """Of objects that it had, and that were read."""
    is_new: bool
    """The target did not have the savepoint, whatever it had of its objects."""


class _Tally:
    """Passes on how far it is, and adds up the bytes; from several threads."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self.bytes = 0

    def start(self, what: str, total: Amount) -> None:
        self._progress.start(what, total)

    def advance(self, done: Amount) -> None:
        with self._lock:
            self.bytes += done.bytes
        self._progress.advance(done)

    def note(self, text: str) -> None:
        self._progress.note(text)


def copy_savepoint(
    origin: Store,
    savepoint: Savepoint,
    target: Store,
    *,
    verify: bool = False,
    progress: Progress | None = None,
) -> CopyResult:
    """Copy what the target lacks, checked on the way.

    Of a savepoint that is there already, objects that are missing or have another size are copied
    again; with `verify`, all of its objects are read there, and those with other bytes, too.
    """
    progress = progress or Silent()
    present = catalogue.read_if_present(target, savepoint.path)
    if present is not None:
        _check_same(present, savepoint, target)
        return _mend(origin, present, target, verify=verify, progress=progress)
    base = _base(target, savepoint)
    pins = [base.manifest.files.table] if base else []
    purpose, own = f"copy {savepoint.key}", [savepoint.manifest.files.table]
    with (
        hold_to_read(origin, purpose, pins=own, progress=progress),
        hold(target, purpose, pins=pins) as lease,
    ):
        # Read once, now that the lease pins it: what is published later must be these bytes, even
        # if somebody deletes the savepoint meanwhile and makes another of the same name.
        data = catalogue.manifest_bytes(origin, savepoint)
        table = catalogue.read_table(origin, savepoint)
        writer = ObjectWriter(target, _known(target, base))
        wanted = {*table.objects, savepoint.manifest.files.table}
        read = _Tally(progress)
        read.start(purpose, Amount(len(wanted), 0))
        tasks = [partial(_copy, writer, origin, digest, read) for digest in sorted(wanted)]
        run_all(tasks, threads=max(origin.parallelism, target.parallelism), name="copy")
        copied = writer.new_bytes
        tags = catalogue.read_tags_of(origin, savepoint.id)
        made = publish(target, data, path=savepoint.path, lease=lease, writer=writer, tags=tags)
        return CopyResult(made, copied, read.bytes - copied, is_new=True)


def _mend(
    origin: Store, present: Savepoint, target: Store, *, verify: bool, progress: Progress
) -> CopyResult:
    """Bring back what a savepoint lacks; if that is nothing, neither repository is written to, and
    the origin is not even asked."""
    verified, copied = _Tally(progress), _Tally(progress)
    look = partial(_bad_objects, target, present, verify=verify, progress=verified)
    own = _own_table(target, present)
    bad = None if own is None else look(own)
    if bad is not None and not bad:
        return CopyResult(present, 0, verified.bytes, is_new=False)
    purpose, pins = f"copy {present.key}", [present.manifest.files.table]
    with (
        hold_to_read(origin, purpose, pins=pins, progress=progress),
        hold(target, purpose, pins=pins),
    ):
        # What was deleted meanwhile is not damaged.
        catalogue.reread(origin, present)
        catalogue.reread(target, present)
        table = own or catalogue.read_table(origin, present)
        bad = {*pins, *look(table)} if bad is None else bad
        _copy_all_over(origin, target, bad, purpose=purpose, progress=copied)
    progress.note(
        f"{present.key} was there already and damaged: {len(bad)} of its {len(table.objects) + 1} "
        f"objects were missing or wrong, such as {object_path(min(bad))}. They were copied again."
    )
    return CopyResult(present, copied.bytes, verified.bytes, is_new=False)


def _own_table(target: Store, present: Savepoint) -> Table | None:
    """The table that the target has, which is the origin's; None if it is damaged."""
    try:
        return catalogue.read_table(target, present)
    except (DamagedError, TooLargeError):
        return None


def _bad_objects(
    target: Store, present: Savepoint, table: Table, *, verify: bool, progress: Progress
) -> set[str]:
    """Objects that are missing or have another size; with `verify`, or other bytes."""
    bad = {*lacking(target, table.files.values())}
    if not verify:
        return bad
    looked_at = sorted(table.objects - bad)
    progress.start(f"verify {present.key}", Amount(len(looked_at), 0))
    with ThreadPoolExecutor(target.parallelism, "verify") as pool:
        whole = pool.map(lambda digest: _is_whole(target, digest, progress), looked_at)
        return bad | {digest for digest, good in zip(looked_at, whole, strict=True) if not good}


def _copy_all_over(
    origin: Store, target: Store, bad: set[str], *, purpose: str, progress: Progress
) -> None:
    progress.start(purpose, Amount(len(bad), 0))
    tasks = [partial(_copy_over, origin, target, digest, progress) for digest in sorted(bad)]
    run_all(tasks, threads=max(origin.parallelism, target.parallelism), name="copy")
    target.sync()


def _copy_over(origin: Store, target: Store, digest: str, progress: Progress) -> None:
    """Replace an object, which may have the right size and even be good by now, by a checked one.

    What is there stays until then: if the origin's is no better, nothing is lost.
    """
    path, steps = object_path(digest), Steps(progress)
    try:
        size = origin.stat(path).size
        target.copy(path, origin, path, digest=digest, size=size, verify=True, moved=steps.moved)
    except NotFoundError as error:
        raise DamagedError(f"{origin.uri}/{path} is missing.") from error
    except ChangedError as error:
        raise DamagedError(f"{origin.uri}/{path} is damaged; it was not copied.") from error
    steps.end(Amount(1, size))


def _is_whole(target: Store, digest: str, progress: Progress) -> bool:
    """Whether an object is what its name says, by reading it."""
    digester = new_digester(like=digest)
    try:
        with target.open(object_path(digest)) as stream:
            for chunk in chunks_of(stream):
                digester.update(chunk)
                progress.advance(Amount(0, len(chunk)))
    except NotFoundError:
        return False
    finally:
        progress.advance(Amount(1, 0))
    return digester.hexdigest() == digest


def _check_same(present: Savepoint, savepoint: Savepoint, target: Store) -> None:
    if present.id != savepoint.id:
        raise NameTakenError(
            f"{target.uri}/{present.path} exists already and is another savepoint. Delete it "
            "there, or copy under the name it has.",
            present,
        )


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
    try:
        table = catalogue.read_table(target, present)
    except DamagedError:
        return {}  # all of it is copied, then
    objects = table.objects - lacking(target, table.files.values())
    return {digest: Location(digest, 0) for digest in objects}


def _copy(writer: ObjectWriter, origin: Store, digest: str, progress: Progress) -> None:
    if writer.knows(digest):
        progress.advance(Amount(1, 0))
        return
    steps = Steps(progress)
    try:
        content = writer.take_object(origin, digest, moved=steps.moved)
    except NotFoundError as error:
        raise DamagedError(f"{origin.uri}/{object_path(digest)} is missing.") from error
    if content.digest != digest:
        raise DamagedError(f"{origin.uri}/{object_path(digest)} is damaged; nothing was copied.")
    steps.end(Amount(1, content.size))
