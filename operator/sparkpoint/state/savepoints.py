"""Repartition a savepoint: a new one, child of the first, with the same state in other partitions.

The first is never changed: going back is restoring it. The work is done on a copy in a folder of
its own, which is removed whatever happens; nothing is published before the copy has been read
again and found faithful.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sparkpoint.savepoint import (
    CaptureRequest,
    Manifest,
    MaterializeRequest,
    Mode,
    Progress,
    Repository,
    Savepoint,
    SinkPolicy,
)
from sparkpoint.savepoint.errors import NameTakenError, NoSuchSavepointError
from sparkpoint.savepoint.leases import hold_to_read
from sparkpoint.savepoint.manifest import OperatorInfo, QueryInfo
from sparkpoint.savepoint.names import check_name
from sparkpoint.savepoint.progress import Silent
from sparkpoint.state.errors import (
    NothingToDoError,
    PendingBatchError,
    UnsupportedStateError,
    WorkFolderError,
)
from sparkpoint.state.querystate import refusal_to_move
from sparkpoint.state.repartition import MovedStore, repartition_query
from sparkpoint.state.survey import operator_of
from sparkpoint.storage import DirectoryStore

__all__ = ["MAX_PARTITIONS", "RepartitionRequest", "RepartitionResult", "repartition"]

MAX_PARTITIONS = 10_000
"""Every partition costs files and some memory; more are hardly meant."""
_ROOM = 4
"""Free space per byte of the savepoint: the copy, and new files that may compress worse."""
_LONGEST_NAME = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class RepartitionRequest:
    """What to make."""

    partitions: int
    name: str | None = None
    """Of the new savepoint; `<name>-p<partitions>` if None, so that asking twice makes one."""
    work_folder: Path | None = None
    """Where the copy is made; the system's folder for temporary files if None."""


@dataclass(frozen=True, slots=True)
class RepartitionResult:
    """A new savepoint, and what was done for it."""

    parent: Savepoint
    savepoint: Savepoint
    moved: dict[str, list[MovedStore]]
    """Query -> its stores."""
    seconds: float

    @property
    def rows(self) -> int:
        """Of all stores."""
        return sum(each.after.rows for stores in self.moved.values() for each in stores)


def repartition(
    repository: Repository,
    savepoint: Savepoint,
    request: RepartitionRequest,
    *,
    progress: Progress | None = None,
) -> RepartitionResult:
    """Make a savepoint whose queries have so many state partitions."""
    begun, progress = time.monotonic(), progress or Silent()
    manifest = savepoint.manifest
    queries = _queries_to_change(manifest, request.partitions)
    name = request.name or _default_name(manifest.name, request.partitions)
    _check_free(repository, manifest, name)
    purpose, pins = f"repartition {savepoint.key}", [manifest.files.table]
    with (
        hold_to_read(repository.store, purpose, pins=pins, progress=progress),
        _work_folder(request.work_folder, room=_ROOM * manifest.files.bytes) as folder,
    ):
        copy = DirectoryStore(folder / "copy")
        whole = MaterializeRequest(mode=Mode.RESUME, sink_policy=SinkPolicy.IGNORE)
        repository.materialize(savepoint, copy, whole, progress=progress)
        moved = {
            query.prefix: _moved(folder / "copy" / query.prefix, request.partitions, progress)
            for query in queries
        }
        captured = repository.capture(copy, _capture(savepoint, name), progress=progress)
    seconds = round(time.monotonic() - begun, 3)
    return RepartitionResult(savepoint, captured.savepoint, moved, seconds)


def _moved(root: Path, partitions: int, progress: Progress) -> list[MovedStore]:
    try:
        return repartition_query(root, partitions=partitions, progress=progress)
    except OSError as error:
        raise WorkFolderError(f"{root} could not be written: {error.strerror}.") from error


def _queries_to_change(manifest: Manifest, partitions: int) -> list[QueryInfo]:
    """The queries with state in another number of partitions; every obstacle at once."""
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise UnsupportedStateError(
            f"{partitions} partitions: a number from 1 to {MAX_PARTITIONS} is possible."
        )
    problems = [text for query in manifest.queries for text in _problems(query)]
    if problems:
        raise UnsupportedStateError(
            f"{manifest.name} cannot be repartitioned: {' '.join(problems)}"
        )
    changing = [query for query in manifest.queries if _pinned(query) not in (None, partitions)]
    if not changing:
        raise NothingToDoError(
            f"{manifest.name} has no state, or has it in {partitions} partitions already."
        )
    if pending := [query for query in changing if query.pending]:
        raise PendingBatchError(
            f"{manifest.name} was taken while batch {pending[0].batch + 1} was running, which will "
            "be replayed as it was begun. Let the query stop between two batches and take "
            "another savepoint."
        )
    return changing


def _problems(query: QueryInfo) -> Iterator[str]:
    for operator in query.operators:
        reason = refusal_to_move(operator_of(operator), query.conf)
        if reason is not None:
            yield f"operator {_called(query, operator)}: {reason}."


def _called(query: QueryInfo, operator: OperatorInfo) -> str:
    where = f" of query {query.prefix}" if query.prefix else ""
    return f"{operator.id} ({operator.name or 'unnamed'}){where}"


def _pinned(query: QueryInfo) -> int | None:
    """The number that the query goes on with; None without state. Operators may have fewer."""
    if not query.operators:
        return None
    text = query.conf.get("spark.sql.shuffle.partitions", "")
    return int(text) if text.isdigit() else max(each.partitions for each in query.operators)


def _default_name(name: str, partitions: int) -> str:
    ending = f"-p{partitions}"
    return name[: _LONGEST_NAME - len(ending)].rstrip("-._") + ending


def _check_free(repository: Repository, manifest: Manifest, name: str) -> None:
    """Fail before the work; the create-only write of the manifest decides in the end."""
    check_name(name, "savepoint")
    try:
        found = repository.find(f"{manifest.namespace}/{manifest.job}/{name}")
    except NoSuchSavepointError:
        return
    raise NameTakenError(f"{found.key} exists already. Choose another name with --name.", found)


def _capture(parent: Savepoint, name: str) -> CaptureRequest:
    manifest = parent.manifest
    return CaptureRequest(
        namespace=manifest.namespace,
        job=manifest.job,
        name=name,
        parent=parent,
        revision=manifest.revision,
        spark_version=manifest.spark_version,
        epoch=manifest.source.epoch,
        trigger="repartition",
    )


@contextmanager
def _work_folder(parent: Path | None, *, room: int) -> Iterator[Path]:
    """A folder of our own, gone when we leave."""
    place = parent or Path(tempfile.gettempdir())
    try:
        free = shutil.disk_usage(place).free
        if free < room:
            raise WorkFolderError(
                f"{place} has {free >> 20} MiB free; the copy may take {room >> 20} MiB. "
                "Give another folder with --work-dir."
            )
        folder = tempfile.TemporaryDirectory(prefix="sparkpoint-state-", dir=place)
    except OSError as error:
        raise WorkFolderError(
            f"{place} cannot hold the copy: {error.strerror}. Give another folder with --work-dir."
        ) from error
    with folder as name:
        yield Path(name)
