"""What a driver begins from: a savepoint, put into its epoch directory while Spark starts.

No query starts before it is whole. The same call again finishes what a driver that was killed has
begun, and does nothing if it is done; so it is asked for only until the gate was opened once.
"""

import logging
import threading
from collections.abc import Callable

from sparkpoint.checkpoint.sink import SINK_LOG, read_sink_log
from sparkpoint.runtime.explaining import explain, is_foreseen
from sparkpoint.runtime.model import ErrorInfo
from sparkpoint.runtime.options import RestoreOptions
from sparkpoint.runtime.seeding import OTHERS_OUTPUT
from sparkpoint.savepoint import MaterializeRequest, Mode, Repository, Savepoint
from sparkpoint.savepoint.errors import NoQueryError, SinkConflictError
from sparkpoint.savepoint.manifest import Manifest
from sparkpoint.savepoint.progress import Amount
from sparkpoint.savepoint.sinks import SinkPolicy, doubts
from sparkpoint.savepoint.uses import note_restore
from sparkpoint.storage import Store, open_store
from sparkpoint.storage.errors import BadLocationError, StorageError

__all__ = ["Restoring", "check_folders"]

logger = logging.getLogger("sparkpoint.runtime")


class Restoring:
    """Fills the epoch directory in a thread; whoever needs it waits."""

    def __init__(
        self, options: RestoreOptions, target: Store, *, job: str, endpoint_url: str | None
    ) -> None:
        self._options, self._target, self._job = options, target, job
        self._endpoint_url = endpoint_url
        self._over = threading.Event()
        self._error: ErrorInfo | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, well or not."""
        return self._over.is_set()

    def begin(self, failed: Callable[[ErrorInfo], None]) -> None:
        """Begin; `failed` is called if it cannot be."""

        def restore() -> None:
            try:
                self._restore()
            # The outermost loop of this thread: the driver ends with what went wrong.
            except Exception as error:
                if not is_foreseen(error):
                    logger.exception("The savepoint could not be restored")
                self._error = explain(error)
                failed(self._error)
            finally:
                self._over.set()

        threading.Thread(target=restore, name="sparkpoint-restore", daemon=True).start()

    def wait(self) -> bool:
        """Wait until it is over; whether all is there."""
        self._over.wait()
        return self._error is None

    def _restore(self) -> None:
        options = self._options
        repository = Repository.open(
            open_store(options.repository, options.endpoint_url or self._endpoint_url)
        )
        namespace, _, name = self._job.partition("/")
        found = repository.find(options.savepoint, namespace=namespace, job=name)
        mode = Mode(options.sink)
        check_folders(found)
        if f"{found.manifest.namespace}/{found.manifest.job}" != self._job:
            _check_not_ours(found, mode)
        looked_at = _known_sinks(found.manifest, self._endpoint_url, mode)
        for doubt in doubts(found.manifest, looked_at, mode=mode):
            logger.warning("Restoring: %s", doubt)
        sinks = {query: sink for query, sink in looked_at.items() if sink is not None}
        request = MaterializeRequest(mode=mode, sink_policy=_POLICIES[mode], sinks=sinks)
        result = repository.materialize(found, self._target, request, progress=_Logged())
        logger.info(
            "Restored %s into %s: %d of %d files copied, %.1f s",
            found.key,
            result.uri,
            result.copied_files,
            result.files,
            result.seconds,
        )
        try:
            note_restore(repository.store, found, target=result.uri, mode=mode.value)
        except StorageError as error:
            # The restore is done: that `sparkpoint log` will not show it is no reason to fail.
            logger.warning("`sparkpoint log` will not show this restore: %s", error)


def check_folders(found: Savepoint) -> None:
    """NoQueryError if no driver can begin from it: queries look for their state in a folder of
    their name, and begin without it elsewhere."""
    if any(not query.prefix for query in found.manifest.queries):
        raise NoQueryError(
            f"{found.key} is of the checkpoint of a single query, without a folder of its name: "
            "the query would begin without its state. Restore it into a directory, and let the job "
            "adopt that (spec.checkpoint.adopt, with the query's name in adoptAs)."
        )


def _check_not_ours(found: Savepoint, mode: Mode) -> None:
    """Another job may be writing where its savepoint says: its sink is not ours to cut."""
    queries = found.manifest.queries
    written = [query.sink.uri for query in queries if query.sink and query.sink.uri]
    if mode is Mode.REWIND and written:
        raise SinkConflictError(
            f"{found.key} is a savepoint of another job, which writes to {', '.join(written)}: "
            "rewinding would cut its output. Restore it with the sink policy fork, and let the "
            "script write elsewhere."
        )
    for query in queries if mode is Mode.RESUME else ():
        if query.pending and query.operators and query.sink and query.sink.kind == "file":
            raise SinkConflictError(
                f"{found.key} is a savepoint of another job, taken while batch {query.batch + 1} "
                f"of query {query.prefix} was in flight: to do it again for its state, it would "
                f"have to be cut from that job's output in {query.sink.uri}. {OTHERS_OUTPUT}"
            )


_POLICIES = {
    Mode.RESUME: SinkPolicy.REFUSE,
    Mode.REWIND: SinkPolicy.TRUNCATE,
    # Where a fork writes is known to the script alone.
    Mode.FORK: SinkPolicy.IGNORE,
}


def _known_sinks(
    manifest: Manifest, endpoint_url: str | None, mode: Mode
) -> dict[str, Store | None]:
    """Query folder -> its file sink, for those that the savepoint knows; None if it is new.

    A fork must not touch the sink of the query that it leaves. Whoever resumes says that nothing
    was written since, so that a sink which cannot be looked at is believed to stand where it stood;
    so is one without a log, which may be new: its first batch was still to come.
    """
    if mode is Mode.FORK:
        return {}
    if mode is Mode.REWIND:
        _check_known(manifest)
    found: dict[str, Store | None] = {}
    for query in manifest.queries:
        if query.sink is None or query.sink.kind != "file" or not query.sink.uri:
            continue
        try:
            sink = open_store(query.sink.uri, endpoint_url)
            is_new = mode is Mode.RESUME and _is_new(sink)
            found[query.prefix] = None if is_new else sink
            if is_new:
                _believe_new(query.prefix, query.sink.uri)
        except BadLocationError as error:
            if mode is Mode.REWIND:
                # Of a kind that we never can look at: trying again is of no use.
                raise SinkConflictError(
                    f"The sink of query {query.prefix} cannot be rewound: {error} {_WAYS_OUT}"
                ) from error
            _believe(query.prefix, query.sink.uri, error)
        except StorageError as error:
            if mode is Mode.REWIND:
                raise
            _believe(query.prefix, query.sink.uri, error)
    return found


def _is_new(sink: Store) -> bool:
    """Whether it has no batch; a driver that was killed in its first may have left hidden files."""
    names = (entry.path.rsplit("/", 1)[-1] for entry in sink.children(SINK_LOG)[1])
    return read_sink_log(names).latest is None


_WAYS_OUT = (
    "Restore it with `sink: Resume` if the sink stands where the savepoint does or does not "
    "remember batches, or with `sink: Fork` to go on as another query, which writes elsewhere."
)


def _check_known(manifest: Manifest) -> None:
    """A rewind must know what it rewinds: Spark skips, without a word, what a sink has seen.

    Every driver notes its sinks, so this is the checkpoint of another tool, or of a version from
    before the notes.
    """
    for query in manifest.queries:
        sink = query.sink
        if sink is None or (sink.kind == "file" and not sink.uri):
            raise SinkConflictError(
                f"Where query {query.prefix} writes is not known to the savepoint, so it cannot be "
                f"rewound: a file sink or a table that has batches after {query.batch} would skip "
                f"them, output and state. {_WAYS_OUT}"
            )


def _believe(query: str, uri: str, error: StorageError) -> None:
    logger.warning(
        "Restoring: the sink of query %s, %s, cannot be looked at: %s", query, uri, error
    )


def _believe_new(query: str, uri: str) -> None:
    logger.warning(
        "Restoring: the sink of query %s, %s, has no %s: unless it is new, its output is gone",
        query,
        uri,
        SINK_LOG,
    )


class _Logged:
    """Progress as log lines, a few of them."""

    def __init__(self) -> None:
        self._total = Amount(0, 0)
        self._done = 0
        self._told = 0

    def start(self, what: str, total: Amount) -> None:
        self._total = total
        logger.info("Restoring: %s, %d files, %d bytes", what, total.files, total.bytes)

    def advance(self, done: Amount) -> None:
        self._done += done.bytes
        tenth = 10 * self._done // max(1, self._total.bytes)
        if tenth > self._told:
            self._told = tenth
            logger.info("Restoring: %d %%", 10 * tenth)

    def note(self, text: str) -> None:
        logger.info("Restoring: %s", text)
