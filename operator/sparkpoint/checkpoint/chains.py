"""The files that load one version of one store: a base snapshot and every change after it.

Spark loads version v from the newest snapshot s ≤ v and the changes s+1 … v. Walking back from v,
the first snapshot met is that base; a change that is missing before one is met makes v unloadable.

Changelogs do not say which column families exist; only snapshots do, and Spark forces one whenever
it creates a family. So a store with families cannot start from empty, nor from before the last such
snapshot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparkpoint.checkpoint.layout import StoreFiles
from sparkpoint.checkpoint.names import Kind, versioned_name

__all__ = ["Chain", "choose_chain", "file_name", "held_base", "reuse_chain"]

# Times of a store that counts whole seconds, or of two that are closed at once.
_SLACK_SECONDS = 2.0
# A snapshot that new column families force is uploaded before the changelog of its version.
_FORCED_SLACK_SECONDS = 60.0
_KINDS = {"hdfs": (Kind.SNAPSHOT, Kind.DELTA), "rocksdb": (Kind.ZIP, Kind.CHANGELOG)}


@dataclass(frozen=True, slots=True)
class Chain:
    """How one store reaches its version; names are relative to the store's folder."""

    base: int
    """The version of the snapshot; 0 for the empty store."""
    base_name: str | None
    changes: tuple[tuple[int, str], ...]
    """(version, name), oldest first."""
    missing: tuple[str, ...] = ()
    doubt: str | None = None
    """Why the base may be of another lineage; None if nothing speaks for that."""
    avoided: str | None = None
    """The same of a newer snapshot, which the chain does without."""
    reused: bool = False
    """The base is the parent savepoint's."""


def file_name(version: int, ending: str, ids: Mapping[int, str] | None) -> str | None:
    """The name of a version's file; None if the lineage `ids` does not contain the version.

    `ending` is the value of its Kind: to ask an enum for it takes longer than all the rest.
    """
    if ids is None:
        return f"{version}.{ending}"
    uid = ids.get(version)
    return None if uid is None else f"{version}_{uid}.{ending}"


def choose_chain(
    store: StoreFiles,
    version: int,
    *,
    provider: str,
    ids: Mapping[int, str] | None,
    families_since: int = 0,
) -> Chain:
    """The chain that Spark itself would load, but for a snapshot that outlived a rewind.

    `ids` is the lineage in format 2, else None; it decides alone which snapshots count.
    `families_since` is the first version that has today's column families; 0 without families.
    """
    snapshot, change = _endings(provider)
    slack = _FORCED_SLACK_SECONDS if families_since else _SLACK_SECONDS
    changes: list[tuple[int, str]] = []
    doubtful: Chain | None = None
    for v in range(version, 0, -1):
        if doubtful and v < families_since:
            return doubtful  # no older base has today's families
        base, name = file_name(v, snapshot, ids), file_name(v, change, ids)
        if base in store.live:
            doubt = _doubt(store, base, name, slack=slack) if ids is None else None
            chain = Chain(v, base, tuple(reversed(changes)), doubt=doubt)
            if doubt is None:
                return _after(doubtful, chain)
            doubtful = doubtful or chain
        if name is None or (name not in store.live and name not in store.held):
            missing = name or f"{v}_*.{change}"
            return doubtful or Chain(0, None, tuple(reversed(changes)), missing=(missing,))
        changes.append((v, name))
    if doubtful and families_since:
        return doubtful
    missing_base = file_name(1, snapshot, ids) if families_since and version else None
    missing_bases = () if missing_base is None else (missing_base,)
    return _after(doubtful, Chain(0, None, tuple(reversed(changes)), missing=missing_bases))


def _endings(provider: str) -> tuple[str, str]:
    snapshot, change = _KINDS[provider]
    return snapshot.value, change.value


def _after(avoided: Chain | None, chain: Chain) -> Chain:
    """The chain, with the doubt about the newest snapshot that it avoids."""
    return chain if avoided is None else replace(chain, avoided=avoided.doubt)


def held_base(store: StoreFiles, *, provider: str) -> tuple[int, str | None] | None:
    """Where the parent savepoint starts this store: a snapshot, or (0, None) for the empty store.

    None if it holds nothing of the store, or more than one snapshot.
    """
    snapshot, change = _KINDS[provider]
    held = [(name, n) for n in store.held if (name := versioned_name(n))]
    bases = [(name.version, n) for name, n in held if name.kind is snapshot]
    if not bases and any(name.version == 1 and name.kind is change for name, _ in held):
        return 0, None
    return bases[0] if len(bases) == 1 else None


def reuse_chain(
    store: StoreFiles,
    version: int,
    *,
    provider: str,
    ids: Mapping[int, str] | None,
    max_chain: int,
    families_since: int = 0,
) -> Chain | None:
    """The chain from the parent's base; None if a change is gone or the chain would be too long."""
    base = held_base(store, provider=provider)
    if base is None or not 0 <= version - base[0] <= max_chain or base[0] < families_since:
        return None
    start, base_name = base
    snapshot, change = _endings(provider)
    if base_name is not None and (
        base_name != file_name(start, snapshot, ids) or not _base_agrees(store, base_name)
    ):
        return None
    changes = [(v, file_name(v, change, ids)) for v in range(start + 1, version + 1)]
    present = tuple((v, n) for v, n in changes if n is not None and _is_there(store, n, ids))
    if len(present) < len(changes):
        return None
    return Chain(start, base_name, present, reused=True)


def _base_agrees(store: StoreFiles, base: str) -> bool:
    """Whether no file of the parent's base was written anew with another size."""
    names = (base, *(n for n in store.held if "/" in n))
    return all(n not in store.live or store.live[n].size == store.held[n] for n in names)


def _is_there(store: StoreFiles, name: str, ids: Mapping[int, str] | None) -> bool:
    live, held = store.live.get(name), store.held.get(name)
    if ids is None and live is not None and held is not None:
        # The same name with another size: the directory was rewound, nothing can be shared. A
        # unique id is never used again, and only our own rewriting of a lineage changes its size.
        return live.size == held
    return live is not None or held is not None


def _doubt(store: StoreFiles, base: str, change: str | None, *, slack: float) -> str | None:
    """A snapshot is written after the change of its version; an older one outlived a rewind.

    Spark prefers such a leftover on its next load, and silently goes on from the wrong state.
    """
    later = store.live.get(change) if change else None
    snapshot = store.live[base]
    if later is None or not snapshot.modified or snapshot.modified + slack >= later.modified:
        return None
    return (
        f"{store.folder}/{base} is older than {change}: it may be left from before a rewind, "
        "and plain Spark would load it."
    )
