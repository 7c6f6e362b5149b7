"""The trials of a rehearsal: each query's batch on the copy, looked at until it is decided."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from sparkpoint.runtime.asking import Asking, HasSources
from sparkpoint.runtime.execution import Execution, LostError
from sparkpoint.runtime.identity import Identity
from sparkpoint.runtime.lastread import LastRead, sources_left, topics_left
from sparkpoint.runtime.meaning import Code, NamesUnknownError
from sparkpoint.runtime.model import ErrorInfo, RehearsedQuery
from sparkpoint.runtime.queries import StartedQuery, Watched, stop_queries
from sparkpoint.runtime.scratch import Scratch
from sparkpoint.runtime.standin import StandIn
from sparkpoint.runtime.verdict import (
    Thrown,
    judge,
    judge_refusal,
    means_otherwise,
    not_compared,
    sources_changed,
    topics_changed,
)
from sparkpoint.runtime.writing import Launch

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

__all__ = ["Trials", "Tried"]

_NEW = RehearsedQuery(
    verdict="compatible", note="The savepoint has no such query: it will start without state."
)
_ONLY = ""
"""The folder of the query in a savepoint of a single query's checkpoint."""
_WHICH = RehearsedQuery(
    verdict="unknown",
    error=ErrorInfo(
        type="WHICH_QUERY",
        message="The savepoint is of the checkpoint of a single query, and the script starts "
        "several: nobody knows which of them it was.",
        remedy="Take a savepoint of the directory above, with a folder for each query.",
    ),
)
_STOPPED = RehearsedQuery(
    verdict="unknown",
    error=ErrorInfo(
        type="STOPPED", message="It was stopped before its batch was done.", retry_helps=True
    ),
)


class Tried(Watched, Code, HasSources, Protocol):
    """What a query must answer to be judged; see execution.py."""

    def failure(self) -> Sequence[Thrown]: ...
    def input_rows(self) -> int | None: ...
    def sources(self) -> Mapping[str, str]: ...


@dataclass(slots=True)
class _Trial:
    """A query of the script in the rehearsal."""

    folder: str
    begun: float
    execution: Tried | None = None
    """None: it is not run, or Spark did not start it."""
    query: StartedQuery | None = None
    asking: Asking | None = None
    """None: it has not made its batch."""
    found: RehearsedQuery = field(default_factory=RehearsedQuery)


class Trials:
    """All of them, by the name of the query; safe from any thread."""

    def __init__(
        self,
        scratch: Scratch,
        *,
        functions: bool = False,
        observe: Callable[["JavaObject"], Tried] = Execution,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`functions`: whether functions that are sinks are called."""
        self._scratch, self._functions = scratch, functions
        self._observe, self._monotonic = observe, monotonic
        self._changed = threading.Condition()
        self._trials: dict[str, _Trial] = {}
        self._is_closing = False

    def begin(self, identity: Identity, launch: Launch) -> StreamingQuery:
        """Start the trial of a query; what the script gets for it."""
        folders = self._read().keys()
        with self._changed:
            folder = _ONLY if _ONLY in folders and not self._trials else identity.folder
            trial = self._trials[identity.name] = _Trial(folder, self._monotonic())
            trials = list(self._trials.values())
        if _ONLY in folders and len(trials) > 1:
            for each in trials:
                self._decide(each, _WHICH)
        elif folder not in folders:
            self._decide(trial, _NEW)
        else:
            self._start(trial, identity, launch)
        return StandIn(identity.name)

    def found(self) -> dict[str, RehearsedQuery]:
        """What is known of each query."""
        with self._changed:
            return {name: trial.found for name, trial in self._trials.items()}

    def folders(self, *, decided: bool = False) -> set[str]:
        """Of all queries, or of those that have their verdict."""
        with self._changed:
            trials = self._trials.values()
            return {trial.folder for trial in trials if trial.found.verdict or not decided}

    def look(self) -> None:
        """Decide about those that are done."""
        with self._changed:
            trials = list(self._trials.values())
        for trial in trials:
            self._look_at(trial)

    def is_decided(self) -> bool:
        """Whether each of them has its verdict."""
        with self._changed:
            return self._is_decided()

    def await_decided(self, seconds: float) -> None:
        """Wait so long at most until each of them has its verdict."""
        with self._changed:
            self._changed.wait_for(self._is_decided, max(0.0, seconds))

    def stop(self, *, budget: float) -> None:
        """Stop whatever runs; nothing is decided any more."""
        with self._changed:
            self._is_closing = True
            trials = list(self._trials.values())
        for trial in trials:
            if trial.asking is not None:
                with suppress(LostError):
                    trial.asking.leave()
        stop_queries([trial.query for trial in trials if trial.query], budget=budget)

    def _start(self, trial: _Trial, identity: Identity, launch: Launch) -> None:
        checkpoint = self._scratch.checkpoint(trial.folder)
        try:
            started = launch.as_trial(identity.name, checkpoint, functions=self._functions)
        except PySparkException as error:
            kind = error.getCondition() or type(error).__name__
            is_analysis = isinstance(error, AnalysisException)
            self._decide(trial, judge_refusal(kind, str(error), is_analysis=is_analysis))
            raise
        trial.execution = self._observe(started._jsq)
        trial.query = StartedQuery(
            identity, checkpoint, trial.execution, on_end=lambda _: self._ended(trial)
        )
        trial.query.watch()

    def _ended(self, trial: _Trial) -> None:
        self._look_at(trial)
        if trial.found.verdict is None and trial.asking is None and not self._is_closing:
            self._decide(trial, _STOPPED)

    def _look_at(self, trial: _Trial) -> None:
        if trial.execution is None or trial.found.verdict is not None:
            return
        try:
            found = self._outcome(trial, trial.execution)
        except LostError as lost:
            error = ErrorInfo(type="SPARK_LOST", message=str(lost), retry_helps=True)
            found = RehearsedQuery(verdict="unknown", error=error)
        if found is not None:
            self._decide(trial, found)

    def _outcome(self, trial: _Trial, execution: Tried) -> RehearsedQuery | None:
        if trial.asking is None:
            if chain := execution.failure():
                return judge(chain)
            self._ask_after_batch(trial, execution)
        if trial.asking is None or not trial.asking.is_answered:
            return None
        return trial.asking.objection() or self._meaning(trial, execution)

    def _ask_after_batch(self, trial: _Trial, execution: Tried) -> None:
        rows = execution.input_rows()
        with self._changed:
            is_open = trial.asking is None and trial.found.verdict is None
            if rows is not None and is_open:
                trial.found = RehearsedQuery(input_rows=rows)
                trial.asking = Asking(execution, self._read()[trial.folder])

    def _meaning(self, trial: _Trial, execution: Tried) -> RehearsedQuery:
        """Of a query that Spark runs."""
        rows = trial.found.input_rows or 0
        read, sources = self._read()[trial.folder], execution.sources()
        if left := sources_left(read, sources):
            return sources_changed(left, rows)
        if left := topics_left(read, sources):
            return topics_changed(left, rows)
        try:
            changes = self._changes(execution, trial.folder)
        except NamesUnknownError as error:
            return not_compared(str(error), rows, retry_helps=error.retry_helps)
        if changes:
            return means_otherwise(changes, rows)
        return RehearsedQuery(verdict="compatible", input_rows=rows)

    def _changes(self, execution: Tried, folder: str) -> tuple[str, ...]:
        copied = self._scratch.copied
        return copied.names[folder].changes(execution) if copied else ()

    def _decide(self, trial: _Trial, found: RehearsedQuery) -> None:
        seconds = round(self._monotonic() - trial.begun, 3)
        with self._changed:
            if trial.folder == _ONLY and len(self._trials) > 1:
                # It was tried before there were others: what came of that says nothing.
                found = _WHICH
            trial.found = found.model_copy(update={"seconds": seconds})
            self._changed.notify_all()

    def _is_decided(self) -> bool:
        return all(trial.found.verdict for trial in self._trials.values())

    def _read(self) -> dict[str, LastRead]:
        copied = self._scratch.copied
        return copied.read if copied else {}
