"""The queries that the script has started, each watched until it ends.

A thread per query waits in the JVM, idle; that tells of an end at once, without polling and without
the listener bus, which may drop events.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from sparkpoint.runtime.boundary import Loop, end_at_boundary
from sparkpoint.runtime.execution import LostError
from sparkpoint.runtime.identity import Identity
from sparkpoint.runtime.model import ErrorInfo, QueryEnd, QuerySink, StopReport

__all__ = ["INTERRUPT_SECONDS", "StartedQuery", "Watched", "stop_queries"]

INTERRUPT_SECONDS = 5.0
"""How long a cancelled batch may take to give up, on top of the budget: the budget's default leaves
room for it."""

logger = logging.getLogger("sparkpoint.runtime")


class Watched(Loop, Protocol):
    """What a query must answer to be watched and stopped; see execution.py."""

    id: str
    run_id: str

    def is_active(self) -> bool: ...
    def runs_batches(self) -> bool: ...
    def interrupt(self) -> None: ...
    def await_end(self) -> ErrorInfo | None: ...


class StartedQuery:
    """One run of a query."""

    def __init__(
        self,
        identity: Identity,
        checkpoint: str,
        execution: Watched,
        *,
        on_end: Callable[["StartedQuery"], None],
        sink: QuerySink | None = None,
    ) -> None:
        self.identity, self.checkpoint, self.execution = identity, checkpoint, execution
        self.sink = sink
        self._on_end = on_end
        self._ended = threading.Event()
        self._end: QueryEnd | None = None

    @property
    def name(self) -> str:
        """The query's, which outlives this run."""
        return self.identity.name

    @property
    def end(self) -> QueryEnd | None:
        """Where it stopped; None while it runs."""
        return self._end

    @property
    def is_active(self) -> bool:
        """Whether it still runs."""
        return self._end is None

    def runs(self) -> bool:
        """Whether it still runs by Spark's own word: the script may know of an end before us."""
        try:
            return self.is_active and self.execution.is_active()
        except LostError:
            return False

    def watch(self) -> None:
        """Begin to wait for its end."""
        name = f"sparkpoint-watch-{self.identity.folder}"
        threading.Thread(target=self._watch, name=name, daemon=True).start()

    def await_end(self, seconds: float) -> QueryEnd | None:
        """Wait so long at most."""
        self._ended.wait(max(0.0, seconds))
        return self._end

    def _watch(self) -> None:
        self._end = self._observe_end()
        self._ended.set()
        self._on_end(self)

    def _observe_end(self) -> QueryEnd:
        try:
            error = self.execution.await_end()
            offsets, commits = self.execution.positions()
        except LostError as lost:
            error = ErrorInfo(type="SparkLost", message=str(lost))
            return QueryEnd(batch=None, clean=False, error=error)
        return QueryEnd(batch=commits, clean=offsets == commits, error=error)


def stop_queries(queries: Iterable[StartedQuery], *, budget: float) -> StopReport:
    """Bring all of them to their boundaries, at the same time; interrupt who needs longer."""
    begun = time.monotonic()
    listed = list(queries)
    threads = [
        threading.Thread(target=_stop, args=(query, begun + budget), daemon=True)
        for query in listed
        if query.is_active
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ends = {query.name: _end_of(query) for query in listed}
    clean = all(end.clean and end.error is None for end in ends.values())
    return StopReport(clean=clean, queries=ends, seconds=round(time.monotonic() - begun, 3))


def _stop(query: StartedQuery, deadline: float) -> None:
    try:
        if query.execution.runs_batches() and end_at_boundary(query.execution, deadline=deadline):
            query.await_end(deadline - time.monotonic())
        if query.is_active:
            _interrupt(query)
    except LostError as lost:
        logger.warning("Query %s cannot be stopped: %s", query.name, lost)


def _interrupt(query: StartedQuery) -> None:
    """Spark's own stop, which may wait for ever: so from a thread that may be left behind."""
    logger.warning("Query %s is interrupted: its batch took longer than allowed", query.name)

    def cancel() -> None:
        try:
            query.execution.interrupt()
        except LostError as lost:
            logger.warning("Query %s cannot be interrupted: %s", query.name, lost)

    threading.Thread(target=cancel, daemon=True).start()
    query.await_end(INTERRUPT_SECONDS)


def _end_of(query: StartedQuery) -> QueryEnd:
    """Where it stopped; where it stood last if it does not stop."""
    if query.end is not None:
        return query.end
    try:
        batch = query.execution.positions()[1]
    except LostError:
        batch = None
    error = ErrorInfo(type="StillRunning", message="The query did not end when interrupted.")
    return QueryEnd(batch=batch, clean=False, error=error)
