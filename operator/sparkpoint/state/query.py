"""Looking at the rows of one store of a savepoint: all of them, by a condition, or by SQL.

State of the HDFS-backed provider is read out of the repository. What only Spark reads is restored
to a throw-away folder, written to Parquet by a Spark process, and looked at from there; the folder
is removed whatever happens.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sparkpoint.savepoint import Progress, Repository, Savepoint
from sparkpoint.savepoint.leases import hold_to_read
from sparkpoint.savepoint.manifest import OperatorInfo, QueryInfo
from sparkpoint.savepoint.progress import Amount, Silent
from sparkpoint.state.arrow import (
    arrow_library,
    arrow_schema,
    batches,
    column_paths,
    limited,
    no_rows,
    objects,
    parquet_batches,
    record_batches,
    store_batches,
    write_parquet,
)
from sparkpoint.state.errors import BadQueryError, WorkFolderError
from sparkpoint.state.hdfsrows import HdfsStore, Key, StateRow, open_store, unreadable
from sparkpoint.state.lookup import key_of_condition, partition_of_key
from sparkpoint.state.plain import Plain, plain_object, plain_row
from sparkpoint.state.selection import Selection, chosen_operator, chosen_store
from sparkpoint.state.sparkcopy import Wanted, exported, spark_room
from sparkpoint.state.sql import check_sql, may_read_again, selecting, sql_batches
from sparkpoint.state.survey import SavepointFiles
from sparkpoint.state.types import ColumnPath, StoreSchema
from sparkpoint.state.views import known_views
from sparkpoint.state.workfolder import work_folder

__all__ = ["QueryRequest", "Rows", "StateRows", "query_state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """What to look at, and which rows of it."""

    selection: Selection = field(default_factory=Selection)
    where: str | None = None
    sql: str | None = None
    limit: int | None = None
    work_folder: Path | None = None
    """Where a copy is made if Spark must read it; the system's place for such if None."""

    @property
    def statement(self) -> str | None:
        """The SQL to run; None if all rows are wanted as they are."""
        return self.sql if self.where is None else selecting(self.where)


@dataclass(frozen=True, slots=True)
class Rows:
    """Column -> value, as text and JSON can hold it; to be gone through once."""

    columns: tuple[ColumnPath, ...]
    """Also of no rows at all. Those of a struct are columns of their own."""
    each: Iterator[dict[str, Plain]]

    def __iter__(self) -> Iterator[dict[str, Plain]]:
        return self.each


class _Source(Protocol):
    def rows(self) -> Rows: ...
    def batches(self) -> Iterator[Any]: ...


@dataclass(frozen=True, slots=True)
class StateRows:
    """Rows of one store, to be gone through once, one way or the other."""

    query: str
    operator: OperatorInfo
    store: str
    by_spark: bool
    """Whether Spark has read them."""
    _source: _Source

    def rows(self) -> Rows:
        """For people, and for whoever reads text."""
        return self._source.rows()

    def batches(self) -> Iterator[Any]:
        """Arrow's batches of typed columns; at least one, which may have no rows."""
        return self._source.batches()


@contextmanager
def query_state(
    repository: Repository,
    savepoint: Savepoint,
    request: QueryRequest,
    *,
    progress: Progress | None = None,
) -> Iterator[StateRows]:
    """The rows that are asked for; they can be read until the context ends."""
    progress, manifest = progress or Silent(), savepoint.manifest
    if request.where is not None and request.sql is not None:
        raise BadQueryError("a condition and SQL were given: give one of the two.")
    if "" in (request.where and request.where.strip(), request.sql and request.sql.strip()):
        raise BadQueryError("the condition or SQL is empty: leave it out for all rows.")
    if request.statement is not None:
        _check_text(request.statement)
        check_sql(request.statement)
    query, operator = chosen_operator(manifest, request.selection)
    purpose, pins = f"query state of {savepoint.key}", [manifest.files.table]
    with hold_to_read(repository.store, purpose, pins=pins, progress=progress):
        records = repository.files(savepoint).files
        files = SavepointFiles(repository.store, records, prefix=query.prefix)
        views = {view.name: view for view in known_views(files, query, operator)}
        of = f"operator {operator.id} ({operator.name or 'unnamed'})"
        name = chosen_store(list(views), request.selection.store, of=of)
        by_spark = unreadable(operator, query, files) is not None
        store = None if by_spark else open_store(files, query, operator, name)
        room = _room(request, store) if store else spark_room(manifest)
        with work_folder(request.work_folder, room=room) as folder:
            if store is None:
                wanted = Wanted(repository, savepoint, query, views[name])
                source = _by_spark(wanted, request, folder, progress)
            else:
                one = _one_key(request, query, operator, name, store.schema)
                source = _by_us(store, request, folder, progress, one)
            yield StateRows(query.prefix, operator, name, by_spark, source)


def _room(request: QueryRequest, store: HdfsStore) -> int:
    """Bytes for the rows, where SQL may go through them more than once: about what they take."""
    if request.statement is None or not may_read_again(request.statement):
        return 0
    return store.bytes


def _check_text(statement: str) -> None:
    """A command line may hold any bytes; those that are no text become halves of characters."""
    try:
        statement.encode()
    except UnicodeEncodeError as error:
        raise BadQueryError("the condition or SQL is not text in UTF-8.") from error


def _by_spark(
    wanted: Wanted,
    request: QueryRequest,
    folder: Path,
    progress: Progress,
) -> _Source:
    arrow_library("state that only Spark reads")
    (files,) = exported([wanted], folder=folder, pairs=False, progress=progress)
    if (sql := request.statement) is None:
        return _Batches(lambda: limited(parquet_batches(files), request.limit))
    return _Batches(lambda: sql_batches(files, sql, limit=request.limit, scratch=folder))


def _one_key(
    request: QueryRequest, query: QueryInfo, operator: OperatorInfo, name: str, schema: StoreSchema
) -> Key | None:
    """The key that the condition names, if it names one and no other."""
    row = key_of_condition(request.where, schema.shown.key) if request.where else None
    if row is None:
        return None
    return Key(row, partition_of_key(row, query, operator, store=name, schema=schema))


def _by_us(
    store: HdfsStore,
    request: QueryRequest,
    folder: Path,
    progress: Progress,
    one: Key | None,
) -> _Source:
    count = len(store.versions)
    progress.start("state", Amount(count, store.bytes))
    share = Amount(1, store.bytes // max(1, count))

    def done(_: int) -> None:
        progress.advance(share)

    if (sql := request.statement) is None:
        return _Decoded(store, lambda: itertools.islice(store.rows(done), request.limit))
    arrow = arrow_library("a condition or SQL")
    schema = arrow_schema(arrow, store.schema)

    def answered() -> Iterator[Any]:
        if one is not None:
            rows = record_batches(arrow, store.schema, store.one(one, done))
        else:
            rows = store_batches(arrow, store, done)
        source: Any = arrow.RecordBatchReader.from_batches(schema, rows)
        if may_read_again(sql):
            source = _kept(itertools.chain([no_rows(schema)], rows), folder)
        return sql_batches(source, sql, limit=request.limit, scratch=folder)

    return _Batches(answered)


def _kept(batches: Iterator[Any], folder: Path) -> Path:
    """All of them in a file that can be read again."""
    place = folder / "rows"
    try:
        place.mkdir()
        write_parquet(batches, place / "all.parquet")
    except OSError as error:
        raise WorkFolderError(
            f"{place} cannot hold the rows: {error.strerror}. Give another folder with --work-dir."
        ) from error
    return place


@dataclass(frozen=True, slots=True)
class _Decoded:
    """Rows that we have read."""

    store: HdfsStore
    read: Callable[[], Iterator[StateRow]]

    def rows(self) -> Rows:
        shown = self.store.schema.shown
        rows = (_plain(row, shown) for row in self.read())
        return Rows(tuple(shown.paths()), rows)

    def batches(self) -> Iterator[Any]:
        arrow = arrow_library("Parquet")
        return batches(arrow, arrow_schema(arrow, self.store.schema), self.read())


def _plain(row: StateRow, shown: StoreSchema) -> dict[str, Plain]:
    return {
        "key": plain_row(row.key, shown.key),
        "value": plain_row(row.value, shown.value),
        "partition_id": row.partition,
    }


@dataclass(frozen=True, slots=True)
class _Batches:
    """Rows that come as Arrow's batches."""

    read: Callable[[], Iterator[Any]]

    def rows(self) -> Rows:
        several = self.read()
        first = next(several)
        rows = (
            {str(name): plain_object(value) for name, value in row.items()}
            for batch in itertools.chain([first], several)
            for row in objects(batch)
        )
        return Rows(tuple(column_paths(first.schema)), rows)

    def batches(self) -> Iterator[Any]:
        return self.read()
