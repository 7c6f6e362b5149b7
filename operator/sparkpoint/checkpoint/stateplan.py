"""The state files of one operator at one version: a chain for every store of every partition."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sparkpoint.checkpoint.chains import Chain, choose_chain, file_name, held_base, reuse_chain
from sparkpoint.checkpoint.errors import DamagedError, UnknownFormatError
from sparkpoint.checkpoint.layout import StoreFiles, store_folder
from sparkpoint.checkpoint.lineage import HEAD_BYTES, lineage_of_changelog
from sparkpoint.checkpoint.model import CommitEntry, PlannedFile, Role
from sparkpoint.checkpoint.names import Kind, versioned_name
from sparkpoint.checkpoint.reader import BatchReader
from sparkpoint.checkpoint.zips import SnapshotFile, parse_zip

__all__ = ["PlannedStore", "StoreTask", "commit_lineage", "plan_stores"]

_DECODABLE = "lz4"


@dataclass(slots=True)
class PlannedStore:
    """The outcome for one store of one partition."""

    base: int = 0
    files: list[tuple[int, PlannedFile]] = field(default_factory=list)
    """(version, file): the version is what maintenance purges by."""
    missing: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class StoreTask:
    """One store of one partition, and what is known about the version to load."""

    operator: int
    partition: int
    name: str
    files: StoreFiles
    unique_ids: tuple[str, ...] = ()
    """Ids that the commit names for this partition, one of them this store's; empty in format 1."""

    @property
    def folder(self) -> str:
        """The store's folder in the checkpoint."""
        return store_folder(self.operator, self.partition, self.name)


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
) -> list[PlannedStore]:
    """Plan every store; reads changelog heads and snapshots only where they decide something."""
    todo, version = list(tasks), commit.batch + 1
    lineages = _lineages(todo, version, provider, codec, reader, older)
    chains = [
        _chain(t, version, provider, lineages.get(t.folder), max_chain, families_since)
        for t in todo
    ]
    if codec != _DECODABLE and any("*" in name for chain in chains for name in chain.missing):
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
    return [
        _planned(task, chain, snapshots.get(f"{task.folder}/{chain.base_name}"))
        for task, chain in zip(todo, chains, strict=True)
    ]


def commit_lineage(
    task: StoreTask, older: Mapping[int, CommitEntry], *, version: int
) -> dict[int, str]:
    """version -> unique id told by the commit log, back from `version` while it is unbroken."""
    lineage: dict[int, str] = {}
    for v in range(version, 0, -1):
        commit = older.get(v - 1)
        partitions = commit.state_ids.get(task.operator, ()) if commit else ()
        if task.partition >= len(partitions):
            break
        uid = _id_of_store(task, v, [i for store in partitions[task.partition] for i in store])
        if uid is None:
            break
        lineage[v] = uid
    return lineage


def _unrivalled(files: StoreFiles, *, below: int) -> dict[int, str]:
    """version -> its only unique id in the folder, down from `below` while there is exactly one.

    A committed version has its files until a newer snapshot replaces them, so without a rival the
    id is the committed one. A savepoint keeps two commits only, and no rivals: this tells the rest.
    """
    found: dict[int, set[str]] = {}
    for file in (*files.live, *files.held):
        name = versioned_name(file)
        if name is not None and name.unique_id is not None:
            found.setdefault(name.version, set()).add(name.unique_id)
    lineage: dict[int, str] = {}
    for version in range(below - 1, 0, -1):
        ids = found.get(version, set())
        if len(ids) != 1:
            break
        (lineage[version],) = ids
    return lineage


def _id_of_store(task: StoreTask, version: int, ids: Iterable[str]) -> str | None:
    """Which of the partition's ids is this store's: the one that its folder has a file of.

    The commit log lists the ids of a join's stores without their names; ids are unique, so the
    folders tell, whatever the order.
    """
    candidates = list(ids)
    if len(candidates) == 1:
        return candidates[0]
    for uid in candidates:
        names = (f"{version}_{uid}.changelog", f"{version}_{uid}.zip")
        if any(name in task.files.live or name in task.files.held for name in names):
            return uid
    return None


def _lineages(
    tasks: list[StoreTask],
    version: int,
    provider: str,
    codec: str,
    reader: BatchReader,
    older: Mapping[int, CommitEntry],
) -> dict[str, dict[int, str]]:
    """folder -> lineage up to `version`, for stores in format 2 only."""
    current: dict[str, str] = {}
    for task in tasks:
        if task.unique_ids:
            # An id without any file: the chain then names the file that is missing.
            uid = _id_of_store(task, version, task.unique_ids) or task.unique_ids[0]
            current[task.folder] = uid
    lineages: dict[str, dict[int, str]] = {}
    heads: list[str] = []
    for task in tasks:
        if task.folder not in current:
            continue
        uid = current[task.folder]
        lineages[task.folder] = {version: uid}
        if not _needs_lineage(task, version, uid, provider):
            continue
        if codec == _DECODABLE:
            heads.append(f"{task.folder}/{version}_{uid}.changelog")
        else:
            known = lineages[task.folder] | commit_lineage(task, older, version=version)
            lineages[task.folder] = known | _unrivalled(task.files, below=min(known))
    read = reader.map_heads(heads, lineage_of_changelog, size=HEAD_BYTES)
    for path, lineage in read.items():
        lineages[path.rpartition("/")[0]] |= lineage
    return lineages


def _needs_lineage(task: StoreTask, version: int, uid: str, provider: str) -> bool:
    """The head is read when the version has no snapshot, or an older one may be reused."""
    if f"{version}_{uid}.changelog" not in task.files.live:
        return False
    return (
        f"{version}_{uid}.zip" not in task.files.live
        or held_base(task.files, provider=provider) is not None
    )


def _chain(
    task: StoreTask,
    version: int,
    provider: str,
    lineage: Mapping[int, str] | None,
    max_chain: int,
    families_since: int,
) -> Chain:
    reused = reuse_chain(
        task.files,
        version,
        provider=provider,
        ids=lineage,
        max_chain=max_chain,
        families_since=families_since,
    )
    return reused or choose_chain(
        task.files, version, provider=provider, ids=lineage, families_since=families_since
    )


def _planned(
    task: StoreTask, chain: Chain, snapshot: tuple[SnapshotFile, ...] | None
) -> PlannedStore:
    store = PlannedStore(base=chain.base)
    store.missing = [f"{task.folder}/{name}" for name in chain.missing]
    if chain.doubt:
        store.warnings.append(chain.doubt)
    wanted = [(chain.base, name) for name in _base_names(task, chain, snapshot)]
    wanted += chain.changes
    wanted += _head_change(task, chain)
    for version, name in wanted:
        _take(store, task, version, name)
        # Sidecars of format 2: Spark checks the file against them when they are there.
        if f"{name}.crc" in task.files.live or f"{name}.crc" in task.files.held:
            _take(store, task, version, f"{name}.crc")
    return store


def _base_names(
    task: StoreTask, chain: Chain, snapshot: tuple[SnapshotFile, ...] | None
) -> list[str]:
    if chain.base_name is None:
        return []
    if chain.reused:
        # The parent's set was minimal, so all it holds besides versions belongs to its base.
        return [chain.base_name, *sorted(name for name in task.files.held if "/" in name)]
    if snapshot is None:
        return [chain.base_name]
    path = f"{task.folder}/{chain.base_name}"
    for file in snapshot:
        listed = task.files.live.get(file.path)
        if listed is not None and listed.size != file.size:
            raise DamagedError(
                f"{task.folder}/{file.path} has {listed.size} bytes, but {path} says {file.size}. "
                "It is truncated: restore an older savepoint."
            )
    return [chain.base_name, *(file.path for file in snapshot)]


def _head_change(task: StoreTask, chain: Chain) -> list[tuple[int, str]]:
    """In format 2, older Spark opens the version's own changelog even next to its snapshot."""
    base = versioned_name(chain.base_name) if chain.base_name else None
    if chain.changes or base is None or base.unique_id is None:
        return []
    name = file_name(base.version, Kind.CHANGELOG, {base.version: base.unique_id})
    return [(base.version, name)] if name and name in task.files.live else []


def _take(store: PlannedStore, task: StoreTask, version: int, name: str) -> None:
    path = f"{task.folder}/{name}"
    live, held = task.files.live.get(name), task.files.held.get(name)
    if live is not None:
        planned = PlannedFile(path, live.size, live.stamp, Role.STATE)
    elif held is not None:
        planned = PlannedFile(path, held, "", Role.STATE, held=True)
    else:
        store.missing.append(path)
        return
    store.files.append((version, planned))
