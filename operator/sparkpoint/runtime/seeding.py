"""The file sink of a query that begins from a savepoint, looked at before it starts.

It must not know batches that are still to come; the one in flight, whose state was left behind, is
cut off, as a restore does that knows the sink. A fork's new one gets the empty beginning of the log
without which Spark cannot read it: before the query starts, again and again until the fork has
committed a batch of its own, so that a driver which is killed meanwhile leaves nothing half-done.
"""

import logging
from functools import partial
from typing import TypeVar

from sparkpoint.checkpoint.errors import CannotRewindError
from sparkpoint.checkpoint.names import batch_number, versioned_name
from sparkpoint.checkpoint.sink import SINK_LOG, SinkLog, read_sink_log, seed_sink
from sparkpoint.savepoint.contents import Mode
from sparkpoint.savepoint.errors import SinkConflictError
from sparkpoint.savepoint.marker import Marker, read_marker
from sparkpoint.savepoint.sinks import SinkAction, apply_sink, cut_log
from sparkpoint.storage import Store, open_store
from sparkpoint.storage.errors import StorageError

__all__ = ["OTHERS_OUTPUT", "prepare_sink"]

OTHERS_OUTPUT = (
    "Restore it with `sink: Fork`, and let the script write elsewhere; or suspend that job, and "
    "resume from the savepoint that this takes."
)
"""What to do about a batch in flight of another job."""

logger = logging.getLogger("sparkpoint.runtime")


def prepare_sink(
    epoch: Store, folder: str, sink_uri: str, *, job: str, endpoint_url: str | None
) -> None:
    """For a query of the job that begins from a savepoint and has not committed anything since.

    SinkConflictError if its sink knows batches that it has not begun: Spark would skip them, and
    lose their state too; or if one is to be cut that may be another job's. CannotRewindError or
    StorageError if it cannot be.
    """
    marker = read_marker(epoch)
    if marker is None or folder not in marker.query_ids:
        return
    batch = _restored(marker, f"{folder}/commits")
    if batch is None or _newest(epoch, f"{folder}/commits") != batch:
        return
    begun = _restored(marker, f"{folder}/offsets") or batch
    lacks_state = partial(_lacks_state, epoch, marker, f"{folder}/state", begun + 1)
    try:
        sink = open_store(sink_uri, endpoint_url)
        names = [entry.path.rsplit("/", 1)[-1] for entry in sink.children(SINK_LOG)[1]]
    except StorageError as error:
        if begun > batch and error.retry_helps and lacks_state():
            raise _not_repeatable(
                error, folder, begun, f"may be in {sink_uri}", "looked for"
            ) from error
        logger.warning("Query %s: its sink could not be looked at: %s", folder, error)
        return
    log = read_sink_log(names)
    if _newest(epoch, f"{folder}/offsets") == begun and (log.latest or 0) > begun:
        raise SinkConflictError(
            f"Query {folder} goes on after batch {batch}, and {sink.uri} has output up to batch "
            f"{log.latest}: Spark would skip the batches between, and lose their state too. Let "
            "the script write elsewhere, or to where the savepoint's own output is."
        )
    if log.latest == begun > batch and lacks_state():
        _check_ours(marker, job, folder, sink.uri, begun)
        _cut(folder, sink, names, batch)
    if marker.mode == Mode.FORK.value:
        _seed(folder, sink, log, batch)


def _seed(folder: str, sink: Store, log: SinkLog, batch: int) -> None:
    seeds = seed_sink(batch)
    # What is there may be a beginning that was begun, and nothing else.
    if set(log.entries.values()) - seeds.keys():
        return
    created = tuple((f"{SINK_LOG}/{name}", data) for name, data in seeds.items())
    apply_sink(SinkAction(folder, sink.uri, create=created), sink)
    logger.info("Query %s: the log of its new sink %s begins at batch %d", folder, sink.uri, batch)


def _check_ours(marker: Marker, job: str, folder: str, uri: str, batch: int) -> None:
    """What another job has written is not ours to cut: it may have committed the batch since."""
    if marker.key is not None and not marker.key.startswith(f"{job}/"):
        raise SinkConflictError(
            f"{marker.key} is a savepoint of another job, taken while batch {batch} of query "
            f"{folder} was in flight: to do it again for its state, it would have to be cut from "
            f"the output in {uri}, which may be that job's. {OTHERS_OUTPUT}"
        )


def _cut(folder: str, sink: Store, names: list[str], batch: int) -> None:
    try:
        if action := cut_log(folder, sink.uri, names, batch=batch, committed=batch):
            apply_sink(action, sink)
            told = "Query %s: batch %d is cut from %s and done again, for its state"
            logger.info(told, folder, batch + 1, sink.uri)
    except (CannotRewindError, StorageError) as error:
        raise _not_repeatable(error, folder, batch + 1, f"is in {sink.uri}", "cut from") from error


_Error = TypeVar("_Error", bound=Exception)


def _not_repeatable(error: _Error, folder: str, batch: int, where: str, what: str) -> _Error:
    """The same error, as going on means: Spark would skip that batch, and lose its state."""
    return type(error)(
        f"Query {folder}: batch {batch} {where} and has to be done again for its state, but could "
        f"not be {what} there: {error} Put that right and start again, or restore with "
        "`sink: Fork` and let the script write elsewhere."
    )


def _lacks_state(epoch: Store, marker: Marker, state: str, version: int) -> bool:
    """Whether the query has state, and not this version: its batch has not run here.

    A batch reaches the sink after its state is whole. Spark skips one that the sink has already.
    """
    if not any(path.startswith(f"{state}/") for path in marker.files):
        return False
    parsed = (versioned_name(entry.path.rsplit("/", 1)[-1]) for entry in epoch.list(state))
    return all(name is None or name.version != version for name in parsed)


def _restored(marker: Marker, log: str) -> int | None:
    prefix = f"{log}/"
    names = (path.removeprefix(prefix) for path in marker.files if path.startswith(prefix))
    numbers = (batch_number(name) for name in names)
    return max((number for number in numbers if number is not None), default=None)


def _newest(store: Store, log: str) -> int | None:
    numbers = (batch_number(entry.path.rsplit("/", 1)[-1]) for entry in store.children(log)[1])
    return max((number for number in numbers if number is not None), default=None)
