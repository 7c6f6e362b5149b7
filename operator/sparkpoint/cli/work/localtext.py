"""What `sparkpoint local` prints, as text and as JSON."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from sparkpoint.cli.render.text import age, fields, moment, new_share, seconds, size, table
from sparkpoint.cli.work.localhome import AgentNote, Home
from sparkpoint.runtime.model import (
    Progress,
    QueryEnd,
    QueryProgress,
    SavepointSummary,
    Termination,
)

__all__ = [
    "ending_text",
    "savepoint_document",
    "savepoint_text",
    "status_document",
    "status_text",
    "stop_document",
    "stop_text",
]

_HEADER = ("QUERY", "STATUS", "BATCH", "ROWS/S", "STATE-ROWS", "WATERMARK", "COMMITTED")


def status_text(note: AgentNote, progress: Progress, now: datetime) -> str:
    """Who it is, and a table."""
    who = f"{note.job}, epoch {note.epoch}, {progress.phase}, process {note.pid}"
    if not progress.queries:
        return f"{who}\nNo query was started yet."
    rows = (_row(query, now) for query in progress.queries)
    return f"{who}\n{table(_HEADER, rows, right='BATCH ROWS/S STATE-ROWS')}"


def _row(query: QueryProgress, now: datetime) -> tuple[str, ...]:
    return (
        query.name,
        _status(query),
        "-" if query.batch is None else str(query.batch),
        f"{query.input_rows_per_second:.1f}",
        str(query.state_rows),
        query.watermark or "-",
        age(query.last_commit, now) if query.last_commit else "-",
    )


def _status(query: QueryProgress) -> str:
    if query.error is not None:
        return "failed"
    return "running" if query.active else "ended"


def status_document(home: Home, note: AgentNote, progress: Progress) -> dict[str, object]:
    """The same for scripts."""
    return {
        **_run(home, note),
        "phase": progress.phase,
        "pid": note.pid,
        "agent": note.url,
        "repository": note.repository,
        "queries": [_query(query) for query in progress.queries],
    }


def _query(query: QueryProgress) -> dict[str, object]:
    return {
        "name": query.name,
        "id": query.id,
        "active": query.active,
        "batch": query.batch,
        "inputRowsPerSecond": query.input_rows_per_second,
        "processedRowsPerSecond": query.processed_rows_per_second,
        "batchSeconds": query.batch_seconds,
        "stateRows": query.state_rows,
        "stateBytes": query.state_bytes,
        "watermark": query.watermark,
        "lastCommit": moment(query.last_commit) if query.last_commit else None,
        "checkpoint": query.checkpoint,
        "error": query.error.message if query.error else None,
    }


def savepoint_text(note: AgentNote, made: SavepointSummary) -> str:
    """What `savepoint` prints."""
    lines = fields(
        [
            ("id", made.id),
            ("batches", _batches(made)),
            ("files", str(made.files)),
            ("bytes", size(made.bytes)),
            ("new bytes", new_share(made.new_bytes, made.bytes)),
            ("seconds", f"{made.seconds:.2f}"),
            ("parent", made.parent or "none"),
        ]
    )
    return "\n".join([f"Created {note.job}/{made.name}", *lines])


def _batches(made: SavepointSummary) -> str:
    return ", ".join(f"{query} {batch}" for query, batch in made.batches.items())


def savepoint_document(home: Home, note: AgentNote, made: SavepointSummary) -> dict[str, object]:
    """The same for scripts."""
    return {**_run(home, note), "repository": note.repository, **_made(made)}


def _made(made: SavepointSummary) -> dict[str, object]:
    return {
        "id": made.id,
        "name": made.name,
        "batches": dict(made.batches),
        "files": made.files,
        "bytes": made.bytes,
        "newBytes": made.new_bytes,
        "seconds": made.seconds,
        "created": moment(made.created) if made.created else None,
        "parent": made.parent,
        "pending": made.pending,
        "leftOut": list(made.left_out),
    }


def stop_text(
    note: AgentNote, queries: Mapping[str, QueryEnd], took: float, made: SavepointSummary | None
) -> str:
    """What `stop` prints."""
    lines = [f"Stopped {note.job}, epoch {note.epoch}, in {seconds(took)}"]
    lines += [f"  {line}" for line in _ends(queries)]
    if made is not None:
        lines.append(savepoint_text(note, made))
    return "\n".join(lines)


def _ends(queries: Mapping[str, QueryEnd]) -> Iterator[str]:
    for name, end in queries.items():
        batch = "no batch" if end.batch is None else f"batch {end.batch}"
        state = "clean" if end.clean else "not clean: a batch had begun, and will be run again"
        died = f", died: {end.error.message}" if end.error else ""
        yield f"{name}  {batch}  {state}{died}"


def stop_document(
    home: Home,
    note: AgentNote,
    queries: Mapping[str, QueryEnd],
    took: float,
    made: SavepointSummary | None,
) -> dict[str, object]:
    """The same for scripts."""
    return {
        **_run(home, note),
        "clean": all(end.clean for end in queries.values()),
        "queries": {
            name: {
                "batch": end.batch,
                "clean": end.clean,
                "error": end.error.message if end.error else None,
            }
            for name, end in queries.items()
        },
        "seconds": round(took, 3),
        "savepoint": _made(made) if made else None,
    }


def ending_text(termination: Termination, when: float, now: datetime) -> str:
    """How the last run ended, in a sentence."""
    ended = age(datetime.fromtimestamp(when, UTC), now)
    ends = "; ".join(_ends(termination.queries))
    known = f" ({ends})" if ends else ""
    code = f" with exit code {termination.exit_code}" if termination.exit_code else ""
    return (
        f"The last run, of epoch {termination.epoch}, ended {ended}{code}: "
        f"{termination.message.rstrip('.')}{known}."
    )


def _run(home: Home, note: AgentNote) -> dict[str, object]:
    return {"home": str(home.root), "job": note.job, "epoch": note.epoch}
