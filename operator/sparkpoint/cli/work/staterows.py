"""`state query` and `state diff`."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.progress import shown_progress
from sparkpoint.cli.render.documents import savepoint_document
from sparkpoint.cli.render.staterows import (
    csv_lines,
    diff_document,
    diff_text,
    json_lines,
    rows_table,
)
from sparkpoint.cli.render.text import count
from sparkpoint.cli.work.newfile import write_pieces, writing
from sparkpoint.cli.work.places import open_repository
from sparkpoint.state.arrow import write_parquet
from sparkpoint.state.changefile import ChangeFile
from sparkpoint.state.diff import DiffRequest, diff_state
from sparkpoint.state.errors import BadQueryError
from sparkpoint.state.plain import Plain
from sparkpoint.state.query import QueryRequest, Rows, StateRows, query_state
from sparkpoint.state.selection import Selection

__all__ = ["Differing", "Querying", "compare_states", "look_into_state"]

_SHOWN = 100
"""Rows that are printed if nobody says how many."""
_FORMS = {".csv": "csv", ".parquet": "parquet"}
"""Of files, if nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Querying:
    """What the command line says about it."""

    selection: Selection
    where: str | None
    sql: str | None
    form: str | None
    """None: a table, or what the name of the file says."""
    limit: int | None
    output: Path | None
    work_dir: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """What the command line says about it."""

    selection: Selection
    samples: int
    output: Path | None
    work_dir: Path | None


def look_into_state(settings: Settings, location: str, reference: str, wanted: Querying) -> Answer:
    """Print the rows of a store, or write them to a file."""
    by_name = _FORMS.get(wanted.output.suffix.lower()) if wanted.output is not None else None
    form = wanted.form or by_name or "table"
    if form == "parquet" and wanted.output is None:
        raise BadQueryError("Parquet is no text: give a file with --output.")
    repository = open_repository(settings, location)
    savepoint = repository.find(reference)
    shown = wanted.limit or _SHOWN
    request = QueryRequest(
        selection=wanted.selection,
        where=wanted.where,
        sql=wanted.sql,
        # One more than is printed tells whether there are more.
        limit=shown + 1 if wanted.output is None else wanted.limit,
        work_folder=wanted.work_dir,
    )
    with (
        shown_progress(settings) as progress,
        query_state(repository, savepoint, request, progress=progress) as found,
    ):
        document: dict[str, object] = {
            "repository": repository.store.uri,
            "savepoint": savepoint_document(savepoint),
            "query": found.query,
            "operator": found.operator.id,
            "operatorName": found.operator.name,
            "store": found.store,
        }
        if wanted.output is not None:
            rows = _write(found, form, wanted.output)
            document |= {"output": str(wanted.output), "count": rows}
            text = f"Wrote {count(rows, 'row')} to {wanted.output}"
            return Answer(document=document, text=text, notes=tuple(progress.notes))
        return _printed(found, form, shown, document, tuple(progress.notes))


def _printed(
    found: StateRows, form: str, limit: int, document: dict[str, object], notes: tuple[str, ...]
) -> Answer:
    told = found.rows()
    rows = list(itertools.islice(told, limit))
    more = next(iter(told), None) is not None
    if more:
        notes += (f"There are more than {count(limit, 'row')}: see --limit, and --output.",)
    document |= {"count": len(rows), "more": more, "rows": rows}
    shown = Rows(told.columns, iter(rows))
    text = rows_table(shown) if form == "table" else "".join(_lines(shown, form))
    return Answer(document=document, text=text, notes=notes)


def _lines(rows: Rows, form: str) -> Iterator[str]:
    return csv_lines(rows) if form == "csv" else json_lines(rows)


def _write(found: StateRows, form: str, target: Path) -> int:
    """Write the rows as they come; the file is there only when it is whole."""
    if not target.parent.is_dir():
        raise BadQueryError(f"the directory {str(target.parent)!r} does not exist: make it first.")
    if form == "parquet":
        with writing(target):
            return write_parquet(found.batches(), target)
    rows, total = found.rows(), 0

    def counted() -> Iterator[dict[str, Plain]]:
        nonlocal total
        for row in rows:
            total += 1
            yield row

    write_pieces(target, _lines(Rows(rows.columns, counted()), form))
    return total


def compare_states(
    settings: Settings, location: str, references: tuple[str, str], wanted: Differing
) -> Answer:
    """Tell what differs between the state of two savepoints."""
    repository = open_repository(settings, location)
    before, after = (repository.find(each) for each in references)
    request = DiffRequest(
        selection=wanted.selection, samples=wanted.samples, work_folder=wanted.work_dir
    )
    output = wanted.output
    with shown_progress(settings) as progress, writing(output), ChangeFile(output) as file:
        stores = diff_state(repository, before, after, request, take=file.take, progress=progress)
    differing = sum(s.totals.added + s.totals.removed + s.totals.changed for s in stores)
    document = {
        "repository": repository.store.uri,
        "before": savepoint_document(before),
        "after": savepoint_document(after),
        "same": differing == 0,
        "stores": [diff_document(store) for store in stores],
        "output": str(output) if output else None,
    }
    text = diff_text(before.key, after.key, stores)
    if output is not None:
        text += f"\nWrote {count(differing, 'difference')} to {output}"
    elif differing == 0:
        text += "\nThe state is the same."
    return Answer(document=document, text=text, notes=tuple(progress.notes))
