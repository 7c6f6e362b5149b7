"""What the state of a savepoint is made of: operators, stores, and how evenly they are spread.

Reads the repository itself; nothing is restored for it. Rows are counted where they can be read
without Spark, which is the HDFS-backed provider; else the files tell their sizes.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

from sparkpoint.checkpoint.layout import store_folder
from sparkpoint.checkpoint.model import Operator, StateStore
from sparkpoint.savepoint import Progress, Repository, Savepoint
from sparkpoint.savepoint.leases import hold_to_read
from sparkpoint.savepoint.manifest import OperatorInfo, QueryInfo, StoreInfo
from sparkpoint.savepoint.names import object_path
from sparkpoint.savepoint.objects import read_record
from sparkpoint.savepoint.progress import Amount, Silent
from sparkpoint.savepoint.table import FileRecord
from sparkpoint.state.querystate import refusal_to_read
from sparkpoint.state.records import StoreVersion, read_store
from sparkpoint.state.tally import StoreTally, Tally
from sparkpoint.storage import Store
from sparkpoint.storage.errors import NotFoundError

__all__ = ["SavepointFiles", "StoreSurvey", "operator_of", "survey"]


@dataclass(frozen=True, slots=True)
class StoreSurvey:
    """One store of a savepoint."""

    query: str
    operator: int
    operator_name: str | None
    provider: str
    store: str
    stored: tuple[int, ...]
    """Bytes of files, by partition."""
    tally: StoreTally | None
    """What is in them; None if only Spark could tell."""
    unread: str | None = None
    """Why only Spark could tell."""

    @property
    def skew(self) -> float:
        """The largest partition over the mean: by rows, or by bytes where rows are unknown."""
        if self.tally is not None:
            return self.tally.skew
        total = sum(self.stored)
        return max(self.stored) * len(self.stored) / total if total else 1.0


class SavepointFiles:
    """The files of one query of a savepoint, to be opened by their path in its checkpoint."""

    def __init__(self, store: Store, records: Mapping[str, FileRecord], *, prefix: str) -> None:
        self._store = store
        start = f"{prefix}/" if prefix else ""
        self._records = {
            path[len(start) :]: each for path, each in records.items() if path.startswith(start)
        }

    def read(self, path: str) -> bytes:
        """The whole content of a small file, checked."""
        return read_record(self._store, self._record(path))

    def open(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A stream over a file."""
        return self._open(self._record(path))

    def size_of(self, folder: str) -> int:
        """Bytes of all files below a folder."""
        below = (r.size for p, r in self._records.items() if p.startswith(f"{folder}/"))
        return sum(below)

    @contextmanager
    def _open(self, record: FileRecord) -> Iterator[BinaryIO]:
        if record.object != record.digest:
            yield BytesIO(read_record(self._store, record))
            return
        with self._store.open(object_path(record.object)) as stream:
            yield stream

    def _record(self, path: str) -> FileRecord:
        record = self._records.get(path)
        if record is None:
            raise NotFoundError(f"The savepoint does not hold {path}.")
        return record


def operator_of(info: OperatorInfo) -> Operator:
    """An operator of a manifest in the words of a checkpoint."""
    return Operator(
        id=info.id,
        name=info.name,
        metadata_version=info.metadata_version,
        provider=info.provider,
        partitions=info.partitions,
        stores=tuple(
            StateStore(s.name, s.partitions, tuple(s.base_versions), s.files, s.bytes)
            for s in info.stores
        ),
    )


def survey(
    repository: Repository, savepoint: Savepoint, *, progress: Progress | None = None
) -> list[StoreSurvey]:
    """Every store of every query."""
    progress, manifest = progress or Silent(), savepoint.manifest
    purpose, pins = f"show state of {savepoint.key}", [manifest.files.table]
    with hold_to_read(repository.store, purpose, pins=pins, progress=progress):
        records = repository.files(savepoint).files
        stores = [(q, op, s) for q in manifest.queries for op in q.operators for s in op.stores]
        progress.start("state", Amount(len(stores), sum(s.bytes for _, _, s in stores)))
        found = []
        for query, operator, store in stores:
            files = SavepointFiles(repository.store, records, prefix=query.prefix)
            found.append(_survey_store(files, query, operator, store))
            progress.advance(Amount(1, store.bytes))
    return found


def _survey_store(
    files: SavepointFiles, query: QueryInfo, operator: OperatorInfo, store: StoreInfo
) -> StoreSurvey:
    unread = refusal_to_read(operator_of(operator), query.conf)
    folders = [store_folder(operator.id, n, store.name) for n in range(store.partitions)]
    tally = None
    if unread is None:
        parts = zip(folders, store.base_versions, strict=True)
        versions = [StoreVersion(folder, base, query.batch + 1) for folder, base in parts]
        tallies = tuple(_tally(files, version) for version in versions)
        tally = StoreTally(operator.id, store.name, tallies)
    return StoreSurvey(
        query=query.prefix,
        operator=operator.id,
        operator_name=operator.name,
        provider=operator.provider,
        store=store.name,
        stored=tuple(files.size_of(folder) for folder in folders),
        tally=tally,
        unread=unread,
    )


def _tally(files: SavepointFiles, version: StoreVersion) -> Tally:
    tally = Tally()
    for _ in tally.through(read_store(files, version)):
        pass
    return tally
