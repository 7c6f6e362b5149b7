"""The tree of versions as a page for a browser: one file, which fetches nothing and runs nothing.

A savepoint opens at a click, by its address within the page, so that a link to one can be sent on.
Whatever comes from a manifest is escaped: names and paths are other people's words.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from html import escape

from sparkpoint.cli.render.graph import Node, forest
from sparkpoint.cli.render.history import Restores, Uses, restored_text, tree_nodes
from sparkpoint.cli.render.lanes import Line, lay_out
from sparkpoint.cli.render.savepoints import batches, savepoint_text
from sparkpoint.cli.render.text import age, count, moment, repository_options, size
from sparkpoint.savepoint import Savepoint

__all__ = ["tree_page"]

_ROW, _LANE, _EDGE = 34, 20, 14
"""Pixels: of a row, between two lanes, and from the edge to the first of them."""
_COLOURS = 8
_STYLE = """
:root{color-scheme:light dark;--line:#d5d9e0;--soft:#667085;--chip:#eef1f6;--page:#fff;
--c0:#2563eb;--c1:#d97706;--c2:#059669;--c3:#9333ea;--c4:#dc2626;--c5:#0891b2;--c6:#a16207;--c7:#db2777}
@media(prefers-color-scheme:dark){:root{--line:#343b46;--soft:#98a2b3;--chip:#262c36;--page:#12161c;
--c0:#6ea8fe;--c1:#f0b35c;--c2:#4ccb9b;--c3:#c59bff;--c4:#ff8f8f;--c5:#5fd0e6;--c6:#d9b45b;--c7:#ff8cc6}}
body{font:14px/1.45 system-ui,sans-serif;margin:24px;background:var(--page)}
h1{font-size:20px;margin:0}p.about{color:var(--soft);margin:4px 0 20px}
.tree{display:flex;margin:0 0 26px;overflow-x:auto}.tree svg{flex:none}
.rows{flex:1;min-width:60em}
.row{box-sizing:border-box;display:flex;gap:1.2em;align-items:center;height:34px;padding:0 8px;
border-bottom:1px solid var(--line);white-space:nowrap;color:inherit;text-decoration:none}
a.row:hover,a.row:focus{background:var(--chip)}
.row>*{overflow:hidden;text-overflow:ellipsis}
.name{font-weight:600;flex:0 1 22em}.job{flex:0 1 14em}
.num{flex:0 0 8em;text-align:right;font-variant-numeric:tabular-nums}
.soft{color:var(--soft)}.tail{flex:1 1 10em}.gone{font-style:italic;color:var(--soft)}
.chip{background:var(--chip);border-radius:9px;padding:1px 8px;margin-right:4px;font-size:12px}
.all{display:none;position:fixed;top:0;right:0;bottom:0;width:min(46em,92vw);
overflow:auto;padding:20px 24px;background:var(--page);border-left:1px solid var(--line);
box-shadow:-6px 0 24px #0003}
.all:target{display:block}.all pre{white-space:pre-wrap;overflow-wrap:anywhere;
font:12.5px/1.5 ui-monospace,monospace}
.close{float:right;color:inherit}
line,path{fill:none;stroke-width:2}circle{stroke-width:2}
""" + "".join(
    f".l{number}{{stroke:var(--c{number})}}.k{number}{{stroke:var(--c{number});"
    f"fill:var(--c{number})}}.h{number}{{stroke:var(--c{number});fill:var(--page)}}"
    f".t{number}{{color:var(--c{number})}}"
    for number in range(_COLOURS)
)


def tree_page(
    savepoints: Sequence[Savepoint],
    uses: Uses,
    restores: Restores,
    *,
    repository: str,
    endpoint_url: str | None,
    now: datetime,
) -> Iterator[str]:
    """The whole document, piece by piece; `savepoints` newest first."""
    title = escape(repository)
    yield (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>Savepoints in {title}</title><style>{_STYLE}</style></head><body>\n"
        f'<h1>{title}</h1><p class="about">{_about(savepoints, now)}</p>\n'
    )
    known = {each.id: each for each in savepoints}
    jobs = {
        job: number % _COLOURS for number, job in enumerate(dict.fromkeys(map(_job, savepoints)))
    }
    for tree in forest(tree_nodes(savepoints, uses, restores, now)):
        yield from _tree(tree, known, jobs, now)
    place = repository_options(repository, endpoint_url)
    for each in savepoints:
        yield _whole(each, uses, restores, place, now)
    yield "</body></html>\n"


def _about(savepoints: Sequence[Savepoint], now: datetime) -> str:
    jobs = set(map(_job, savepoints))
    stored = sum(each.manifest.files.new_bytes for each in savepoints)
    whole = sum(each.manifest.files.bytes for each in savepoints)
    found = f"{count(len(savepoints), 'savepoint')} of {count(len(jobs), 'job')}"
    return f"{found}, {size(whole)} of state in {size(stored)} of new bytes, as of {moment(now)}"


def _job(savepoint: Savepoint) -> tuple[str, str]:
    return savepoint.manifest.namespace, savepoint.manifest.job


def _tree(
    tree: Sequence[Node],
    known: Mapping[str, Savepoint],
    jobs: Mapping[tuple[str, str], int],
    now: datetime,
) -> Iterator[str]:
    picture = lay_out(tree)
    colours = _colours(tree, known, jobs)
    width = 2 * _EDGE + _LANE * (picture.width - 1)
    yield f'<div class="tree"><svg width="{width}" height="{_ROW * len(tree)}" aria-hidden="true">'
    yield from (_path(line, colours[line.child]) for line in picture.lines)
    for row, node in enumerate(tree):
        kind = "h" if node.gone else "k"
        x, y = _at(row, picture.lanes[node.id])
        yield f'<circle class="{kind}{colours[node.id]}" cx="{x}" cy="{y}" r="5"/>'
    yield '</svg><div class="rows">\n'
    for node in tree:
        savepoint = known.get(node.id)
        if savepoint is None:
            yield f'<div class="row gone">{escape(node.lines[0])}</div>\n'
        else:
            yield _row(savepoint, node, colours[node.id], now)
    yield "</div></div>\n"


def _colours(
    tree: Sequence[Node], known: Mapping[str, Savepoint], jobs: Mapping[tuple[str, str], int]
) -> dict[str, int]:
    """That of its job; what is gone has the colour of the newest that was made of it."""
    found: dict[str, int] = {}
    inherited: dict[str, int] = {}
    for node in tree:
        savepoint = known.get(node.id)
        colour = inherited.get(node.id, 0) if savepoint is None else jobs[_job(savepoint)]
        found[node.id] = colour
        if node.parent is not None:
            inherited.setdefault(node.parent, colour)
    return found


def _at(row: int, lane: int) -> tuple[int, int]:
    return _EDGE + _LANE * lane, _ROW * row + _ROW // 2


def _path(line: Line, colour: int) -> str:
    x, y = _at(line.row, line.lane)
    to_x, to_y = _at(line.parent_row, line.parent_lane)
    bend = to_y - _ROW
    return (
        f'<path class="l{colour}" d="M{x} {y}V{bend}C{x} {bend + _ROW // 2} {to_x} '
        f'{bend + _ROW // 2} {to_x} {to_y}"/>'
    )


def _row(savepoint: Savepoint, node: Node, colour: int, now: datetime) -> str:
    manifest = savepoint.manifest
    tags = "".join(f'<span class="chip">{escape(tag)}</span>' for tag in savepoint.tags)
    revision = f"rev {escape(manifest.revision)} " if manifest.revision else ""
    more = escape("; ".join(node.lines[1:]))
    job = f"{manifest.namespace}/{manifest.job}"
    batch = escape(f"batch {batches(manifest)}")
    return (
        f'<a class="row" href="#{savepoint.id}"><span class="name">{escape(manifest.name)}</span>'
        f'<span class="job t{colour}">{escape(job)}</span>'
        f'<span class="num" title="{batch}">{batch}</span>'
        f'<span class="num soft" title="{moment(manifest.created)}">'
        f"{age(manifest.created, now)}</span>"
        f'<span class="num">{size(manifest.files.bytes)}</span>'
        f'<span class="num soft">+{size(manifest.files.new_bytes)}</span>'
        f'<span class="tail">{tags}<span class="soft">{revision}{more}</span></span></a>\n'
    )


def _whole(
    savepoint: Savepoint, uses: Uses, restores: Restores, place: Sequence[str], now: datetime
) -> str:
    """What opens at a click: all that `savepoint show` tells, and how to get it back."""
    lines = [f"used by {use}" for use in uses.get(savepoint.id, ())]
    lines += [f"restored to {each}" for each in restored_text(savepoint, restores, now)]
    happened = "\n".join(["", "", *lines]) if lines else ""
    command = shlex.join(["sparkpoint", "savepoint", "restore", savepoint.key, *place])
    text = f"{savepoint_text(savepoint, now)}{happened}\n\n{command} --to TARGET"
    return (
        f'<section class="all" id="{savepoint.id}"><a class="close" href="#">close</a>'
        f"<pre>{escape(text)}</pre></section>\n"
    )
