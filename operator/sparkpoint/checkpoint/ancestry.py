"""Which unique id each version of a store carries in format 2, back to where its chain may begin.

The header of a version's changelog tells the ids back to a snapshot, and Spark looks no further. A
base that a parent savepoint stores may be older: the changelog of that snapshot's version tells the
ids before it, and so on, which is how Spark's own repair of a snapshot finds an older one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparkpoint.checkpoint.chains import held_base
from sparkpoint.checkpoint.layout import StoreFiles
from sparkpoint.checkpoint.lineage import HEAD_BYTES, lineage_of_changelog
from sparkpoint.checkpoint.model import CommitEntry
from sparkpoint.checkpoint.names import DECODABLE, versioned_name
from sparkpoint.checkpoint.reader import BatchReader

__all__ = ["Ancestry", "StoreTask", "commit_lineage", "read_ancestry"]


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
        return self.files.folder


@dataclass(frozen=True, slots=True)
class Ancestry:
    """version -> unique id, of the version to load and those before it."""

    told: Mapping[int, str]
    """What Spark finds by itself."""
    all: Mapping[int, str]
    """What can be told; a restore must rewrite the changelog if more than `told` is needed."""


def read_ancestry(
    tasks: list[StoreTask],
    *,
    version: int,
    provider: str,
    codec: str,
    reader: BatchReader,
    older: Mapping[int, CommitEntry],
    oldest_base: int,
    as_stored: bool,
) -> dict[str, Ancestry]:
    """folder -> ancestry of `version`, for stores in format 2 only.

    No parent's base before the version `oldest_base` is of use. `as_stored`: the files are those of
    a savepoint, so what Spark finds by itself is not the limit.
    """
    told: dict[str, dict[int, str]] = {}
    heads: list[str] = []
    for task in tasks:
        if not task.unique_ids:
            continue
        # An id without any file: the chain then names the file that is missing.
        uid = _id_of_store(task, version, task.unique_ids) or task.unique_ids[0]
        told[task.folder] = {version: uid}
        if not _needs_lineage(task, version, uid, provider):
            continue
        if codec == DECODABLE:
            heads.append(f"{task.folder}/{version}_{uid}.changelog")
        else:
            known = told[task.folder] | commit_lineage(task, older, version=version)
            names = (*task.files.live, *task.files.held)
            told[task.folder] = known | _unrivalled(names, below=min(known))
    for path, lineage in reader.map_heads(heads, lineage_of_changelog, size=HEAD_BYTES).items():
        told[path.rpartition("/")[0]] |= lineage
    full = {folder: dict(lineage) for folder, lineage in told.items()}
    if codec == DECODABLE:
        goals = {t.folder: _goal(t, provider, oldest_base, as_stored=as_stored) for t in tasks}
        _walk_back([t for t in tasks if t.folder in full], full, goals, reader)
    return {folder: Ancestry(told[folder], full[folder]) for folder in told}


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


def _goal(task: StoreTask, provider: str, oldest_base: int, *, as_stored: bool) -> int | None:
    """The version that the lineage should reach; None if what Spark finds by itself will do."""
    base = held_base(task.files, provider=provider)
    if base is not None:
        return max(base[0], 1) if base[0] >= oldest_base else None
    return 1 if as_stored else None


def _walk_back(
    tasks: list[StoreTask],
    lineages: Mapping[str, dict[int, str]],
    goals: Mapping[str, int | None],
    reader: BatchReader,
) -> None:
    """Extend the lineages, one header of each store at a time, until they reach their goals."""
    todo = [task for task in tasks if goals[task.folder] is not None]
    while todo:
        heads: dict[str, StoreTask] = {}
        for task in todo:
            lineage = lineages[task.folder]
            _recall(task, lineage)
            oldest = min(lineage)
            name = f"{oldest}_{lineage[oldest]}.changelog"
            if oldest > (goals[task.folder] or 0) and name in task.files.live:
                heads[f"{task.folder}/{name}"] = task
        read = reader.map_heads(heads, lineage_of_changelog, size=HEAD_BYTES)
        todo = []
        for path, found in read.items():
            lineage = lineages[heads[path].folder]
            if min(found, default=min(lineage)) < min(lineage):
                todo.append(heads[path])
            lineage |= {v: uid for v, uid in found.items() if v not in lineage}


def _recall(task: StoreTask, lineage: dict[int, str]) -> None:
    """Add what the parent savepoint has below a version of the lineage: its files are one chain."""
    held = task.files.held
    shared = [v for v, uid in lineage.items() if f"{v}_{uid}.changelog" in held]
    if shared:
        lineage |= _unrivalled(held, below=min(shared))


def _unrivalled(names: Iterable[str], *, below: int) -> dict[int, str]:
    """version -> its only unique id among these, down from `below` while there is exactly one.

    A committed version has its files until a newer snapshot replaces them, so without a rival the
    id is the committed one. A savepoint keeps two commits only, and no rivals: this tells the rest.
    """
    found: dict[int, set[str]] = {}
    for file in names:
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


def _needs_lineage(task: StoreTask, version: int, uid: str, provider: str) -> bool:
    """The head is read when the version has no snapshot, or an older one may be reused."""
    if f"{version}_{uid}.changelog" not in task.files.live:
        return False
    return (
        f"{version}_{uid}.zip" not in task.files.live
        or held_base(task.files, provider=provider) is not None
    )
