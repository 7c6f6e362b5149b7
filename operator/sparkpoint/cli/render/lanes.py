"""Where the savepoints of a tree stand in a picture of it: a lane each, and a line to the parent.

Unlike in the drawing of text, lanes stay where they are: a line keeps its own until it ends at the
parent, so that an eye can follow it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkpoint.cli.render.graph import Node

__all__ = ["Line", "Picture", "lay_out"]


@dataclass(frozen=True, slots=True)
class Line:
    """From a child down its own lane, and into the lane of its parent."""

    child: str
    row: int
    lane: int
    parent_row: int
    parent_lane: int


@dataclass(frozen=True, slots=True)
class Picture:
    """A tree, a row for each savepoint."""

    lanes: Mapping[str, int]
    """Of each savepoint, in the order of rows."""
    lines: Sequence[Line]
    width: int


def lay_out(tree: Sequence[Node]) -> Picture:
    """Rows as given: no parent may come before a child of it."""
    rows = {node.id: row for row, node in enumerate(tree)}
    lanes: dict[str, int] = {}
    leading: list[str | None] = []
    """The parent that each lane leads to; None if it is free."""
    for node in tree:
        mine = [lane for lane, goal in enumerate(leading) if goal == node.id]
        lane = mine[0] if mine else _free(leading)
        for each in mine:
            leading[each] = None
        lanes[node.id] = lane
        leading[lane] = node.parent if node.parent in rows else None
    lines = [
        Line(node.id, rows[node.id], lanes[node.id], rows[node.parent], lanes[node.parent])
        for node in tree
        if node.parent is not None and node.parent in rows
    ]
    return Picture(lanes, lines, len(leading))


def _free(leading: list[str | None]) -> int:
    if None in leading:
        return leading.index(None)
    leading.append(None)
    return len(leading) - 1
