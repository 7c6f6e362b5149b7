"""The log of a repository: as paragraphs, or as lines beside the tree."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from sparkpoint.cli.render.graph import Node, draw
from sparkpoint.cli.render.savepoints import batches
from sparkpoint.cli.render.text import age, fields, moment, one_line, size
from sparkpoint.savepoint import Savepoint
from sparkpoint.savepoint.manifest import Parent
from sparkpoint.savepoint.uses import Restored

__all__ = ["Restores", "Uses", "graph_text", "log_text", "restored_text", "tree_nodes"]

Uses = Mapping[str, Sequence[str]]
"""Savepoint id -> what uses it."""
Restores = Mapping[str, Sequence[Restored]]
"""Savepoint id -> where it was restored to."""


def log_text(savepoints: Iterable[Savepoint], uses: Uses, restores: Restores, now: datetime) -> str:
    """A paragraph each, in the order given."""
    return "\n\n".join("\n".join(_paragraph(each, uses, restores, now)) for each in savepoints)


def _paragraph(
    savepoint: Savepoint, uses: Uses, restores: Restores, now: datetime
) -> Iterator[str]:
    manifest = savepoint.manifest
    parent = manifest.parent
    key = f"{parent.namespace}/{parent.job}/{parent.name}" if parent else ""
    yield f"savepoint {savepoint.id}"
    yield from fields(
        [
            ("name", savepoint.key),
            ("parent", f"{key} ({parent.id[:12]})" if parent else "none"),
            ("revision", one_line(manifest.revision or "")),
            ("batch", batches(manifest)),
            ("created", f"{moment(manifest.created)} ({age(manifest.created, now)})"),
            ("size", f"{size(manifest.files.bytes)}, {size(manifest.files.new_bytes)} new"),
            ("tags", ", ".join(savepoint.tags)),
            ("used by", "; ".join(uses.get(savepoint.id, ()))),
            ("restored to", "; ".join(restored_text(savepoint, restores, now))),
        ]
    )


def restored_text(savepoint: Savepoint, restores: Restores, now: datetime) -> list[str]:
    """What happened, and when something that runs there last committed, if that was seen."""
    return [
        f"{each.target} ({each.mode}, {age(each.at, now)}{_commit(each, now)})"
        for each in restores.get(savepoint.id, ())
    ]


def _commit(restored: Restored, now: datetime) -> str:
    committed = restored.last_commit
    return f", last commit {age(committed, now)}" if committed else ""


def graph_text(
    savepoints: Sequence[Savepoint], uses: Uses, restores: Restores, now: datetime
) -> str:
    """The tree, with a line of text beside each savepoint."""
    return draw(tree_nodes(savepoints, uses, restores, now))


def tree_nodes(
    savepoints: Sequence[Savepoint], uses: Uses, restores: Restores, now: datetime
) -> list[Node]:
    """The savepoints, and the parents of them that are gone."""
    present = {each.id for each in savepoints}
    orphans = [each for each in savepoints if each.manifest.parent]
    gone = {
        each.manifest.parent.id: _gone(each.manifest.parent, each.taken)
        for each in reversed(orphans)
        if each.manifest.parent and each.manifest.parent.id not in present
    }
    return [*(_node(each, uses, restores, now) for each in savepoints), *gone.values()]


def _gone(parent: Parent, created: datetime) -> Node:
    """A parent that is not there any more, as old as its oldest child: nobody knows better."""
    line = f"{parent.id[:12]} {parent.namespace}/{parent.job}/{parent.name}  deleted"
    return Node(parent.id, None, created, [line], gone=True)


def _node(savepoint: Savepoint, uses: Uses, restores: Restores, now: datetime) -> Node:
    manifest = savepoint.manifest
    parts = [
        f"{savepoint.id[:12]} {savepoint.key}",
        f"batch {batches(manifest)}",
        age(manifest.created, now),
        f"{size(manifest.files.bytes)} (+{size(manifest.files.new_bytes)})",
        f"rev {one_line(manifest.revision)}" if manifest.revision else "",
        f"[{', '.join(savepoint.tags)}]" if savepoint.tags else "",
    ]
    lines = ["  ".join(part for part in parts if part)]
    lines += [f"used by {use}" for use in uses.get(savepoint.id, ())]
    lines += [f"restored to {each}" for each in restored_text(savepoint, restores, now)]
    parent = manifest.parent
    return Node(savepoint.id, parent.id if parent else None, savepoint.taken, lines)
