"""The job while it runs: what the script, the agent and the signals meet in.

One cause ends it, the first; then every query is brought to its boundary, once, and nothing starts
any more. All of it is safe from any thread; nothing here waits for Spark while it holds the lock.
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sparkpoint.runtime.ending import Cause, Ending, conclude, query_failed, script_cause
from sparkpoint.runtime.errors import PromiseError, ScriptOver
from sparkpoint.runtime.execution import Execution, LostError
from sparkpoint.runtime.gate import Gate, Passage
from sparkpoint.runtime.identity import Identities, Identity
from sparkpoint.runtime.model import (
    EndReason,
    ErrorInfo,
    GateInfo,
    Progress,
    QuerySink,
    RehearsalInfo,
    StopReport,
    Termination,
)
from sparkpoint.runtime.options import Options
from sparkpoint.runtime.progress import ProgressTracker
from sparkpoint.runtime.promises import broken_promises
from sparkpoint.runtime.queries import StartedQuery, stop_queries
from sparkpoint.runtime.restoring import Restoring
from sparkpoint.runtime.script import ScriptEnd
from sparkpoint.runtime.seeding import prepare_sink
from sparkpoint.runtime.sinknotes import leave_note
from sparkpoint.runtime.writing import Asked, Launch
from sparkpoint.storage import Store
from sparkpoint.storage.errors import StorageError

__all__ = ["RunningJob"]

logger = logging.getLogger("sparkpoint.runtime")


class Rehearsing(Protocol):
    """What goes on before the job begins; see rehearsal.py."""

    def info(self) -> RehearsalInfo: ...
    def close(self) -> None: ...


class RunningJob:
    """Implements model.Job for the agent and hooks.Script for the script."""

    def __init__(self, options: Options, directory: Store) -> None:
        self._options, self._directory = options, directory
        self._gate = Gate(options.epoch, gated=options.gated, deadline=options.gate_deadline)
        self._tracker = ProgressTracker()
        self._identities = Identities()
        self._changed = threading.Condition()
        self._queries: dict[str, StartedQuery] = {}
        self._sessions: set[str] = set()
        self._made_session = False
        self._starting = 0
        self._cause: Cause | None = None
        self._report: StopReport | None = None
        self._script: ScriptEnd | None = None
        self._held = self._finished = False
        self._savepoint: str | None = None
        self._rehearsal: Rehearsing | None = None
        self._restoring: Restoring | None = None

    # --- for the agent ---------------------------------------------------------------------------

    def progress(self) -> Progress:
        """Everything as it is now, from memory."""
        return Progress.model_validate(
            {
                "job": self._options.job,
                "epoch": self._options.epoch,
                "phase": self._phase(),
                "gate": self._gate.info(),
                "queries": self._tracker.queries(),
                "rehearsal": self._rehearsal.info() if self._rehearsal else None,
                "now": datetime.now(UTC),
            }
        )

    def stop(self, operation: str, budget_seconds: float | None) -> StopReport:
        """Stop at a boundary, and hold the process until `finish`; the same report again.

        A second operation after one that failed finds the queries standing.
        """
        with self._changed:
            self._held = not self._finished
        cause = Cause(EndReason.STOPPED, f"Stopped as {operation!r} asked.", operation=operation)
        self.end(cause, budget_seconds)
        return self._await_report()

    def finish(self, operation: str, savepoint: str | None) -> None:
        """Let the process end; nothing happens the second time."""
        with self._changed:
            self._held, self._finished = False, True
            self._savepoint = savepoint or self._savepoint
            self._changed.notify_all()

    def open_gate(self, epoch: int) -> GateInfo:
        """Open it if this is the epoch; a later one ends this driver, an earlier one does nothing.

        No answer waits for that end.
        """
        if epoch > self._options.epoch:
            message = f"Epoch {self._options.epoch} is over: epoch {epoch} has begun."
            # At once: another driver may be writing to the same sinks.
            self.end(Cause(EndReason.EPOCH_OVER, message), 0)
        return self._gate.open(epoch)

    def checkpoints(self) -> dict[str, str]:
        """Query -> URI of its checkpoint."""
        with self._changed:
            return {query.name: query.checkpoint for query in self._queries.values()}

    # --- for the script's hooks ------------------------------------------------------------------

    def session_made(self, *, with_context: bool) -> None:
        """There is a session."""
        self._made_session = True

    @contextmanager
    def starting(self, asked: Asked) -> Iterator["_Begun"]:
        """Let a query start, once the gate is open; unwind the script if that will never be."""
        # Before the gate, so that nothing is stopped for a driver that cannot take over.
        self._check_promise(asked)
        self._admit()
        try:
            identity = self._identities.claim(asked.name, asked.place, is_active=self._is_active)
            interval = None if asked.has_trigger else self._options.trigger_interval
            begun = _Begun(self, identity, interval)
            self._prepare(begun, asked)
            try:
                yield begun
            except BaseException:
                self._identities.release(identity)
                raise
            self._identities.establish(identity)
        finally:
            with self._changed:
                self._starting -= 1
                self._changed.notify_all()

    def waiting(self, seconds: float | None, *, returns: bool) -> None:
        """The script waits for its queries: let it."""

    def adding_listener(self) -> bool:
        """The script listens to its queries, as we do."""
        return True

    def stopping_query(self) -> None:
        """The script stops a query by itself: not while we bring it to its boundary."""
        if self._cause is not None:
            self._await_report()

    def stopping_context(self) -> bool:
        """Bring to a boundary what still runs; if the job ends anyway, wait for that."""
        if self._cause is not None:
            self.await_release()
            return True
        with self._changed:
            running = [query for query in self._queries.values() if query.is_active]
        if running:
            logger.info("The script stops the session: stopping %d queries first", len(running))
            stop_queries(running, budget=self._options.stop_budget)
        return True

    # --- before the beginning ---------------------------------------------------------------------

    def rehearse(self, rehearsal: Rehearsing) -> None:
        """Show it, and end it if the job ends meanwhile."""
        self._rehearsal = rehearsal

    def restore(self, restoring: Restoring) -> None:
        """Begin from a savepoint: no query starts before it is there."""
        self._restoring = restoring
        restoring.begin(self._not_restored)

    def _not_restored(self, error: ErrorInfo) -> None:
        message = f"The savepoint could not be restored: {error.message}"
        self.end(Cause(EndReason.REFUSED, message, error=error), 0)

    @property
    def is_ending(self) -> bool:
        """Whether something has ended it: nothing starts any more."""
        return self._cause is not None

    # --- the end ---------------------------------------------------------------------------------

    def end(self, cause: Cause, budget: float | None = None) -> bool:
        """Begin to end; whether this is the cause of it. Returns at once."""
        with self._changed:
            if self._cause is not None:
                return False
            self._cause = cause
        self._gate.close()
        seconds = self._options.stop_budget if budget is None else budget
        logger.info("%s Stopping at a boundary, within %.0f s", cause.message, seconds)
        stopping = threading.Thread(target=self._stop, args=(seconds,), name="sparkpoint-stop")
        stopping.daemon = True
        stopping.start()
        return True

    def release_after(self, seconds: float) -> None:
        """Hold the process so long at most: whoever holds it may have failed for good."""

        def release() -> None:
            with self._changed:
                self._held, self._finished = False, True
                self._changed.notify_all()

        timer = threading.Timer(seconds, release)
        timer.daemon = True
        timer.start()

    def script_ended(self, end: ScriptEnd) -> None:
        """The script has come to its end; queries may still run."""
        with self._changed:
            self._script = end
            started, is_new = list(self._queries.values()), self._cause is None
        warning = self._forgotten(end, started) if is_new else None
        if warning is not None:
            logger.warning(warning)
        self.end(script_cause(end))

    def await_release(self) -> Cause:
        """Wait until the job has ended and nobody holds the process any more."""
        with self._changed:
            while self._cause is None or not self.is_released:
                self._changed.wait()
            return self._cause

    @property
    def is_released(self) -> bool:
        """Whether the job has ended and nobody holds the process any more."""
        return self._report is not None and not self._held

    def termination(self) -> Termination:
        """The last word, once the job has ended; what is known so far before."""
        with self._changed:
            report = self._report or StopReport(clean=False, queries={}, seconds=0)
            ending = Ending(
                epoch=self._options.epoch,
                cause=self._cause or Cause(EndReason.INTERNAL, "The driver ended unexpectedly."),
                report=report,
                script=self._script,
                made_session=self._made_session,
                on_query_failure=self._options.on_query_failure,
                savepoint=self._savepoint,
                hindrance=self._rehearsal.info().hindrance if self._rehearsal else None,
            )
        return conclude(ending)

    # --- within ----------------------------------------------------------------------------------

    def _forgotten(self, end: ScriptEnd, started: Sequence[StartedQuery]) -> str | None:
        """What a script that has ended did not do, by the look of it."""
        # One that failed says why by itself.
        if end.error is not None:
            return None
        # By Spark's word: a script that has waited for the end of a query knows of it before us.
        if any(query.runs() for query in started):
            return "The script ended while queries were running. End it with awaitTermination()."
        if started:
            return None
        lacking = "starting a query" if self._made_session else "a Spark session"
        return (
            f"The script ended without {lacking}: there is nothing to watch or to capture. Start "
            "one with writeStream…start(), and wait for it with awaitTermination()."
        )

    def _admit(self) -> None:
        if self._restoring is not None and not self._restoring.wait():
            raise ScriptOver
        match self._gate.wait():
            case Passage.TOO_LATE:
                waited = self._options.gate_deadline or 0
                message = f"The gate was not opened within {waited:.0f} s."
                self.end(Cause(EndReason.GATE_NOT_OPENED, message), 0)
                raise ScriptOver
            case Passage.CLOSED:
                raise ScriptOver
            case Passage.OPEN:
                pass
        with self._changed:
            if self._cause is not None:
                raise ScriptOver
            self._starting += 1

    def _check_promise(self, asked: Asked) -> None:
        if self._options.guarantee != "exactly-once":
            return
        reasons = "".join(f"\n  - {reason}" for reason in broken_promises(asked.traits))
        if reasons:
            who = f"Query {asked.name!r}" if asked.name else "The query"
            raise PromiseError(
                f"{who}, started at {asked.place}, cannot keep the promise of exactly-once output:"
                f"{reasons}\nChange that, or promise less: `checkpoint.guarantee: AtLeastOnce` in "
                "the job, --guarantee at-least-once here."
            )

    def _prepare(self, begun: "_Begun", asked: Asked) -> None:
        known = begun.name in self._queries
        if asked.checkpoint and not known:
            logger.warning(
                "Query %s: the script's checkpointLocation %s is not used; its checkpoint is %s",
                begun.name,
                asked.checkpoint,
                begun.checkpoint,
            )
        elif not known:
            logger.info("Query %s: its checkpoint is %s", begun.name, begun.checkpoint)
        interval = self._options.trigger_interval
        if interval is not None and not known:
            said = (
                "the script's own trigger is kept, and the interval of %g s is not used"
                if asked.has_trigger
                else "the script sets no trigger, so a batch begins every %g s"
            )
            logger.info(f"Query %s: {said}", begun.name, interval)
        self._listen_to(asked.session)

    def _listen_to(self, session: SparkSession) -> None:
        """Hear of the progress of this session's queries; sessions do not share listeners."""
        identity = str(session._jsparkSession.sessionUUID())
        with self._changed:
            if identity in self._sessions:
                return
            self._sessions.add(identity)
        session.streams.addListener(self._tracker.listener())

    def _is_active(self, name: str) -> bool:
        query = self._queries.get(name)
        return query is not None and query.runs()

    def checkpoint_of(self, identity: Identity) -> str:
        """Where a query keeps its state, as Spark writes it."""
        return self._directory.child(identity.folder).hadoop_uri

    def seed(self, identity: Identity, file_sink: str) -> None:
        """Make a fork's new sink one that Spark can read."""
        job, endpoint = self._options.job, self._options.endpoint_url
        prepare_sink(self._directory, identity.folder, file_sink, job=job, endpoint_url=endpoint)
        # Before the first batch reaches it: from here on the driver may be gone at any moment.
        sink = QuerySink(kind="file", uri=file_sink)
        leave_note(self._directory, identity.folder, sink, endpoint_url=endpoint)

    def register(self, query: StartedQuery) -> None:
        """A query runs: watch it."""
        with self._changed:
            self._queries[query.name] = query
        run = query.execution
        self._tracker.started(query.name, run.id, run.run_id, query.checkpoint, sink=query.sink)
        query.watch()
        self._note_sink(query)

    def _note_sink(self, query: StartedQuery) -> None:
        if query.sink is None:
            return
        folder, endpoint = query.identity.folder, self._options.endpoint_url
        try:
            leave_note(self._directory, folder, query.sink, endpoint_url=endpoint)
        except StorageError as error:
            # The query runs, and Spark itself fails if its checkpoint cannot be written any more.
            logger.warning("Query %s: where it writes could not be noted: %s", query.name, error)

    def query_ended(self, query: StartedQuery) -> None:
        """A dead query ends the job, whatever the script makes of it."""
        error = query.end.error if query.end else None
        if error is None:
            return
        logger.error("%s", query_failed(query.name, error))
        if self._options.on_query_failure == "fail":
            message = query_failed(query.name, error)
            self.end(Cause(EndReason.QUERY_FAILED, message, error=error))

    def _stop(self, budget: float) -> None:
        deadline = time.monotonic() + budget
        if self._rehearsal is not None:
            # Whatever it has in a store is removed before the process may end.
            self._rehearsal.close()
        with self._changed:
            while self._starting and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            queries = list(self._queries.values())
        report = stop_queries(queries, budget=max(0.0, deadline - time.monotonic()))
        with self._changed:
            self._report = report
            self._changed.notify_all()

    def _await_report(self) -> StopReport:
        with self._changed:
            while self._report is None:
                self._changed.wait()
            return self._report

    def _phase(self) -> str:
        with self._changed:
            if self._cause is not None:
                return "ended" if self.is_released else "stopping"
            if self._queries:
                return "running"
        if self._rehearsal is not None and self._rehearsal.info().state == "running":
            return "rehearsing"
        return "gated" if self._gate.is_waiting else "starting"


class _Begun:
    """A query between the decision to start it and its start."""

    def __init__(self, job: RunningJob, identity: Identity, interval: float | None) -> None:
        self._job, self._identity, self._interval = job, identity, interval
        self.name = identity.name
        self.checkpoint = job.checkpoint_of(identity)

    def launch(self, launch: Launch) -> StreamingQuery:
        """Start it, and watch it from then on."""
        if launch.file_sink is not None:
            self._job.seed(self._identity, launch.file_sink)
        query = launch.as_asked(self.name, self.checkpoint, interval=self._interval)
        execution = Execution(query._jsq)
        self._job.register(
            StartedQuery(
                self._identity,
                self.checkpoint,
                execution,
                on_end=self._job.query_ended,
                sink=self._sink(execution),
            )
        )
        return query

    def _sink(self, execution: Execution) -> QuerySink | None:
        try:
            return execution.sink()
        except LostError as lost:
            # The query runs: that its savepoints do not know its sink is no reason to end it.
            logger.warning("Query %s: where it writes is not known: %s", self.name, lost)
            return None
