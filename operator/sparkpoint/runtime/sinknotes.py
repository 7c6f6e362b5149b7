"""Where queries write, in the words of a manifest, and noted beside their checkpoints.

So that a savepoint knows its sinks also when it is captured after the driver is gone.
"""

from sparkpoint.runtime.model import QuerySink
from sparkpoint.savepoint.manifest import SinkInfo
from sparkpoint.savepoint.sinknote import read_sink_note, write_sink_note
from sparkpoint.storage import Store, open_store
from sparkpoint.storage.errors import BadLocationError

__all__ = ["leave_note", "sink_info"]


def sink_info(sink: QuerySink, *, endpoint_url: str | None) -> SinkInfo:
    """As a manifest has it: places are spelled as everywhere else in it."""
    if sink.kind != "file" or sink.uri is None:
        return SinkInfo(kind=sink.kind, uri=sink.uri)
    try:
        return SinkInfo(kind="file", uri=open_store(sink.uri, endpoint_url).uri)
    except BadLocationError:
        # A store that is none of ours; whoever restores is told.
        return SinkInfo(kind="file", uri=sink.uri)


def leave_note(epoch: Store, folder: str, sink: QuerySink, *, endpoint_url: str | None) -> None:
    """Note beside the checkpoint where its query writes; nothing happens if that is known there."""
    info, query = sink_info(sink, endpoint_url=endpoint_url), epoch.child(folder)
    if read_sink_note(query) != info:
        write_sink_note(query, info)
