"""What differs between the state of two savepoints: keys added, removed and changed, per store.

Stores are matched by query, operator and name. Where both sides are read by us and have the same
columns, rows are compared as the bytes that they are; else as the documents that they print as,
so that a savepoint can be compared with its migration to another provider.
"""

import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from sparkpoint.savepoint import Progress, Repository, Savepoint
from sparkpoint.savepoint.leases import hold_to_read
from sparkpoint.savepoint.manifest import OperatorInfo, QueryInfo
from sparkpoint.savepoint.progress import Amount, Silent
from sparkpoint.state.arrow import arrow_library, objects, parquet_batches
from sparkpoint.state.buckets import (
    Difference,
    Totals,
    buckets_for,
    counted,
    differences,
    room_for,
)
from sparkpoint.state.errors import NoSuchStateError
from sparkpoint.state.hdfsrows import HdfsStore, open_store, unreadable
from sparkpoint.state.plain import Plain, plain_object, plain_row
from sparkpoint.state.records import Record
from sparkpoint.state.selection import Selection, operators
from sparkpoint.state.sparkcopy import Wanted, exported, spark_room
from sparkpoint.state.survey import SavepointFiles
from sparkpoint.state.types import Column
from sparkpoint.state.unsafe import decode_row
from sparkpoint.state.views import StateView, known_views
from sparkpoint.state.workfolder import work_folder

__all__ = ["Change", "DiffRequest", "StoreDiff", "diff_state"]

_NUMBERED = "-keyWithIndexToValue"
_ROWS_OF_JOINS = (_NUMBERED, "-keyWithTsToValues", "-tsWithKey")

_SAME_STATE = {"StatefulStreamlineAggregate": "stateStoreSave"}
"""What an aggregation is in Spark's real-time mode -> the operator that takes over its state, and
whose state it takes over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest:
    """What to compare."""

    selection: Selection = field(default_factory=Selection)
    samples: int = 5
    """Of each kind and store: those with the smallest keys."""
    work_folder: Path | None = None
    unnumbered: bool = False
    """Rows that joins keep are compared without the numbers that these give them, which are others
    each time: how often each occurs."""


@dataclass(frozen=True, slots=True)
class Change:
    """A key that differs, readable."""

    query: str
    operator: int
    store: str
    key: Plain
    before: Plain
    after: Plain
    kind: str
    """`added`, `removed` or `changed`."""


@dataclass(frozen=True, slots=True)
class StoreDiff:
    """One store of both savepoints."""

    query: str
    operator: int
    operator_name: str | None
    store: str
    totals: Totals
    samples: tuple[Change, ...]
    missing: str | None = None
    """`before` or `after`, if only the other savepoint has such a store."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One store of one savepoint."""

    repository: Repository
    savepoint: Savepoint
    query: QueryInfo
    operator: OperatorInfo
    view: StateView
    ours: HdfsStore | None
    """None: only Spark reads it."""

    @property
    def stored(self) -> int:
        """Bytes of its files; a view is at most all of its operator."""
        return self.ours.bytes if self.ours else sum(s.bytes for s in self.operator.stores)


_Pair = tuple[_Side | None, _Side | None]
_Key = tuple[str, int, str]
_Pairs = list[tuple[_Key, _Pair]]
_Show = Callable[[bytes], Plain]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a store in a form that can be compared, and how to read that form."""

    records: Callable[[], Iterator[Record]]
    show_key: _Show
    show_value: _Show


_Both = tuple[_Rows, _Rows]


def diff_state(
    repository: Repository,
    before: Savepoint,
    after: Savepoint,
    request: DiffRequest,
    *,
    of_after: Repository | None = None,
    take: Callable[[Change], None] | None = None,
    progress: Progress | None = None,
) -> list[StoreDiff]:
    """Compare them; `take` gets every key that differs, as it is found.

    `of_after`: the repository of the second savepoint, where it is another one.
    """
    progress = progress or Silent()
    with ExitStack() as stack:
        sides = []
        for where, each in ((repository, before), (of_after or repository, after)):
            pins = [each.manifest.files.table]
            purpose = f"diff state of {each.key}"
            held = hold_to_read(where.store, purpose, pins=pins, progress=progress)
            stack.enter_context(held)
            sides.append(_sides(where, each, request.selection))
        pairs = list(_paired(*sides))
        if not pairs:
            raise NoSuchStateError(
                f"neither {before.manifest.name} nor {after.manifest.name} holds such state."
            )
        by_spark = [s.savepoint.manifest for _, p in pairs for s in p if s and not s.ours]
        room = spark_room(*{m.files.table: m for m in by_spark}.values())
        room += max(room_for(_stored(pair)) for _, pair in pairs)
        folder = stack.enter_context(work_folder(request.work_folder, room=room))
        rows = _rows_of(pairs, folder, progress)
        progress.start("comparing", Amount(len(pairs), sum(_stored(pair) for _, pair in pairs)))
        found = []
        for number, ((key, pair), read) in enumerate(zip(pairs, rows, strict=True)):
            stored = _stored(pair)
            comparing = _Comparing(key, request.samples, take)
            spill = folder / f"buckets-{number}"
            if request.unnumbered and key[-1].endswith(_ROWS_OF_JOINS):
                read, comparing.gather = _unnumbered(key[-1], read), counted
            found.append(comparing.compared(pair, read, buckets_for(stored), spill))
            progress.advance(Amount(1, stored))
    return found


def _sides(repository: Repository, savepoint: Savepoint, selection: Selection) -> dict[_Key, _Side]:
    """Every store of a savepoint that is meant; none, if it has no such state."""
    try:
        chosen = operators(savepoint.manifest, selection)
    except NoSuchStateError:
        if selection != Selection():
            raise
        return {}
    records = repository.files(savepoint).files
    found: dict[_Key, _Side] = {}
    for query, operator in chosen:
        files = SavepointFiles(repository.store, records, prefix=query.prefix)
        ours = unreadable(operator, query, files) is None
        for view in known_views(files, query, operator):
            if selection.store in (None, view.name):
                store = open_store(files, query, operator, view.name) if ours else None
                side = _Side(repository, savepoint, query, operator, view, store)
                found[query.prefix, operator.id, view.name] = side
    return found


def _paired(before: dict[_Key, _Side], after: dict[_Key, _Side]) -> Iterator[tuple[_Key, _Pair]]:
    """Every store of both; another kind of operator under the same number is another one."""
    for key in dict.fromkeys([*before, *after]):
        one, other = before.get(key), after.get(key)
        called = (side.operator.name for side in (one, other) if side and side.operator.name)
        names = {_SAME_STATE.get(name, name) for name in called}
        if len(names) > 1:
            yield key, (one, None)
            yield key, (None, other)
        else:
            yield key, (one, other)


def _stored(pair: _Pair) -> int:
    return sum(side.stored for side in pair if side)


def _rows_of(pairs: _Pairs, folder: Path, progress: Progress) -> list[_Both]:
    """How to read each side; what only Spark reads is read by it now, all at once."""
    spark = [side for _, pair in pairs for side in pair if side and side.ours is None]
    folders: dict[int, Path] = {}
    if spark:
        arrow_library("state that only Spark reads")
        wanted = [Wanted(s.repository, s.savepoint, s.query, s.view) for s in spark]
        read = exported(wanted, folder=folder, pairs=True, progress=progress)
        folders = {id(side): path for side, path in zip(spark, read, strict=True)}
    return [_both(pair, folders) for _, pair in pairs]


def _both(pair: _Pair, folders: dict[int, Path]) -> _Both:
    stores = [side.ours for side in pair if side]
    schemas = {store.schema for store in stores if store}
    as_bytes = None not in stores and len(schemas) == 1
    first, second = (_read(side, folders, as_bytes=as_bytes) for side in pair)
    return first, second


def _read(side: _Side | None, folders: dict[int, Path], *, as_bytes: bool) -> _Rows:
    if side is None:
        return _Rows(lambda: iter(()), _parsed, _parsed)
    store = side.ours
    if store is None:
        return _Rows(lambda: _documents(folders[id(side)]), _parsed, _parsed)
    shown = store.schema.shown
    key, value = shown.key, shown.value
    if as_bytes:
        return _Rows(store.records, lambda raw: _shown(raw, key), lambda raw: _shown(raw, value))
    return _Rows(
        lambda: (
            (_canonical(plain_row(row.key, key)), _canonical(plain_row(row.value, value)))
            for row in store.rows()
        ),
        _parsed,
        _parsed,
    )


def _unnumbered(store: str, rows: _Both) -> _Both:
    """Key and value together, without the number that is the last column of the key."""

    def without(side: _Rows) -> _Rows:
        def records() -> Iterator[Record]:
            for raw_key, raw_value in side.records():
                key, value = side.show_key(raw_key), side.show_value(raw_value)
                if isinstance(key, dict) and store.endswith(_NUMBERED):
                    key = dict(list(key.items())[:-1])
                yield _canonical({"key": key, "value": value}), b""

        return _Rows(records, _parsed, _parsed)

    before, after = rows
    return without(before), without(after)


def _shown(raw: bytes, columns: Iterable[Column]) -> Plain:
    columns = tuple(columns)
    return dict(plain_row(decode_row(raw, columns), columns)) or None


def _documents(folder: Path) -> Iterator[Record]:
    for batch in parquet_batches(folder):
        for row in objects(batch):
            key, value = plain_object(row["key"]), plain_object(row["value"])
            yield _canonical(key), _canonical(value)


def _canonical(value: Plain) -> bytes:
    """The same text for the same value; a struct of nothing is nothing, as Parquet has it."""
    return json.dumps(
        value or None if isinstance(value, dict) else value, ensure_ascii=False
    ).encode()


def _parsed(text: bytes) -> Plain:
    content: Plain = json.loads(text)
    return content


class _Comparing:
    """Compares one store."""

    def __init__(self, key: _Key, samples: int, take: Callable[[Change], None] | None) -> None:
        self._key, self._most, self._take = key, samples, take
        self._samples: dict[str, list[tuple[bytes, Difference]]] = {}
        self.gather: Callable[[Iterable[Record]], Iterable[Record]] = iter

    def compared(self, pair: _Pair, rows: _Both, buckets: int, folder: Path) -> StoreDiff:
        """Go through all of it."""
        before, after = rows
        totals = Totals()
        found = differences(
            before.records(),
            after.records(),
            totals=totals,
            buckets=buckets,
            folder=folder,
            gather=self.gather,
        )
        for difference in found:
            self._keep(difference)
            if self._take is not None:
                self._take(self._change(difference, rows))
        kept = [each for kind in sorted(self._samples) for each in self._smallest(kind)]
        operator = next(side.operator for side in pair if side)
        query, number, name = self._key
        return StoreDiff(
            query=query,
            operator=number,
            operator_name=operator.name,
            store=name,
            totals=totals,
            samples=tuple(self._change(each, rows) for each in kept),
            missing="before" if pair[0] is None else "after" if pair[1] is None else None,
        )

    def _keep(self, difference: Difference) -> None:
        """Remember the smallest keys of each kind: the same ones whatever order they come in."""
        kept = self._samples.setdefault(_kind(difference), [])
        kept.append((difference.key, difference))
        if len(kept) > 2 * self._most + 16:
            kept[:] = heapq.nsmallest(self._most, kept, key=lambda each: each[0])

    def _smallest(self, kind: str) -> list[Difference]:
        kept = self._samples[kind]
        return [d for _, d in heapq.nsmallest(self._most, kept, key=lambda each: each[0])]

    def _change(self, difference: Difference, rows: _Both) -> Change:
        before, after = rows
        old, new = difference.before, difference.after
        side = before if new is None else after
        query, number, name = self._key
        return Change(
            query,
            number,
            name,
            key=side.show_key(difference.key),
            before=None if old is None else before.show_value(old),
            after=None if new is None else after.show_value(new),
            kind=_kind(difference),
        )


def _kind(difference: Difference) -> str:
    if difference.before is None:
        return "added"
    return "removed" if difference.after is None else "changed"
