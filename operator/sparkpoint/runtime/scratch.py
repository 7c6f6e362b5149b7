"""The throw-away copy of a savepoint that a rehearsal runs on: beside the epoch directory.

It is filled in a thread of its own, while Spark starts. Its name follows from that of the epoch
directory, so a driver that was killed leaves nothing that the next one would not find and remove.
"""

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.checkpoint.logs import parse_commit
from sparkpoint.checkpoint.plan import batch_numbers
from sparkpoint.runtime.explaining import explain, is_foreseen
from sparkpoint.runtime.lastread import LastRead, last_read
from sparkpoint.runtime.meaning import StateNames
from sparkpoint.runtime.model import ErrorInfo
from sparkpoint.runtime.options import RehearsalOptions
from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository
from sparkpoint.savepoint.errors import SavepointError
from sparkpoint.savepoint.manifest import QueryInfo
from sparkpoint.savepoint.progress import Amount
from sparkpoint.storage import Store, open_store
from sparkpoint.storage.errors import StorageError

__all__ = ["KEPT", "Copied", "Scratch", "next_batch", "scratch_beside"]

KEPT = "rehearsed"
"""The savepoint of what a rehearsal has made."""
_SUFFIX = ".rehearsal"
_END_SECONDS = 20.0
"""How long files that are being copied may take when the copying is called off."""

logger = logging.getLogger("sparkpoint.runtime")


@dataclass(frozen=True, slots=True)
class Copied:
    """What is in the copy."""

    savepoint: str
    """`namespace/job/name`."""
    read: dict[str, LastRead]
    """Folder of each query -> what its newest batch has read, be it committed or in flight."""
    names: dict[str, StateNames]
    """Folder of each query -> what its state is made of."""


def scratch_beside(epoch_dir: str, endpoint_url: str | None) -> "Scratch | None":
    """The place of the copy; None if there is nothing beside the epoch directory."""
    parent, _, name = epoch_dir.rpartition("/")
    if not name or parent.endswith(":/"):
        return None
    return Scratch(open_store(parent or "/", endpoint_url), f"{name}{_SUFFIX}")


class Scratch:
    """A folder that is filled once, and removed as often as wanted."""

    def __init__(self, parent: Store, folder: str) -> None:
        self._parent, self._folder = parent, folder
        self._over = threading.Event()
        self._filled = threading.Event()
        self._thread: threading.Thread | None = None
        self._copied: Copied | None = None
        self._error: ErrorInfo | None = None

    @property
    def uri(self) -> str:
        """For people."""
        return f"{self._parent.uri.rstrip('/')}/{self._folder}"

    @property
    def copied(self) -> Copied | None:
        """What is in it; None if it is not whole."""
        return self._copied

    @property
    def error(self) -> ErrorInfo | None:
        """Why it could not be filled."""
        return self._error

    def checkpoint(self, folder: str) -> str:
        """Where a query finds its state, as Spark writes it."""
        return self._parent.child(self._folder).child(folder).hadoop_uri

    def begin(self, options: RehearsalOptions, *, job: str, endpoint_url: str | None) -> None:
        """Begin to fill it."""

        def fill() -> None:
            try:
                self._copied = self._fill(options, job, endpoint_url)
            except _CalledOffError:
                self._error = ErrorInfo(type="CALLED_OFF", message="The driver ends.")
            # The outermost loop of this thread: a rehearsal that cannot be is no reason not to run.
            except Exception as error:
                if not is_foreseen(error):
                    logger.exception("The copy for the rehearsal could not be made")
                self._error = explain(error)
            finally:
                self._filled.set()

        self._thread = threading.Thread(target=fill, name="sparkpoint-rehearsal-copy", daemon=True)
        self._thread.start()

    def await_filled(self, seconds: float) -> bool:
        """Wait so long at most until it is filled, or cannot be; whether that is known now."""
        return self._filled.wait(max(0.0, seconds))

    def keep(self, repository: str, *, job: str) -> None:
        """Capture what is in it now, for whoever wants to look into it; a failure is only told."""
        namespace, _, name = job.partition("/")
        request = CaptureRequest(namespace=namespace, job=name, name=KEPT)
        try:
            found = Repository.open(open_store(repository, None))
            found.capture(self._parent.child(self._folder), request)
        except (SavepointError, StorageError, CheckpointError) as error:
            logger.warning("Rehearsal: what it has made could not be captured: %s", error)

    def remove(self) -> None:
        """Call off the filling, and remove whatever there is; again is fine."""
        if self._thread is not None:
            self._over.set()
            self._thread.join(_END_SECONDS)
        try:
            self._clear()
        except StorageError as error:
            logger.warning(
                "The copy for the rehearsal, %s, could not be removed: %s. The next driver of this "
                "epoch tries again.",
                self.uri,
                error,
            )

    def remove_leftover(self) -> None:
        """Remove it if there is anything: one look."""
        try:
            folders, files = self._parent.child(self._folder).children()
        except StorageError as error:
            # Who may not look there has never had a rehearsal there.
            logger.debug("Nobody knows whether there is something at %s: %s", self.uri, error)
            return
        if folders or files:
            self.remove()

    def _clear(self) -> None:
        self._parent.remove_folder(self._folder, removed=lambda _: None)

    def _fill(self, options: RehearsalOptions, job: str, endpoint_url: str | None) -> Copied:
        self._clear()
        repository = Repository.open(open_store(options.repository, endpoint_url))
        namespace, _, name = job.partition("/")
        found = repository.find(options.savepoint, namespace=namespace, job=name)
        target = self._parent.child(self._folder)
        request = MaterializeRequest(mode=Mode.RESUME)
        progress = _Watched(self._over.is_set)
        repository.materialize(found, target, request, progress=progress)
        queries = found.manifest.queries
        read = {each.prefix: _begin_batch(target.child(each.prefix), each) for each in queries}
        names = {
            each.prefix: StateNames(target.child(each.prefix), each.operators) for each in queries
        }
        return Copied(found.key, read, names)


class _CalledOffError(Exception):
    """The copy is not wanted any more."""


class _Watched:
    """Progress that nobody looks at, and that ends the copying when it is called off."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over

    def start(self, what: str, total: Amount) -> None:
        self._check()

    def advance(self, done: Amount) -> None:
        self._check()

    def note(self, text: str) -> None:
        logger.info("Rehearsal: %s", text)

    def _check(self) -> None:
        if self._is_over():
            raise _CalledOffError


def _begin_batch(checkpoint: Store, query: QueryInfo) -> LastRead:
    """Begin the next batch if none is in flight; what the newest one has read."""
    newest = query.batch + 1 if query.pending else query.batch
    offsets = checkpoint.read(f"offsets/{newest}")
    before = _entry_before(checkpoint, newest)
    if not query.pending:
        commit = checkpoint.read(f"commits/{newest}")
        begun = next_batch(offsets, commit, newest, now=time.time())
        checkpoint.create(f"offsets/{newest + 1}", begun)
    return last_read(before, offsets, newest)


def _entry_before(checkpoint: Store, batch: int) -> bytes | None:
    """Of the offset log, which has gaps where a query tracks its progress asynchronously."""
    _, files = checkpoint.children("offsets")
    known = batch_numbers((each.path for each in files), "offsets")
    number = max((each for each in known if each < batch), default=None)
    return checkpoint.read(f"offsets/{number}") if number is not None else None


def next_batch(offsets: bytes, commit: bytes, number: int, *, now: float) -> bytes:
    """`offsets/<number + 1>` of the batch that Spark would begin now if there were no new data.

    Nothing is read from the sources, but everything is planned, all state is loaded and looked
    through for what the watermark or a timeout has ended, and written again.
    """
    version, head, *sources = offsets.decode().split("\n")
    content = json.loads(head) if head.strip() else {}
    watermark = parse_commit(commit, number).next_watermark_ms
    content["batchWatermarkMs"] = max(content.get("batchWatermarkMs", 0), watermark)
    content["batchTimestampMs"] = int(now * 1000)
    return "\n".join([version, json.dumps(content), *sources]).encode()
