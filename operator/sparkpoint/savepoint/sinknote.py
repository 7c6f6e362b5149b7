"""The note beside a checkpoint that says where its query writes.

Whoever runs a query leaves it, because the checkpoint itself does not say, and a capture may come
when nobody is left to ask: the job is suspended, or its node is lost. It lies in `.sparkpoint/` of
the query's folder, which Spark does not look into and no savepoint contains.
"""

from typing import Literal

from sparkpoint.savepoint.errors import DamagedError, NewerFormatError
from sparkpoint.savepoint.manifest import SinkInfo, Strict, canonical, parse_document
from sparkpoint.storage import Store
from sparkpoint.storage.errors import NotFoundError

__all__ = ["is_sink_note", "read_sink_note", "write_sink_note"]

_NOTE = ".sparkpoint/sink.json"
_LIMIT = 64 * 1024


class _SinkNote(Strict):
    format: Literal[1] = 1
    sink: SinkInfo


def is_sink_note(path: str) -> bool:
    """Whether a file below an epoch directory, or below a query's folder, is such a note."""
    return path == _NOTE or path.endswith(f"/{_NOTE}")


def read_sink_note(query: Store) -> SinkInfo | None:
    """Where the query in this folder writes; None if there is no note, or none that can be read."""
    try:
        data = query.read(_NOTE, limit=_LIMIT)
        return parse_document(_SinkNote, data, f"{query.uri}/{_NOTE}").sink
    except (NotFoundError, DamagedError, NewerFormatError):
        # A savepoint that does not know a sink can be resumed, and is not rewound.
        return None


def write_sink_note(query: Store, sink: SinkInfo) -> None:
    """Leave the note, in place of an earlier one."""
    query.put(_NOTE, [canonical(_SinkNote(sink=sink))])
