"""The process that captures: `python -m sparkpoint.runtime.capturing`, started by the agent.

A process of its own, so that hashing takes no turn of the driver's interpreter, its memory is not
the driver's, and killing it at any moment hurts neither the driver nor the repository. It reads an
Order, answers that it is ready, reads Go, and tells how far it is until it ends with a result or an
error (see orders.py). When its input ends the driver is gone, and so is the reason to go on.
"""

import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import IO

from sparkpoint.checkpoint.errors import NothingCommittedError
from sparkpoint.checkpoint.names import batch_number
from sparkpoint.runtime.explaining import explain, is_foreseen
from sparkpoint.runtime.model import QuerySink, SavepointSummary
from sparkpoint.runtime.orders import Counted, Go, Line, Order, folder_of
from sparkpoint.runtime.sinknotes import sink_info
from sparkpoint.runtime.summaries import summarize
from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint
from sparkpoint.savepoint.catalogue import read_if_present
from sparkpoint.savepoint.describe import StateCount
from sparkpoint.savepoint.errors import NameTakenError, NoQueryError
from sparkpoint.savepoint.leases import hold
from sparkpoint.savepoint.names import manifest_path
from sparkpoint.savepoint.progress import Amount
from sparkpoint.storage import open_store

__all__ = ["Capture", "Reporter", "main"]

logger = logging.getLogger("sparkpoint.runtime")

_PAUSE = 0.2
"""Seconds between two lines about how far it is."""
_TRIGGER = "agent"


class Capture:
    """One savepoint: what can be looked at before (`prepare`), and the rest (`take`)."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._source = open_store(order.source, order.source_endpoint)
        self._repository = Repository.init(open_store(order.repository, order.repository_endpoint))
        for note in self._repository.notes:
            logger.warning("savepoint: %s", note)
        self._path = manifest_path(order.namespace, order.job, order.name)

    def prepare(self) -> None:
        """Fail now if it cannot come to anything: the job still runs."""
        existing = self._existing()
        if existing is not None:
            self._check_ours(existing)
        if self._order.stops:
            # Writing and deleting a lease is the proof that the repository takes writes.
            with hold(self._repository.store, f"check before a stop: {self._path}"):
                pass

    def take(
        self,
        checkpoints: Mapping[str, str],
        report: "Reporter",
        *,
        sinks: Mapping[str, QuerySink] | None = None,
        counted: Mapping[str, Counted] | None = None,
    ) -> SavepointSummary:
        """Capture, unless this very savepoint exists: an agent before us may have made it.

        `sinks`: query -> where it writes, as far as the caller knows; of the others, the notes
        tell that the driver has left beside their checkpoints. `counted`: how much state each had.
        """
        folders, left_out = self._folders(checkpoints)
        names = {folder: query for query, folder in folders.items()}
        existing = self._existing()
        if existing is None:
            try:
                request = self._request(folders, sinks or {}, counted or {})
                found = self._repository.capture(self._source, request, progress=report)
                existing = found.savepoint
            except NameTakenError as error:
                if error.existing is None:
                    raise
                existing = error.existing
        self._check_ours(existing)
        self._repository.tag(existing, self._order.tags)
        uri = self._repository.store.uri
        return summarize(existing, uri, names=names, left_out=left_out)

    def _request(
        self,
        folders: Mapping[str, str],
        sinks: Mapping[str, QuerySink],
        counted: Mapping[str, Counted],
    ) -> CaptureRequest:
        order = self._order
        return CaptureRequest(
            namespace=order.namespace,
            job=order.job,
            name=order.name,
            parent=order.parent,
            queries=tuple(folders.values()),
            tags=order.tags,
            revision=order.revision,
            spark_version=order.spark_version,
            epoch=order.epoch,
            trigger=order.trigger or _TRIGGER,
            sinks={
                folders[query]: sink_info(sink, endpoint_url=order.source_endpoint)
                for query, sink in sinks.items()
                if query in folders
            },
            counts={
                folders[query]: StateCount(batch=each.batch, rows=each.rows, counts=each.counts)
                for query, each in counted.items()
                if query in folders
            },
        )

    def _existing(self) -> Savepoint | None:
        return read_if_present(self._repository.store, self._path)

    def _check_ours(self, found: Savepoint) -> None:
        """NameTakenError unless it is what this order would make."""
        manifest, order = found.manifest, self._order
        same = (
            (manifest.source.uri, self._source.uri, "checkpoint"),
            (manifest.source.epoch, order.epoch, "epoch"),
            (manifest.revision, order.revision, "revision"),
            (manifest.trigger, order.trigger or _TRIGGER, "trigger"),
        )
        for was, wanted, what in same:
            if was != wanted:
                raise NameTakenError(
                    f"{self._where} exists already, of {what} {was}; this one is of {wanted}. "
                    "Choose another name, or delete that savepoint.",
                    found,
                )
        if order.stops and not self._is_where_queries_stand(found):
            raise NameTakenError(
                f"{self._where} exists already, and the job has gone on since. Choose another "
                "name for the savepoint of this stop.",
                found,
            )

    def _is_where_queries_stand(self, savepoint: Savepoint) -> bool:
        """Whether each has committed and begun since just what the savepoint holds: a batch that
        took longer than a stop allows was interrupted, and is in it to be done again."""
        return all(
            self._newest(query.prefix, "commits") == query.batch
            and self._newest(query.prefix, "offsets") == query.batch + query.pending
            for query in savepoint.manifest.queries
        )

    def _folders(self, checkpoints: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """Query -> folder to take, and the queries that have not begun a batch yet."""
        folders: dict[str, str] = {}
        left_out: list[str] = []
        for query, checkpoint in sorted(checkpoints.items()):
            folder = folder_of(self._order.source, checkpoint)
            if folder is None:
                raise NoQueryError(
                    f"The checkpoint of query {query!r}, {checkpoint}, is not right below the "
                    f"epoch directory {self._order.source}: a savepoint cannot take it along."
                )
            if self._newest(folder, "offsets") is None:
                left_out.append(query)
            else:
                folders[query] = folder
        if not folders:
            raise NothingCommittedError(
                f"No query of {self._source.uri} has begun a batch yet. Ask again when one has."
            )
        return folders, left_out

    def _newest(self, folder: str, log: str) -> int | None:
        _, entries = self._source.children(f"{folder}/{log}")
        numbers = (batch_number(entry.path.rsplit("/", 1)[-1]) for entry in entries)
        return max((number for number in numbers if number is not None), default=None)

    @property
    def _where(self) -> str:
        return f"{self._repository.store.uri}/{self._path}"


class Reporter:
    """Says how far a capture is: called from many threads, heard a few times a second."""

    def __init__(
        self, say: Callable[[Line], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._lock = threading.Lock()
        self._line = Line(stage="")
        self._said = float("-inf")

    def start(self, what: str, total: Amount) -> None:
        """A phase begins."""
        with self._lock:
            self._line = Line(stage=what, total_bytes=total.bytes)
            self._tell()

    def advance(self, done: Amount) -> None:
        """This much more is done."""
        with self._lock:
            so_far = self._line.done_bytes + done.bytes
            self._line = self._line.model_copy(update={"done_bytes": so_far})
            if self._clock() - self._said >= _PAUSE:
                self._tell()

    def note(self, text: str) -> None:
        """For the driver's log."""
        print(f"savepoint: {text}", file=sys.stderr, flush=True)

    def _tell(self) -> None:
        self._said = self._clock()
        self._say(self._line)


class _Input:
    """Lines of standard input, without a buffer that a dying interpreter would have to lock."""

    def __init__(self) -> None:
        self._rest = b""

    def line(self) -> bytes | None:
        """The next line; None at the end."""
        while b"\n" not in self._rest:
            data = os.read(0, 65536)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def end_with_it(self) -> None:
        """End this process as soon as the input does."""

        def watch() -> None:
            while os.read(0, 4096):
                pass
            os._exit(1)

        threading.Thread(target=watch, name="parent", daemon=True).start()


def main() -> int:
    """Do one order."""
    output = _own_output()
    # A lease that is held is given back on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    source = _Input()

    def say(line: Line) -> None:
        output.write(line.model_dump_json(exclude_defaults=True).encode() + b"\n")

    try:
        return _work(source, say)
    # The outermost loop of this process: whatever it is, the agent shall hear it.
    except Exception as error:
        if not is_foreseen(error):
            traceback.print_exc()
        say(Line(error=explain(error)))
        return 1


def _work(source: _Input, say: Callable[[Line], None]) -> int:
    order = source.line()
    if order is None:
        return 1
    return _do(Order.model_validate_json(order), source, say)


def _do(order: Order, source: _Input, say: Callable[[Line], None]) -> int:
    capture = Capture(order)
    capture.prepare()
    say(Line(ready=True))
    go = source.line()
    if go is None:
        return 1
    source.end_with_it()
    wanted = Go.model_validate_json(go)
    taken = capture.take(
        wanted.checkpoints, Reporter(say), sinks=wanted.sinks, counted=wanted.counted
    )
    say(Line(result=taken))
    return 0


def _own_output() -> IO[bytes]:
    """Standard output for our lines only: whatever else prints goes to the driver's log."""
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return output


if __name__ == "__main__":
    sys.exit(main())
