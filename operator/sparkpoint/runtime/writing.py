"""What a script has said to a `DataStreamWriter`, and the two ways in which its query can start.

As it was asked for, or as a trial: one batch into nowhere, for a rehearsal.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sparkpoint.runtime.identity import Place

__all__ = ["CHECKPOINT", "NAME", "Asked", "Launch", "Traits", "Wishes"]

CHECKPOINT = "checkpointLocation"
NAME = "queryName"
_ASYNCHRONOUS = "asyncProgressTrackingEnabled"
_PATH = "path"
_OPTIONS = (CHECKPOINT.lower(), NAME.lower(), _ASYNCHRONOUS.lower(), _PATH)
_NOWHERE = "noop"
_ONE_BATCH = "100000 days"
"""Spark counts trigger intervals from 1970: after the first batch, the next one is due in 2243."""
_TRIAL_CONFS = {
    # Nothing of a trial's state stays in the executors, whose maintenance would write it anew after
    # the copy is gone ...
    "spark.sql.streaming.stateStore.unloadOnCommit": "true",
    # ... nor is time spent on a snapshot of it.
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": str(2**31 - 1),
}

Start = Callable[..., StreamingQuery]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What the promise about a query's output depends on."""

    sink: str | None = None
    """Its format, or `foreach` or `foreachBatch`."""
    sources: tuple[str, ...] = ()
    """Their formats."""
    is_continuous: bool = False
    is_asynchronous: bool = False
    """Its logs are written behind its back."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the script wants of a query."""

    name: str | None
    checkpoint: str | None
    """Its own location, which is not used."""
    place: Place
    session: SparkSession
    ends: bool = False
    """Its trigger ends it once all input is processed."""
    has_trigger: bool = False
    """It has one of its own."""
    traits: Traits = Traits()


class Wishes:
    """What a script has said to a writer, kept on the writer itself."""

    _ATTRIBUTE = "_sparkpoint_wishes"

    def note(self, writer: DataStreamWriter, key: str, value: Any) -> bool:
        """Keep what concerns us; whether PySpark must not hear of it. Spark ignores case, too."""
        lower = str(key).lower()
        if lower in _OPTIONS and value is not None:
            self._of(writer)[lower] = str(value)
        return lower == CHECKPOINT.lower()

    def note_trigger(self, writer: DataStreamWriter, *, ends: bool, is_continuous: bool) -> None:
        """Keep that there is a trigger, and of what kind."""
        self._of(writer).update(trigger=True, ends=ends, continuous=is_continuous)

    def note_sink(self, writer: DataStreamWriter, sink: str, *, is_function: bool) -> None:
        """Keep what the sink is, and whether that is a function of the script."""
        self._of(writer).update(sink=sink, function=is_function)

    def name(self, writer: DataStreamWriter) -> str | None:
        """What the query is to be called."""
        name: str | None = self._of(writer).get(NAME.lower())
        return name

    def checkpoint(self, writer: DataStreamWriter) -> str | None:
        """Where the script would have its checkpoint."""
        checkpoint: str | None = self._of(writer).get(CHECKPOINT.lower())
        return checkpoint

    def ends(self, writer: DataStreamWriter) -> bool:
        """Whether the trigger ends the query."""
        return bool(self._of(writer).get("ends"))

    def has_trigger(self, writer: DataStreamWriter) -> bool:
        """Whether the script has set one."""
        return bool(self._of(writer).get("trigger"))

    def traits(self, writer: DataStreamWriter, sources: tuple[str, ...]) -> Traits:
        """What the promise about its output depends on."""
        said = self._of(writer)
        return Traits(
            sink=said.get("sink"),
            sources=sources,
            is_continuous=bool(said.get("continuous")),
            is_asynchronous=said.get(_ASYNCHRONOUS.lower(), "").lower() == "true",
        )

    def path(self, writer: DataStreamWriter) -> str | None:
        """Where the script would write, as an option."""
        path: str | None = self._of(writer).get(_PATH)
        return path

    def has_function(self, writer: DataStreamWriter) -> bool:
        """Whether a function of the script is the sink."""
        return bool(self._of(writer).get("function"))

    def _of(self, writer: DataStreamWriter) -> dict[str, Any]:
        wishes: dict[str, Any] = writer.__dict__.setdefault(self._ATTRIBUTE, {})
        return wishes


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The script's call of `start()` or `toTable()`, not made yet."""

    writer: DataStreamWriter
    call: inspect.BoundArguments
    method: Start
    """What was called."""
    start: Start
    """PySpark's own `start`."""
    has_function: bool = False
    file_sink: str | None = None
    """Where it writes files, if it is known to do so."""

    def as_asked(
        self, name: str, checkpoint: str, *, interval: float | None = None
    ) -> StreamingQuery:
        """Start it as the script wants it, with a name and a checkpoint of ours.

        `interval`: seconds from one batch to the next, for a script that does not say.
        """
        self._set(name, checkpoint)
        if interval is not None:
            every = f"{round(interval * 1000)} milliseconds"
            inspect.unwrap(DataStreamWriter.trigger)(self.writer, processingTime=every)
        return self.method(*self.call.args, **self.call.kwargs)

    def as_trial(self, name: str, checkpoint: str, *, functions: bool) -> StreamingQuery:
        """Start it for the batch that its checkpoint has begun, and no other; it stays idle then.

        Its rows go nowhere, unless `functions` lets a function of the script have them.
        """
        self._set(name, checkpoint)
        writer, given = self.writer, self.call.arguments
        if not (functions and self.has_function):
            inspect.unwrap(DataStreamWriter.format)(writer, _NOWHERE)
        inspect.unwrap(DataStreamWriter.trigger)(writer, processingTime=_ONE_BATCH)
        with _configured(writer._spark, _TRIAL_CONFS):
            return self.start(writer, outputMode=given.get("outputMode"), **given["options"])

    def _set(self, name: str, checkpoint: str) -> None:
        # PySpark's own methods: what the script says through ours is kept, and not passed on.
        inspect.unwrap(DataStreamWriter.queryName)(self.writer, name)
        inspect.unwrap(DataStreamWriter.option)(self.writer, CHECKPOINT, checkpoint)


@contextmanager
def _configured(session: SparkSession, confs: dict[str, str]) -> Iterator[None]:
    """Set confs for a moment: a query takes those along that hold when it starts."""
    before = {key: session.conf.get(key, None) for key in confs}
    try:
        for key, value in confs.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, was in before.items():
            if was is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, was)
