"""Rows of state as a table, as JSON, as CSV; and what differs between two savepoints."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from sparkpoint.cli.render.text import table
from sparkpoint.state.diff import Change, StoreDiff
from sparkpoint.state.plain import Plain
from sparkpoint.state.query import Rows
from sparkpoint.state.types import ColumnPath

__all__ = ["change_document", "csv_lines", "diff_document", "diff_text", "json_lines"]
__all__ += ["rows_table"]

_WIDEST = 60
_Row = Mapping[str, Plain]


def json_lines(rows: Iterable[_Row]) -> Iterator[str]:
    """One JSON document per line."""
    return (f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def csv_lines(rows: Rows) -> Iterator[str]:
    """A header and a line per row; structs are columns of their own, lists are JSON."""
    yield _csv_line([".".join(path) for path in rows.columns])
    for row in rows:
        yield _csv_line([_cell(_at(row, path)) for path in rows.columns])


def rows_table(rows: Rows) -> str:
    """As people read it; long values are cut."""
    cells = [[_cut(_cell(_at(row, path), null="-")) for path in rows.columns] for row in rows]
    return table([".".join(path) for path in rows.columns], cells) if cells else "No rows."


def _flat(row: _Row, above: ColumnPath = ()) -> Iterator[tuple[ColumnPath, Plain]]:
    for name, value in row.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, (*above, name))
        else:
            yield (*above, name), value


def _at(row: _Row, path: ColumnPath) -> Plain:
    """What is there; nothing below a struct that is null."""
    found: Plain = dict(row)
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _cell(value: Plain, *, null: str = "") -> str:
    match value:
        case None:
            return null
        case str():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def diff_text(before: str, after: str, stores: Sequence[StoreDiff]) -> str:
    """What `state diff` prints."""
    header = ("QUERY", "OPERATOR", "STORE", "ADDED", "REMOVED", "CHANGED", "SAME")
    lines = [f"{before} -> {after}", table(header, map(_row, stores), right=" ".join(header[3:]))]
    for store in stores:
        lines += [_sample(change) for change in store.samples]
    return "\n".join(lines)


def _row(store: StoreDiff) -> tuple[str, ...]:
    totals = store.totals
    only = f" (not in the {'first' if store.missing == 'before' else 'second'})"
    return (
        store.query or "-",
        f"{store.operator} {store.operator_name or ''}".strip(),
        store.store + (only if store.missing else ""),
        *(str(n) for n in (totals.added, totals.removed, totals.changed, totals.same)),
    )


def _sample(change: Change) -> str:
    where = f"{change.operator}/{change.store}"
    key, old, new = (_told(each) for each in (change.key, change.before, change.after))
    match change.kind:
        case "added":
            return f"+ {where} {key}: {new}"
        case "removed":
            return f"- {where} {key}: {old}"
        case _:
            return f"~ {where} {key}: {old} -> {new}"


def _told(value: Plain) -> str:
    if isinstance(value, dict):
        flat = ((".".join(path), each) for path, each in _flat(value))
        return ", ".join(f"{name}={_cut(_cell(each, null='-'))}" for name, each in flat)
    return _cell(value, null="-")


def diff_document(store: StoreDiff) -> dict[str, object]:
    """One store of `state diff`."""
    return {
        "query": store.query,
        "operator": store.operator,
        "operatorName": store.operator_name,
        "store": store.store,
        "missing": store.missing,
        **asdict(store.totals),
        "samples": [change_document(change) for change in store.samples],
    }


def change_document(change: Change) -> dict[str, object]:
    """A key that differs."""
    return {
        "change": change.kind,
        "key": change.key,
        "before": change.before,
        "after": change.after,
    }
