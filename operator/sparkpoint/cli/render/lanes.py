"""Where the savepoints of a tree stand in a picture of it: a lane each, and a line to the parent.

Unlike in the drawing of text, lanes stay where they are: a line keeps its own until it ends at the
parent, so that an eye can follow it.
"""

import heapq
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
    leading: dict[str, list[int]] = {}
    """The lanes that lead to each parent."""
    free: list[int] = []
    width = 0
    for node in tree:
        for each in leading.pop(node.id, []):
            heapq.heappush(free, each)
        if not free:
            heapq.heappush(free, width)
            width += 1
        lane = lanes[node.id] = heapq.heappop(free)
        if node.parent is not None and node.parent in rows:
            leading.setdefault(node.parent, []).append(lane)
        else:
            heapq.heappush(free, lane)
    lines = [
        Line(node.id, rows[node.id], lanes[node.id], rows[node.parent], lanes[node.parent])
        for node in tree
        if node.parent is not None and node.parent in rows
    ]
    return Picture(lanes, lines, width)
