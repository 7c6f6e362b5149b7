"""The tree of versions, drawn as `git log --graph` draws it.

A savepoint has one parent at most, so this is a forest. Each tree is drawn on its own, the one with
the newest savepoint first: jobs that have nothing to do with each other do not share lines. A
parent that is gone is drawn as `o`, so that its children still meet.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

__all__ = ["Node", "draw", "forest"]


@dataclass(frozen=True, slots=True)
class Node:
    """A savepoint, or the memory of one."""

    id: str
    parent: str | None
    created: datetime
    lines: Sequence[str]
    """The first stands beside the mark, the others below it."""
    gone: bool = False


def draw(nodes: Iterable[Node]) -> str:
    """The picture; trees are separated by an empty line."""
    return "\n\n".join("\n".join(_draw_tree(tree)) for tree in forest(nodes))


def forest(nodes: Iterable[Node]) -> list[list[Node]]:
    """The trees, and the savepoints of each, newest first."""
    known = {node.id: node for node in nodes}
    trees: dict[str, list[Node]] = {}
    roots: dict[str, str] = {}
    for node in known.values():
        trees.setdefault(_root(node, known, roots), []).append(node)
    newest_first = sorted(trees.values(), key=lambda tree: max(n.created for n in tree))[::-1]
    return [list(_newest_first(tree)) for tree in newest_first]


def _root(node: Node, known: Mapping[str, Node], roots: dict[str, str]) -> str:
    """Where its line ends; `roots` has what was found before, or each would walk to the end."""
    walked = [node.id]
    while node.id not in roots and node.parent is not None and node.parent in known:
        node = known[node.parent]
        walked.append(node.id)
    root = roots.get(node.id, node.id)
    roots |= dict.fromkeys(walked, root)
    return root


def _newest_first(tree: Sequence[Node]) -> Iterator[Node]:
    """By time, but never a parent before its children, whatever their clocks said."""
    waiting = dict.fromkeys((node.id for node in tree), 0)
    for node in tree:
        if node.parent in waiting:
            waiting[node.parent] += 1
    known = {node.id: node for node in tree}
    ready = [_aged(node) for node in tree if not waiting[node.id]]
    heapq.heapify(ready)
    while ready:
        node = known[heapq.heappop(ready)[1]]
        yield node
        if node.parent in waiting:
            waiting[node.parent] -= 1
            if not waiting[node.parent]:
                heapq.heappush(ready, _aged(known[node.parent]))


def _aged(node: Node) -> tuple[float, str]:
    return -node.created.timestamp(), node.id


def _draw_tree(tree: Sequence[Node]) -> Iterator[str]:
    lanes: list[str] = []
    """What each line leads down to."""
    for node in tree:
        if node.id not in lanes:
            lanes.append(node.id)
        lane = lanes.index(node.id)
        mark = "o" if node.gone else "*"
        marks = [mark if index == lane else "|" for index in range(len(lanes))]
        yield f"{' '.join(marks)} {node.lines[0]}".rstrip()
        has_parent = node.parent is not None
        below = ["|" if has_parent or index != lane else " " for index in range(len(lanes))]
        yield from (f"{' '.join(below)}   {line}".rstrip() for line in node.lines[1:])
        if node.parent is not None:
            yield from _descend(lanes, lane, node.parent)


def _descend(lanes: list[str], lane: int, parent: str) -> Iterator[str]:
    """Let a lane go on to the parent, and join the one that already does."""
    if parent not in lanes:
        lanes[lane] = parent
        return
    left, right = sorted((lane, lanes.index(parent)))
    lanes[left] = parent
    yield from _join(len(lanes), left, right)
    del lanes[right]


def _join(width: int, left: int, right: int) -> Iterator[str]:
    """Bend lane `right` into lane `left`; those beyond move up one place."""
    cells = _bars(right, width)
    cells[2 * right - 1] = "/"
    for lane in range(right + 1, width):
        cells[2 * lane - 1] = "/"
    if right - left > 1:
        for lane in range(left + 1, right - 1):
            cells[2 * lane + 1] = "_"
        yield "".join(cells).rstrip()
        cells = _bars(width - 1, width)
        cells[2 * left + 1] = "/"
    yield "".join(cells).rstrip()


def _bars(lanes: int, width: int) -> list[str]:
    return [("|" if cell % 2 == 0 and cell < 2 * lanes else " ") for cell in range(2 * width)]
