"""The state files of one operator at one version: a chain for every store of every partition."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from sparkpoint.checkpoint.ancestry import Ancestry, StoreTask, read_ancestry
from sparkpoint.checkpoint.chains import Chain, choose_chain, file_name, reuse_chain
from sparkpoint.checkpoint.endings import is_stream
from sparkpoint.checkpoint.errors import DamagedError, UnknownFormatError
from sparkpoint.checkpoint.layout import StoreFiles
from sparkpoint.checkpoint.lineage import LONGEST_LINEAGE, REWRITABLE
from sparkpoint.checkpoint.model import CommitEntry, PlannedFile, Role
from sparkpoint.checkpoint.names import DECODABLE, Kind, versioned_name
from sparkpoint.checkpoint.reader import BatchReader
from sparkpoint.checkpoint.zips import Snapshot, parse_zip

__all__ = ["PlannedStore", "plan_stores"]


@dataclass(slots=True)
class PlannedStore:
    """The outcome for one store of one partition."""

    base: int = 0
    files: list[tuple[int, PlannedFile]] = field(default_factory=list)
    """(version, file): the version is what maintenance purges by."""
    missing: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    """Those of the warnings that are about what is taken."""
    lent: list[str] = field(default_factory=list)
    """What the checkpoint has lost, and the parent savepoint holds."""
    rows: int | None = None
    """If a snapshot tells, and nothing came after it."""


def plan_stores(
    tasks: Iterable[StoreTask],
    *,
    commit: CommitEntry,
    provider: str,
    codec: str,
    reader: BatchReader,
    older: Mapping[int, CommitEntry],
    max_chain: int,
    families_since: int = 0,
    as_stored: bool = False,
) -> list[PlannedStore]:
    """Plan every store; reads changelog heads and snapshots only where they decide something."""
    todo, version = list(tasks), commit.batch + 1
    ancestry = read_ancestry(
        todo,
        version=version,
        provider=provider,
        codec=codec,
        reader=reader,
        older=older,
        oldest_base=max(version - max_chain, families_since),
        as_stored=as_stored,
    )
    own = partial(_own_chain, version=version, provider=provider, families_since=families_since)
    known = [_ids(ancestry.get(t.folder), as_stored=as_stored) for t in todo]
    chains = [
        _reused(t, version, provider, codec, ancestry.get(t.folder), max_chain, families_since)
        or own(t.files, ids=ids)
        for t, ids in zip(todo, known, strict=True)
    ]
    if codec != DECODABLE and any("*" in name for chain in chains for name in chain.missing):
        raise UnknownFormatError(
            f"state in format 2 compressed with {codec}: the commit log no longer tells the "
            "lineage back to a snapshot, a version was written twice since, and only lz4 "
            "changelogs can be read to tell which counts. "
            "Let the query upload a snapshot, or keep more batches."
        )
    zips = [
        f"{task.folder}/{chain.base_name}"
        for task, chain in zip(todo, chains, strict=True)
        if provider == "rocksdb" and chain.base_name and not chain.reused
    ]
    snapshots = reader.map(zips, parse_zip)
    planned = [
        _planned(task, chain, snapshots.get(f"{task.folder}/{chain.base_name}"))
        for task, chain in zip(todo, chains, strict=True)
    ]
    for task, ids, chain, store in zip(todo, known, chains, planned, strict=True):
        if held := [file.path for _, file in store.files if file.held]:
            alone = own(replace(task.files, held={}), ids=ids)
            store.lent = held if _is_lost(task, chain, alone) else []
    return planned


def _own_chain(
    files: StoreFiles,
    *,
    version: int,
    provider: str,
    ids: Mapping[int, str] | None,
    families_since: int,
) -> Chain:
    return choose_chain(files, version, provider=provider, ids=ids, families_since=families_since)


def _is_lost(task: StoreTask, chain: Chain, alone: Chain) -> bool:
    """Whether the checkpoint could not do without the parent's files: Spark has not purged them.

    `alone` is the chain that it has by itself. Of a snapshot of RocksDB that the parent starts
    from, too, all files are known.
    """
    same = alone.base_name is not None and alone.base_name == chain.base_name
    shared = [name for name in task.files.held if "/" in name] if same else []
    return bool(alone.missing) or any(name not in task.files.live for name in shared)


def _ids(known: Ancestry | None, *, as_stored: bool) -> Mapping[int, str] | None:
    if known is None:
        return None
    return known.all if as_stored else known.told


def _reused(
    task: StoreTask,
    version: int,
    provider: str,
    codec: str,
    known: Ancestry | None,
    max_chain: int,
    families_since: int,
) -> Chain | None:
    chain = reuse_chain(
        task.files,
        version,
        provider=provider,
        ids=known.all if known else None,
        max_chain=max_chain,
        families_since=families_since,
    )
    unfit = chain and known and not _can_be_found(task, chain, known, codec)
    return None if unfit else chain


def _can_be_found(task: StoreTask, chain: Chain, known: Ancestry, codec: str) -> bool:
    """Whether Spark finds the chain's base by the lineage in the last changelog.

    If need be, that is after a restore has rewritten it: see `lineage.rewrite_lineage`.
    """
    if codec != DECODABLE:
        # Nobody here can tell what the changelog says, only that no snapshot made it say less.
        names = (name for file in task.files.live if (name := versioned_name(file)))
        return not any(name.kind is Kind.ZIP and name.version > chain.base for name in names)
    if max(chain.base, 1) in known.told:
        return True
    last = chain.changes[-1][1]
    size = task.files.live[last].size if last in task.files.live else task.files.held[last]
    return size <= REWRITABLE and len(chain.changes) <= LONGEST_LINEAGE


def _planned(task: StoreTask, chain: Chain, snapshot: Snapshot | None) -> PlannedStore:
    store = PlannedStore(base=chain.base)
    store.rows = snapshot.rows if snapshot and not chain.changes else None
    store.missing = [f"{task.folder}/{name}" for name in chain.missing]
    store.doubts = [chain.doubt] if chain.doubt else []
    store.warnings = [*store.doubts, *([chain.avoided] if chain.avoided else [])]
    wanted = [(chain.base, name) for name in _base_names(task, chain, snapshot)]
    wanted += chain.changes
    wanted += _head_change(task, chain)
    for version, name in wanted:
        _take(store, task, version, name)
        # Sidecars of format 2: Spark checks the file against them when they are there. A changelog
        # that a restore has rewritten has none, and the parent's would not fit it.
        beside = task.files.live if name in task.files.live else task.files.held
        if f"{name}.crc" in beside:
            _take(store, task, version, f"{name}.crc")
    return store


def _base_names(task: StoreTask, chain: Chain, snapshot: Snapshot | None) -> list[str]:
    if chain.base_name is None:
        return []
    if chain.reused:
        # The parent's set was minimal, so all it holds besides versions belongs to its base.
        return [chain.base_name, *sorted(name for name in task.files.held if "/" in name)]
    if snapshot is None:
        return [chain.base_name]
    path = f"{task.folder}/{chain.base_name}"
    for file in snapshot.files:
        listed = task.files.live.get(file.path)
        if listed is not None and listed.size != file.size:
            raise DamagedError(
                f"{task.folder}/{file.path} has {listed.size} bytes, but {path} says {file.size}. "
                "It is truncated: restore an older savepoint."
            )
    return [chain.base_name, *(file.path for file in snapshot.files)]


def _head_change(task: StoreTask, chain: Chain) -> list[tuple[int, str]]:
    """In format 2, older Spark opens the version's own changelog even next to its snapshot."""
    base = versioned_name(chain.base_name) if chain.base_name else None
    if chain.changes or base is None or base.unique_id is None:
        return []
    name = file_name(base.version, Kind.CHANGELOG.value, {base.version: base.unique_id})
    return [(base.version, name)] if name and name in task.files.live else []


def _take(store: PlannedStore, task: StoreTask, version: int, name: str) -> None:
    path, live = f"{task.files.folder}/{name}", task.files.live.get(name)
    if live is None:
        held = task.files.held.get(name)
        if held is None:
            store.missing.append(path)
        else:
            store.files.append((version, PlannedFile(path, held, "", Role.STATE, held=True)))
        return
    if not live.size and is_stream(path):
        raise DamagedError(f"{path} is empty. Restore an older savepoint.")
    store.files.append((version, PlannedFile(path, live.size, live.stamp, Role.STATE)))
