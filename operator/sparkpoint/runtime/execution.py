"""One running query as its JVM sees it: the border to Spark's private parts.

Spark has no graceful stop, so we look at the query's thread and speak to its `StreamExecution`
(see boundary.py for how). The names used here are those of Spark 4.2 and 4.3; py4j pins each
Python thread to a JVM thread, which is what makes `lock` and `unlock` a pair.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from sparkpoint.runtime.families import Columns, columns_of_node
from sparkpoint.runtime.lastread import Offsets, Part
from sparkpoint.runtime.model import ErrorInfo, QuerySink
from sparkpoint.runtime.sinks import describe_sink
from sparkpoint.runtime.tracebacks import last_words, place_in
from sparkpoint.runtime.verdict import Thrown

if TYPE_CHECKING:
    from py4j.java_gateway import JavaClass, JavaObject, JVMView

__all__ = ["Execution", "LostError", "Positions", "Where", "answered", "qualified", "where_is"]

_LOOP = "MicroBatchExecution"
_STATES = ("INITIALIZING", "ACTIVE", "TERMINATED")
_SCHEMA_VERSION = 2
_WITH_SCHEMA = {
    "FlatMapGroupsInPandasWithStateExec",
    "FlatMapGroupsWithStateExec",
    "SessionWindowStateStoreSaveExec",
    "StateStoreSaveExec",
    "StreamingDeduplicateExec",
    "StreamingDeduplicateWithinWatermarkExec",
    "StreamingSymmetricHashJoinExec",
}
"""Operators whose schemas are one file for each store."""
_DEEPEST = 10
"""Exceptions of a chain that are looked at."""


class LostError(Exception):
    """The JVM does not answer any more."""


class Where(Enum):
    """What a query's thread is doing, as far as stopping it is concerned."""

    GONE = "gone"
    """It has ended."""
    EXECUTING = "executing"
    """A batch runs, or is about to be committed, and Spark will not look at its flag before."""
    PLANNING = "planning"
    """A batch has its offsets written, and Spark would still throw it away."""
    CONSTRUCTING = "constructing"
    """It looks for a next batch, or waits for the lock to do so."""
    LEAVING = "leaving"
    """Within a turn of the loop, after the batch: the next look at the flag ends it."""
    WAITING = "waiting"
    """Between two turns, asleep until the next trigger."""
    OUTSIDE = "outside"
    """Not in a turn of the loop: the next one begins with a look at the flag."""
    BETWEEN = "between"
    """In a turn, at some other line: soon it is at one of the above."""


Positions = tuple[int | None, int | None]
"""The last batch in the offset log, and in the commit log."""


def where_is(stack: Sequence[str]) -> Where:
    """Read a stack trace, innermost frame first."""
    methods = [_method(frame) for frame in stack]
    calls = set(pairwise(methods))
    if not methods:
        return Where.GONE
    if "constructNextBatch" in methods:
        return Where.CONSTRUCTING
    if "runBatch" in methods:
        adding = any(
            inner == "withNewExecutionId" and outer == "$runBatch" for inner, outer in calls
        )
        # The commit takes the lock straight from `runBatch`.
        committing = ("withProgressLocked", "runBatch") in calls
        return Where.EXECUTING if adding or committing else Where.PLANNING
    if "executeOneBatch" in methods:
        leaving = {("withProgressLocked", "executeOneBatch"), ("sleep", "executeOneBatch")} & calls
        return Where.LEAVING if leaving else Where.BETWEEN
    return Where.WAITING if "waitTillTime" in methods else Where.OUTSIDE


def _method(frame: str) -> str:
    """The plain name of a method of the loop; `$name` for a closure within it; else nothing."""
    qualified = frame.split("(", 1)[0].rsplit("/", 1)[-1]
    owner, _, name = qualified.rpartition(".")
    if name == "waitTillTime" or (name == "sleep" and owner == "java.lang.Thread"):
        return name
    if owner.endswith("SQLExecution$") and name == "withNewExecutionId":
        return name
    if not owner.endswith(_LOOP):
        return "-"
    if name.startswith("$anonfun$"):
        return "$" + name.split("$")[2]
    # Private members may be compiled under a name that repeats the class's.
    return name.rsplit("$$", 1)[-1]


class Execution:
    """A `StreamExecution`; every method may raise LostError."""

    def __init__(self, query: "JavaObject") -> None:
        jvm = SparkContext._jvm
        if jvm is None:
            raise LostError("There is no Spark any more.")
        self._query, self._jvm = query, jvm
        with answered():
            self._execution = query.streamingQuery()
            self._thread = self._execution.queryExecutionThread()
            self._states = {name: _state(jvm, name) for name in _STATES}
            self._stream = jvm.org.apache.spark.sql.connector.read.streaming.MicroBatchStream
            self._source = jvm.org.apache.spark.sql.execution.streaming.Source
            self.id: str = query.id().toString()
            self.run_id: str = query.runId().toString()

    def runs_batches(self) -> bool:
        """Whether it is of the kind that commits batch by batch: not continuous."""
        with answered():
            return _LOOP in str(self._execution.getClass().getName())

    def sink(self) -> QuerySink:
        """Where it writes."""
        with answered():
            table = self._execution.sink()
            found = describe_sink(str(table.getClass().getName()), str(table.toString()))
            if found.kind != "file" or found.uri is None:
                return found
            place = qualified(self._jvm, self._execution.sparkSession(), found.uri)
            return found.model_copy(update={"uri": place})

    def is_active(self) -> bool:
        """Whether it has not ended, as Spark tells the script."""
        with answered():
            return bool(self._query.isActive())

    def where(self) -> Where:
        """Look at its thread."""
        with answered():
            return where_is(_frames(self._thread.getStackTrace(), self._jvm))

    def lock(self, seconds: float) -> bool:
        """Take the lock without which nothing is written to either log; whether we got it."""
        milliseconds = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        with answered():
            waited = max(1, int(seconds * 1000))
            return bool(self._execution.awaitProgressLock().tryLock(waited, milliseconds))

    def unlock(self) -> None:
        """Give it back, from the same thread."""
        with answered():
            self._execution.awaitProgressLock().unlock()

    def positions(self) -> Positions:
        """The ends of the two logs, read from the checkpoint."""
        with answered():
            offsets = self._execution.offsetLog().getLatestBatchId()
            commits = self._execution.commitLog().getLatestBatchId()
            return (
                int(offsets.get()) if offsets.isDefined() else None,
                int(commits.get()) if commits.isDefined() else None,
            )

    def end_before_first_turn(self) -> bool:
        """End it if it has not finished initializing; whether it had not."""
        return self._change("INITIALIZING", "TERMINATED")

    def end_after_turn(self) -> None:
        """Let the loop end at its next look, without an interrupt."""
        with answered():
            self._execution.state().set(self._states["TERMINATED"])

    def go_on(self) -> None:
        """Take `end_after_turn` back."""
        self._change("TERMINATED", "ACTIVE")

    def wake(self) -> None:
        """Interrupt its sleep until the next trigger."""
        with answered():
            self._thread.interrupt()

    def interrupt(self) -> None:
        """Spark's own stop: cancels the running batch."""
        with answered():
            self._query.stop()

    def await_end(self) -> ErrorInfo | None:
        """Wait until it has ended, and say what it died of."""
        # The cause is read below, where all kinds of errors look the same.
        with answered(), suppress(Py4JJavaError, PySparkException):
            self._execution.awaitTermination()
        chain = self.failure()
        # The outermost says only that a query has failed.
        cause = chain[min(1, len(chain) - 1)] if chain else None
        if cause is None:
            return None
        kind, where = cause.condition or cause.kind, place_in(cause.message)
        return ErrorInfo(type=kind, message=last_words(cause.message), where=where)

    def failure(self) -> list[Thrown]:
        """What it died of, the outermost exception first; nothing if it did not."""
        with answered():
            failure = self._execution.exception()
            return self._chain(failure.get()) if failure.isDefined() else []

    def input_rows(self) -> int | None:
        """How many rows its last batch has read; None before the first one is committed."""
        with answered():
            progress = self._query.lastProgress()
            return None if progress is None else int(progress.numInputRows())

    def gather_jobs(self) -> None:
        """Whatever Spark does for this thread from here on is known as done for this query's
        sources: a long list of files is a job."""
        with answered():
            self._context().setJobGroup(self._group, f"Asks the sources of {self.id}", True)

    def cancel_jobs(self) -> None:
        """End what was gathered, and whatever is still to come of it."""
        with answered():
            self._context().cancelJobGroupAndFutureJobs(self._group)

    def _context(self) -> "JavaObject":
        context: JavaObject = self._execution.sparkSession().sparkContext()
        return context

    @property
    def _group(self) -> str:
        return f"sparkpoint-sources-{self.run_id}"

    def unreadable(self, offsets: Offsets) -> list[Thrown]:
        """What a source makes of an offset that it cannot read; nothing if all of them can.

        Spark itself does not look into an offset at which a source has nothing new.
        """
        with answered():
            sources = self._sources()
            for name, offset in offsets.items():
                # Sources of the first API take their offsets as they are.
                if offset is None or not self._is_of(sources.get(name), self._stream):
                    continue
                if chain := self._refusal(sources[name].deserializeOffset, offset):
                    return chain
        return []

    def sources(self) -> dict[str, str]:
        """As they describe themselves."""
        with answered():
            return {name: str(each.toString()) for name, each in self._sources().items()}

    def unrepeatable(self, parts: Sequence[Part]) -> list[Thrown]:
        """What a source makes of being asked for these once more; nothing if all answer.

        Spark asks so when a query goes on after a commit, and not in a batch without rows.
        """
        with answered():
            sources = self._sources()
            for name, start, end in parts:
                if not self._is_of(sources.get(name), self._source):
                    continue
                once_more = (self._offset(start), self._offset(end).get())
                if chain := self._refusal(sources[name].getBatch, *once_more):
                    return chain
        return []

    def _sources(self) -> "dict[str, JavaObject]":
        """By what the offset log calls them."""
        found: dict[str, JavaObject] = {}
        each = self._execution.sourceIdMap().iterator()
        while each.hasNext():
            pair = each.next()
            found[str(pair._1())] = pair._2()
        return found

    @staticmethod
    def _is_of(source: "JavaObject | None", kind: "JavaClass") -> bool:
        """None: the code has no such source any more."""
        return source is not None and _is_a(source, kind)

    def _offset(self, text: str | None) -> "JavaObject":
        """As an `Option`."""
        kind = self._jvm.org.apache.spark.sql.execution.streaming.runtime.SerializedOffset
        found: JavaObject = self._jvm.scala.Option.apply(None if text is None else kind(text))
        return found

    def _refusal(self, call: Callable[..., object], *arguments: object) -> list[Thrown]:
        """What it throws; nothing if it returns."""
        try:
            call(*arguments)
        except Py4JJavaError as error:
            return self._chain(error.java_exception)
        except PySparkException as error:
            return [Thrown(type(error).__name__, str(error))]
        return []

    def write_schemas(self) -> None:
        """Let Spark write down what the columns of its state are called, where nothing says it."""
        with answered():
            last = self._execution.lastExecution()
            conf = self._execution.sparkSession().sessionState().newHadoopConf()
            for node in _nodes(last.executedPlan()):
                if str(node.getClass().getSimpleName()) in _WITH_SCHEMA:
                    batch = last.currentBatchId()
                    node.validateAndMaybeEvolveStateSchema(conf, batch, _SCHEMA_VERSION)

    def family_columns(self) -> dict[int, Columns]:
        """Operator -> what its plan calls the columns of state in column families."""
        with answered():
            nodes = _nodes(self._execution.lastExecution().executedPlan())
            found = ((node, columns_of_node(node)) for node in nodes)
            return {int(n.stateInfo().get().operatorId()): each for n, each in found if each}

    def _chain(self, failure: "JavaObject") -> list[Thrown]:
        chain: list[Thrown] = []
        cause: JavaObject | None = failure
        while cause is not None and len(chain) < _DEEPEST:
            chain.append(_thrown(cause, self._jvm))
            cause = cause.getCause()
        return chain

    def _change(self, before: str, after: str) -> bool:
        with answered():
            state = self._execution.state()
            return bool(state.compareAndSet(self._states[before], self._states[after]))


@contextmanager
def answered() -> Iterator[None]:
    """Turn every way in which Spark does not answer into LostError."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raise LostError(f"Spark refused: {error}") from error
    except (Py4JError, OSError) as error:
        # What py4j makes of a connection that breaks, too.
        raise LostError(f"Spark does not answer: {error}") from error


def qualified(jvm: "JVMView", session: "JavaObject", location: str) -> str:
    """A place as it is called from anywhere: scripts name theirs from where they run."""
    path = jvm.org.apache.hadoop.fs.Path(location)
    conf = session.sessionState().newHadoopConf()
    return str(path.getFileSystem(conf).makeQualified(path).toString())


def _state(jvm: "JVMView", name: str) -> "JavaObject":
    package = jvm.org.apache.spark.sql.execution.streaming.runtime
    state: JavaObject = getattr(getattr(package, f"{name}$"), "MODULE$")
    return state


def _thrown(failure: "JavaObject", jvm: "JVMView") -> Thrown:
    named = _is_a(failure, jvm.org.apache.spark.SparkThrowable)
    return Thrown(
        kind=str(failure.getClass().getName()).rpartition(".")[2],
        message=str(failure.getMessage() or failure.toString()),
        condition=failure.getCondition() if named else None,
        sql_state=failure.getSqlState() if named else None,
        frames=tuple(_short(frame) for frame in _frames(failure.getStackTrace(), jvm)),
    )


def _nodes(plan: "JavaObject") -> "Iterator[JavaObject]":
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))


def _frames(trace: "JavaObject", jvm: "JVMView") -> list[str]:
    # One string: a call for each frame would take longer than the batch.
    text = str(jvm.org.apache.commons.lang3.ArrayUtils.toString(trace)).strip("{}")
    return text.split(",") if text else []


def _short(frame: str) -> str:
    """`Class.method` of `module/package.Class.method(File:line)`."""
    return ".".join(frame.split("(", 1)[0].rsplit("/", 1)[-1].rsplit(".", 2)[-2:])


def _is_a(value: "JavaObject", kind: "JavaClass") -> bool:
    return bool(is_instance_of(SparkContext._gateway, value, kind))  # type: ignore[no-untyped-call]
