"""The listener that feeds a ProgressTracker; the only file of the agent that imports Spark.

PySpark's own listener turns each event into Python objects, one call into the JVM per field: some
two hundred for a stateful query, at every batch. This one asks for the JSON: three calls.
"""

from typing import TYPE_CHECKING

from pyspark import SparkContext
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from sparkpoint.runtime.progress import ProgressTracker

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

__all__ = ["make_listener"]


def make_listener(tracker: ProgressTracker) -> StreamingQueryListener:
    """What `spark.streams.addListener` takes."""
    return _Listener(tracker)


class _Calls:
    """What the JVM calls: the methods of Spark's interface for Python listeners."""

    def __init__(self, tracker: ProgressTracker) -> None:
        self._tracker = tracker

    def onQueryStarted(self, event: "JavaObject") -> None:  # noqa: N802 - Spark's name
        """The launcher tells the tracker: it knows the name and the checkpoint."""

    def onQueryProgress(self, event: "JavaObject") -> None:  # noqa: N802
        """A batch is done."""
        self._tracker.progressed(event.progress().json())

    def onQueryIdle(self, event: "JavaObject") -> None:  # noqa: N802
        """Nothing to do."""
        self._tracker.idle(event.runId().toString())

    def onQueryTerminated(self, event: "JavaObject") -> None:  # noqa: N802
        """The end."""
        exception, error_class = event.exception(), event.errorClassOnException()
        self._tracker.terminated(
            event.runId().toString(),
            exception.get() if exception.isDefined() else None,
            error_class.get() if error_class.isDefined() else None,
        )

    class Java:
        """How Py4J learns what this is."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


class _Listener(StreamingQueryListener):
    """The same for whoever calls it from Python; the JVM calls `_Calls` instead."""

    def __init__(self, tracker: ProgressTracker) -> None:
        self._tracker = tracker
        self._wrapper: JavaObject | None = None

    @property
    def _jlistener(self) -> "JavaObject":
        if self._wrapper is None:
            jvm = SparkContext._jvm
            if jvm is None:
                raise RuntimeError("There is no session yet that could have a listener.")
            self._wrapper = jvm.PythonStreamingQueryListenerWrapper(_Calls(self._tracker))
        return self._wrapper

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing that the launcher does not tell."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """A batch is done."""
        self._tracker.progressed(event.progress.json)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing to do."""
        self._tracker.idle(str(event.runId))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """The end."""
        self._tracker.terminated(str(event.runId), event.exception, event.errorClassOnException)
