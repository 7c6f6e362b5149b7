"""Lineage of a store in state checkpoint format 2: which unique id each version carries.

Every changelog begins with the ids of the versions before it, back to the newest snapshot of the
time. Spark loads a version by exactly this list, so it also tells which snapshots Spark will accept
as a base. A savepoint may start from an older one that is stored already: then the restored
changelog must list the versions back to that. Only LZ4, Spark's default codec, is decoded here.
"""

import json
from collections.abc import Iterable, Mapping

from sparkpoint.checkpoint.errors import DamagedError, UnknownFormatError
from sparkpoint.checkpoint.jsonlog import as_int, as_list, as_object, as_text, parse
from sparkpoint.checkpoint.lz4 import Inflated
from sparkpoint.checkpoint.names import Kind, is_unique_id, versioned_name

__all__ = [
    "HEAD_BYTES",
    "LONGEST_LINEAGE",
    "REWRITABLE",
    "lineage_of_changelog",
    "lineages_to_restore",
    "rewrite_lineage",
]

# Spark writes the lineage with writeUTF, which ends at 64 KiB; incompressible LZ4 adds little.
HEAD_BYTES = 256 * 1024
LONGEST_LINEAGE = 500
"""Versions of which the ids surely fit there."""
REWRITABLE = 16 * 1024 * 1024
"""Changelogs up to this size are rewritten, in memory; a plan must not count on it for others."""
_WITH_LINEAGE = ("v3", "v4")
_LONGEST_UTF = 0xFFFF


def lineage_of_changelog(head: bytes, path: str) -> Mapping[int, str]:
    """version -> unique id, of the versions before this changelog's, out of its first bytes."""
    return _parse(Inflated(head, path, limit=HEAD_BYTES), path)[1]


def rewrite_lineage(data: bytes, path: str, lineage: Mapping[int, str]) -> bytes:
    """The changelog with these versions before its own; unchanged if it names them all already."""
    stream = Inflated(data, path)
    version, known = _parse(stream, path)
    if lineage.items() <= known.items():
        return data
    items = [{"version": v, "checkpointUniqueId": uid} for v, uid in sorted(lineage.items())]
    return stream.replaced(_utf(version) + _utf(json.dumps(items, separators=(",", ":"))))


def lineages_to_restore(sizes: Mapping[str, int]) -> dict[str, dict[int, str]]:
    """Changelog -> lineage that it must name, out of the paths and sizes of a savepoint's files.

    Of each store in format 2 the last two, because a savepoint has the commits of two batches.
    Changelogs that name it anyway, and those that no plan counts on, are left out where the names
    tell.
    """
    folders: dict[str, list[str]] = {}
    for path in sizes:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    return {
        f"{folder}/{name}": lineage
        for folder, names in folders.items()
        for name, lineage in _last_changelogs(names).items()
        if sizes[f"{folder}/{name}"] <= REWRITABLE
    }


def _last_changelogs(names: Iterable[str]) -> dict[str, dict[int, str]]:
    found = [(v, name) for name in names if (v := versioned_name(name)) and v.unique_id]
    ids = {v.version: v.unique_id for v, _ in found if v.unique_id}
    changes = {v.version: name for v, name in found if v.kind is Kind.CHANGELOG}
    base = max((v.version for v, _ in found if v.kind is Kind.ZIP), default=0)
    lineages = {}
    for version in sorted(changes)[-2:]:
        before = {v: ids[v] for v in range(max(base, 1), version) if v in ids}
        # The version right after the snapshot names it in any case.
        if len(before) == version - max(base, 1) and len(before) > 1:
            lineages[changes[version]] = before
    return lineages


def _parse(stream: Inflated, path: str) -> tuple[str, dict[int, str]]:
    version = stream.utf()
    if version not in _WITH_LINEAGE:
        raise UnknownFormatError(
            f"{path} is a changelog of version {version[:20]!r}; with unique ids, "
            f"{' and '.join(_WITH_LINEAGE)} are known. A newer Sparkpoint may know it."
        )
    items = as_list(parse(stream.utf(), path), path, "the lineage")
    lineage: dict[int, str] = {}
    for item in items:
        fields = as_object(item, path, "a lineage item")
        uid = as_text(fields.get("checkpointUniqueId"), path, "checkpointUniqueId")
        if not is_unique_id(uid):
            raise DamagedError(f"{path}: {uid[:80]!r} cannot be a unique id.")
        lineage[as_int(fields.get("version"), path, "version")] = uid
    return version, lineage


def _utf(text: str) -> bytes:
    """Text as Java's writeUTF writes it; ASCII only, which is the same there."""
    data = text.encode("ascii")
    if len(data) > _LONGEST_UTF:
        raise DamagedError("A lineage is longer than a changelog can name.")
    return len(data).to_bytes(2, "big") + data
