"""Repartition: the state of one query, spread over another number of partitions.

Works on a copy of a checkpoint that nobody else uses, and changes it in place; who wants the
original back throws the copy away. Keys and values pass through as bytes; only where they are
changes. Every row is compared with Spark's rule for its place before it is moved, and read again
afterwards: rows, digest and placement must be right, or the copy is not to be used.
"""

import itertools
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.checkpoint.layout import store_folder
from sparkpoint.checkpoint.model import BatchPlan
from sparkpoint.checkpoint.plan import plan_batch
from sparkpoint.savepoint.progress import Amount, Progress, Silent
from sparkpoint.state.errors import MisplacedStateError, UnfaithfulError, UnsupportedStateError
from sparkpoint.state.pinned import with_partitions, with_store_partitions
from sparkpoint.state.querystate import PlacedStore, placed_stores, refusal_to_move
from sparkpoint.state.records import Record, read_store
from sparkpoint.state.snapshots import SnapshotWriter
from sparkpoint.state.tally import StoreTally, Tally
from sparkpoint.storage import DirectoryStore

__all__ = ["MovedStore", "repartition_query"]

_NEW = ".sparkpoint-moved"
"""Where new snapshots grow, beside the state that they replace."""
_TOGETHER = 4096
"""Rows whose keys are hashed at once."""


@dataclass(frozen=True, slots=True)
class MovedStore:
    """One store, before and after."""

    operator_name: str | None
    before: StoreTally
    after: StoreTally


def repartition_query(
    root: Path, *, partitions: int, progress: Progress | None = None
) -> list[MovedStore]:
    """Spread the state of the query whose checkpoint is at `root`, a copy of nobody else's."""
    copy, progress = DirectoryStore(root), progress or Silent()
    plan = plan_batch(copy)
    stores = _stores(copy, plan)
    # All types are looked at before the first row is written.
    for store in stores:
        store.placement.hasher()
    size = sum(s.bytes for operator in plan.operators for s in operator.stores)
    progress.start("repartition", Amount(len(stores), size))
    before = [_spread(copy, store, root / _NEW, partitions, progress) for store in stores]
    _replace(root, plan, stores, partitions)
    _pin(root, plan, partitions)
    after = _read_again(copy, partitions)
    return [_compared(*pair) for pair in zip(stores, before, after, strict=True)]


def _stores(copy: DirectoryStore, plan: BatchPlan) -> list[PlacedStore]:
    for operator in plan.operators:
        reason = refusal_to_move(operator, plan.offsets.conf)
        if reason is not None:
            raise UnsupportedStateError(
                f"the state of operator {operator.id} ({operator.name or 'unnamed'}) cannot be "
                f"repartitioned here: {reason}."
            )
    if plan.commit.state_ids:
        raise UnsupportedStateError("the commit log names files of the HDFS-backed provider by id.")
    version = plan.batch + 1
    return [
        store
        for operator in plan.operators
        for store in placed_stores(operator, version=version, read=copy.read)
    ]


def _spread(
    copy: DirectoryStore, store: PlacedStore, target: Path, partitions: int, progress: Progress
) -> StoreTally:
    """Write the rows of a store to where they belong; what was read."""
    wanted = store.placement.partitions(partitions)
    version = store.partitions[0].version
    folders = (store_folder(store.operator.id, number, store.name) for number in range(wanted))
    writer = SnapshotWriter([target / folder / f"{version}.snapshot" for folder in folders])
    tallies = []
    for number in range(len(store.partitions)):
        tally = Tally()
        for place, key, value in _placed(copy, store, number, tally, MisplacedStateError):
            writer.add(place % wanted, key, value)
        tallies.append(tally)
    writer.finish()
    progress.advance(Amount(1, _stored(store)))
    return StoreTally(store.operator.id, store.name, tuple(tallies))


def _stored(store: PlacedStore) -> int:
    return next(s.bytes for s in store.operator.stores if s.name == store.name)


def _placed(
    copy: DirectoryStore,
    store: PlacedStore,
    number: int,
    tally: Tally,
    refusal: type[MisplacedStateError] | type[UnfaithfulError],
) -> Iterator[tuple[int, bytes, bytes]]:
    """The rows of one partition with their hashes; each must belong there."""
    hashed, count = store.placement.hasher(), len(store.partitions)
    part = store.partitions[number]
    records: Iterator[Record] = tally.through(read_store(copy, part))
    while batch := list(itertools.islice(records, _TOGETHER)):
        try:
            places = hashed([key for key, _ in batch])
        except (struct.error, IndexError) as error:
            raise DamagedError(
                f"{part.folder} holds a key that does not fit its schema."
            ) from error
        for place, (key, value) in zip(places, batch, strict=True):
            if place % count != number:
                raise refusal(
                    f"{part.folder} holds a key that belongs to partition {place % count} of "
                    f"{count}. Spark has placed it by a rule that is not known here, or state was "
                    "moved by hand. It cannot be repartitioned."
                )
            yield place, key, value


def _replace(root: Path, plan: BatchPlan, stores: list[PlacedStore], partitions: int) -> None:
    """Put the new snapshots in the place of the old files; schemas stay in partition 0."""
    for file in {path for store in stores for path in _old_files(root, store)}:
        file.unlink()
    for operator in plan.operators:
        for number in range(partitions, operator.partitions):
            shutil.rmtree(root / store_folder(operator.id, number, "default"))
    for new in sorted((root / _NEW).rglob("*.snapshot")):
        target = root / new.relative_to(root / _NEW)
        target.parent.mkdir(parents=True, exist_ok=True)
        new.rename(target)
    shutil.rmtree(root / _NEW, ignore_errors=True)


def _old_files(root: Path, store: PlacedStore) -> Iterator[Path]:
    for part in store.partitions:
        yield from (root / part.folder).glob("[0-9]*.snapshot")
        yield from (root / part.folder).glob("[0-9]*.delta")


def _pin(root: Path, plan: BatchPlan, partitions: int) -> None:
    """Let the logs say the new number."""
    for path in sorted((root / "offsets").iterdir()):
        name = f"offsets/{path.name}"
        path.write_bytes(with_partitions(path.read_bytes(), name, partitions=partitions))
    for operator in plan.operators:
        name = f"state/{operator.id}/_metadata/metadata"
        if operator.metadata_version is not None:
            data = (root / name).read_bytes()
            (root / name).write_bytes(with_store_partitions(data, name, partitions=partitions))


def _read_again(copy: DirectoryStore, partitions: int) -> list[StoreTally]:
    """What the copy holds now, read as if it were anybody's."""
    plan = plan_batch(copy)
    stores = _stores(copy, plan)
    return [_audited(copy, store, partitions) for store in stores]


def _audited(copy: DirectoryStore, store: PlacedStore, partitions: int) -> StoreTally:
    if len(store.partitions) != store.placement.partitions(partitions):
        raise UnfaithfulError(
            f"operator {store.operator.id} has {len(store.partitions)} partitions now, "
            f"not {partitions}. Nothing was published."
        )
    tallies = []
    for number in range(len(store.partitions)):
        tally = Tally()
        for _ in _placed(copy, store, number, tally, UnfaithfulError):
            pass
        tallies.append(tally)
    return StoreTally(store.operator.id, store.name, tuple(tallies))


def _compared(store: PlacedStore, before: StoreTally, after: StoreTally) -> MovedStore:
    if (before.rows, before.digest) != (after.rows, after.digest):
        raise UnfaithfulError(
            f"store {store.name} of operator {store.operator.id} had {before.rows} rows and has "
            f"{after.rows} now, or other ones. Nothing was published."
        )
    return MovedStore(store.operator.name, before, after)
