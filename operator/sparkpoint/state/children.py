"""Savepoints made from savepoints: their names, what they inherit, and how one comes to be.

The parent is never changed: going back is restoring it. The work is done on a copy in a folder of
its own, which is removed whatever happens.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from sparkpoint.savepoint import CaptureRequest, Manifest, Progress, Repository, Savepoint
from sparkpoint.savepoint.errors import NameTakenError, NoSuchSavepointError
from sparkpoint.savepoint.leases import hold_to_read
from sparkpoint.savepoint.manifest import QueryInfo
from sparkpoint.savepoint.names import check_name
from sparkpoint.state.errors import PendingBatchError
from sparkpoint.state.repartition import MovedStore
from sparkpoint.state.sparkcopy import copy_to
from sparkpoint.state.workfolder import work_folder
from sparkpoint.storage import DirectoryStore

__all__ = ["ChildPlan", "ChildResult", "check_free", "check_settled", "child_name", "make_child"]

_LONGEST_NAME = 128

Moved = dict[str, list[MovedStore]]
"""Query -> its stores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildPlan:
    """How a child is made."""

    name: str
    what: str
    """In one word: of the lease, and the child's trigger."""
    work_folder: Path | None
    """Where the copy is made; the system's folder for temporary files if None."""
    room: int
    """Bytes that must be free there."""
    change: Callable[[Path, Path], Moved]
    """Changes the copy, the first; the second is a folder to work in, and holds the copy, too."""


@dataclass(frozen=True, slots=True)
class ChildResult:
    """A new savepoint, and what was done for it."""

    parent: Savepoint
    savepoint: Savepoint
    moved: Moved
    seconds: float

    @property
    def rows(self) -> int:
        """Of all stores."""
        return sum(each.after.rows for stores in self.moved.values() for each in stores)


def make_child(
    repository: Repository, parent: Savepoint, plan: ChildPlan, *, progress: Progress
) -> ChildResult:
    """Copy, change the copy, and capture it; nothing is published if the change raises."""
    begun = time.monotonic()
    purpose, pins = f"{plan.what} {parent.key}", [parent.manifest.files.table]
    with (
        hold_to_read(repository.store, purpose, pins=pins, progress=progress),
        work_folder(plan.work_folder, room=plan.room) as folder,
    ):
        copy = folder / "copy"
        copy_to(repository, parent, copy, progress)
        moved = plan.change(copy, folder)
        request = _capture_of(parent, plan.name, trigger=plan.what)
        captured = repository.capture(DirectoryStore(copy), request, progress=progress)
    seconds = round(time.monotonic() - begun, 3)
    return ChildResult(parent, captured.savepoint, moved, seconds)


def check_settled(name: str, queries: Iterable[QueryInfo]) -> None:
    """PendingBatchError if one of the queries was in the middle of a batch."""
    if pending := [query for query in queries if query.pending]:
        raise PendingBatchError(
            f"Savepoint {name} was taken while batch {pending[0].batch + 1} was running, which "
            "will be replayed as it was begun. Let the query stop between two batches and take "
            "another savepoint."
        )


def child_name(name: str, ending: str) -> str:
    """The same for the same request, so that asking twice makes one."""
    return name[: _LONGEST_NAME - len(ending)].rstrip("-._") + ending


def check_free(repository: Repository, manifest: Manifest, name: str) -> None:
    """Fail before the work; the create-only write of the manifest decides in the end."""
    check_name(name, "savepoint")
    try:
        found = repository.find(f"{manifest.namespace}/{manifest.job}/{name}")
    except NoSuchSavepointError:
        return
    raise NameTakenError(f"{found.key} exists already. Choose another name with --name.", found)


def _capture_of(parent: Savepoint, name: str, *, trigger: str) -> CaptureRequest:
    """How a changed copy of a savepoint is captured as its child."""
    manifest = parent.manifest
    return CaptureRequest(
        namespace=manifest.namespace,
        job=manifest.job,
        name=name,
        parent=parent,
        revision=manifest.revision,
        spark_version=manifest.spark_version,
        epoch=manifest.source.epoch,
        trigger=trigger,
    )
