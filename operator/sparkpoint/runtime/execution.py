"""One running query as its JVM sees it: the border to Spark's private parts.

Spark has no graceful stop, so we look at the query's thread and speak to its `StreamExecution`
(see boundary.py for how). The names used here are those of Spark 4.2 and 4.3; py4j pins each
Python thread to a JVM thread, which is what makes `lock` and `unlock` a pair.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from sparkpoint.runtime.model import ErrorInfo

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView

__all__ = ["Execution", "LostError", "Positions", "Where", "where_is"]

_LOOP = "MicroBatchExecution"
_STATES = ("INITIALIZING", "ACTIVE", "TERMINATED")


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
        with _answered():
            self._execution = query.streamingQuery()
            self._thread = self._execution.queryExecutionThread()
            self._states = {name: _state(jvm, name) for name in _STATES}
            self.id: str = query.id().toString()
            self.run_id: str = query.runId().toString()

    def runs_batches(self) -> bool:
        """Whether it is of the kind that commits batch by batch: not continuous."""
        with _answered():
            return _LOOP in str(self._execution.getClass().getName())

    def where(self) -> Where:
        """Look at its thread."""
        with _answered():
            # One string: a call for each frame would take longer than the batch.
            stack = self._jvm.org.apache.commons.lang3.ArrayUtils.toString(
                self._thread.getStackTrace()
            )
        frames = str(stack).strip("{}")
        return where_is(frames.split(",") if frames else [])

    def lock(self, seconds: float) -> bool:
        """Take the lock without which nothing is written to either log; whether we got it."""
        milliseconds = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        with _answered():
            waited = max(1, int(seconds * 1000))
            return bool(self._execution.awaitProgressLock().tryLock(waited, milliseconds))

    def unlock(self) -> None:
        """Give it back, from the same thread."""
        with _answered():
            self._execution.awaitProgressLock().unlock()

    def positions(self) -> Positions:
        """The ends of the two logs, read from the checkpoint."""
        with _answered():
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
        with _answered():
            self._execution.state().set(self._states["TERMINATED"])

    def go_on(self) -> None:
        """Take `end_after_turn` back."""
        self._change("TERMINATED", "ACTIVE")

    def wake(self) -> None:
        """Interrupt its sleep until the next trigger."""
        with _answered():
            self._thread.interrupt()

    def interrupt(self) -> None:
        """Spark's own stop: cancels the running batch."""
        with _answered():
            self._query.stop()

    def await_end(self) -> ErrorInfo | None:
        """Wait until it has ended, and say what it died of."""
        with _answered():
            # The cause is read below, where all kinds of errors look the same.
            with suppress(Py4JJavaError, PySparkException):
                self._execution.awaitTermination()
            failure = self._execution.exception()
            return _explain(failure.get(), self._jvm) if failure.isDefined() else None

    def _change(self, before: str, after: str) -> bool:
        with _answered():
            state = self._execution.state()
            return bool(state.compareAndSet(self._states[before], self._states[after]))


@contextmanager
def _answered() -> Iterator[None]:
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raise LostError(f"Spark refused: {error}") from error
    except (Py4JError, OSError) as error:
        # What py4j makes of a connection that breaks, too.
        raise LostError(f"Spark does not answer: {error}") from error


def _state(jvm: "JVMView", name: str) -> "JavaObject":
    package = jvm.org.apache.spark.sql.execution.streaming.runtime
    state: JavaObject = getattr(getattr(package, f"{name}$"), "MODULE$")
    return state


def _explain(failure: "JavaObject", jvm: "JVMView") -> ErrorInfo:
    """Spark's condition where there is one, else the class of what went wrong."""
    cause = failure.cause()
    kind = str(cause.getClass().getName()).rpartition(".")[2]
    throwable = jvm.org.apache.spark.SparkThrowable
    if is_instance_of(SparkContext._gateway, cause, throwable):  # type: ignore[no-untyped-call]
        kind = cause.getCondition() or kind
    return ErrorInfo(type=kind, message=str(cause.getMessage() or cause.toString()))
