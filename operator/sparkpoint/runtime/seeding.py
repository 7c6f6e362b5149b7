"""The empty beginning of the log that a fork's new file sink needs: without, Spark cannot read it.

It is put there before the query starts, again and again until the fork has committed a batch of its
own, so that a driver which is killed meanwhile leaves nothing half-done.
"""

import logging

from sparkpoint.checkpoint.names import batch_number
from sparkpoint.checkpoint.sink import SINK_LOG, read_sink_log, seed_sink
from sparkpoint.savepoint.contents import Mode
from sparkpoint.savepoint.marker import Marker, read_marker
from sparkpoint.savepoint.sinks import SinkAction, apply_sink
from sparkpoint.storage import Store, open_store
from sparkpoint.storage.errors import BadLocationError

__all__ = ["seed_fork"]

logger = logging.getLogger("sparkpoint.runtime")


def seed_fork(epoch: Store, folder: str, sink_uri: str, *, endpoint_url: str | None) -> None:
    """Do it if the query in this folder is a fork that has not committed anything yet."""
    marker = read_marker(epoch)
    if marker is None or marker.mode != Mode.FORK.value or folder not in marker.query_ids:
        return
    batch = _restored_batch(marker, folder)
    if batch is None or _newest(epoch, f"{folder}/commits") != batch:
        return
    try:
        sink = open_store(sink_uri, endpoint_url)
    except BadLocationError as error:
        logger.warning("Query %s: Spark may not be able to read its new sink: %s", folder, error)
        return
    seeds = seed_sink(batch)
    present = {entry.path.rsplit("/", 1)[-1] for entry in sink.children(SINK_LOG)[1]}
    # What is there may be a beginning that was begun, and nothing else.
    if set(read_sink_log(present).entries.values()) - seeds.keys():
        return
    created = tuple((f"{SINK_LOG}/{name}", data) for name, data in seeds.items())
    apply_sink(SinkAction(folder, sink.uri, create=created), sink)
    logger.info("Query %s: the log of its new sink %s begins at batch %d", folder, sink.uri, batch)


def _restored_batch(marker: Marker, folder: str) -> int | None:
    prefix = f"{folder}/commits/"
    names = (path.removeprefix(prefix) for path in marker.files if path.startswith(prefix))
    numbers = (batch_number(name) for name in names)
    return max((number for number in numbers if number is not None), default=None)


def _newest(store: Store, log: str) -> int | None:
    numbers = (batch_number(entry.path.rsplit("/", 1)[-1]) for entry in store.children(log)[1])
    return max((number for number in numbers if number is not None), default=None)
