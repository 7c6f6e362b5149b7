"""Where the script's calls into PySpark pass through our hands.

Only what decides about a query's life: its name, its checkpoint, its start and stop, the end of the
session. Everything else is PySpark's own.
"""

import functools
import inspect
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

from pyspark import SparkContext, java_gateway
from pyspark.core import context
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sparkpoint.runtime.errors import ConnectError
from sparkpoint.runtime.plans import file_sink, sources_of
from sparkpoint.runtime.script import calling_place
from sparkpoint.runtime.writing import NAME, Asked, Launch, Start, Wishes

__all__ = ["Begun", "Hooks", "Script"]

_SESSION_CHECKPOINT = "spark.sql.streaming.checkpointLocation"


class Begun(Protocol):
    """A query that may start."""

    def launch(self, launch: Launch) -> StreamingQuery:
        """Start it; what the script gets for it."""
        ...


class Script(Protocol):
    """Who decides about what the script asks for."""

    def session_made(self, *, with_context: bool) -> None:
        """There is a session; whether its context was made for it just now."""
        ...

    def starting(self, asked: Asked) -> AbstractContextManager[Begun]:
        """A query is about to start: where, or not at all."""
        ...

    def waiting(self, seconds: float | None, *, returns: bool) -> bool | None:
        """The script waits for queries; what it is told instead, or None to let it wait.

        `returns`: it waits for input to be processed, and not for an end.
        """
        ...

    def adding_listener(self) -> bool:
        """Whether a listener of the script may hear of queries."""
        ...

    def stopping_query(self) -> None:
        """The script stops a query by itself; blocks while we do."""
        ...

    def stopping_context(self) -> bool:
        """The script stops Spark; blocks until every query stands. Whether it may."""
        ...


class Hooks:
    """Ourselves in between, once per process; `script` decides, and may be replaced."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def install(self) -> None:
        """Take hold of PySpark's methods."""
        # Locking and unlocking must reach the same JVM thread (execution.py).
        os.environ["PYSPARK_PIN_THREAD"] = "true"
        wishes, start = Wishes(), DataStreamWriter.start
        _hook_options(wishes)
        _hook_sinks(wishes)
        for method in ("start", "toTable"):
            _hook_start(self, wishes, method, start=start)
        _hook_waits(self)
        _hook_ends(self)
        _hook_session(self)
        _hook_gateway()


def _hook_options(wishes: Wishes) -> None:
    option, options = DataStreamWriter.option, DataStreamWriter.options
    query_name = DataStreamWriter.queryName

    @functools.wraps(option)
    def noting_option(self: DataStreamWriter, key: str, value: Any) -> DataStreamWriter:
        return self if wishes.note(self, key, value) else option(self, key, value)

    @functools.wraps(options)
    def noting_options(self: DataStreamWriter, **given: Any) -> DataStreamWriter:
        passed = {k: v for k, v in given.items() if not wishes.note(self, k, v)}
        return options(self, **passed)

    @functools.wraps(query_name)
    def noting_name(self: DataStreamWriter, queryName: str) -> DataStreamWriter:  # noqa: N803
        query_name(self, queryName)
        wishes.note(self, NAME, queryName)
        return self

    _put(DataStreamWriter, option=noting_option, options=noting_options, queryName=noting_name)


def _hook_sinks(wishes: Wishes) -> None:
    trigger = DataStreamWriter.trigger

    @functools.wraps(trigger)
    def noting_trigger(self: DataStreamWriter, **given: Any) -> DataStreamWriter:
        writer: DataStreamWriter = trigger(self, **given)
        wishes.note_trigger(
            self,
            ends=bool(given.get("once") or given.get("availableNow")),
            is_continuous=given.get("continuous") is not None,
        )
        return writer

    _put(DataStreamWriter, trigger=noting_trigger)
    _hook_format(wishes)
    for name in ("foreach", "foreachBatch"):
        _hook_function(wishes, name)


def _hook_format(wishes: Wishes) -> None:
    original = DataStreamWriter.format

    @functools.wraps(original)
    def noting(self: DataStreamWriter, source: str) -> DataStreamWriter:
        writer: DataStreamWriter = original(self, source)
        wishes.note_sink(self, source, is_function=False)
        return writer

    _put(DataStreamWriter, format=noting)


def _hook_function(wishes: Wishes, name: str) -> None:
    original = getattr(DataStreamWriter, name)

    @functools.wraps(original)
    def noting(self: DataStreamWriter, *args: Any, **kwargs: Any) -> DataStreamWriter:
        writer: DataStreamWriter = original(self, *args, **kwargs)
        wishes.note_sink(self, name, is_function=True)
        return writer

    _put(DataStreamWriter, **{name: noting})


def _hook_start(hooks: Hooks, wishes: Wishes, method: str, *, start: Start) -> None:
    original = getattr(DataStreamWriter, method)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def starting(self: DataStreamWriter, *args: Any, **kwargs: Any) -> StreamingQuery:
        call = signature.bind(self, *args, **kwargs)
        wishes.note(self, NAME, call.arguments.pop(NAME, None))
        given = call.arguments.get("options", {})
        call.arguments["options"] = {k: v for k, v in given.items() if not wishes.note(self, k, v)}
        sink = call.arguments.get("format")
        if sink is not None:
            wishes.note_sink(self, sink, is_function=False)
        asked = _asked(self, wishes)
        path = call.arguments.get("path") or wishes.path(self)
        launch = Launch(
            writer=self,
            call=call,
            method=original,
            start=start,
            has_function=wishes.has_function(self),
            file_sink=None
            if "tableName" in call.arguments
            else file_sink(asked.session, asked.traits.sink, path),
        )
        with hooks.script.starting(asked) as begun:
            return begun.launch(launch)

    _put(DataStreamWriter, **{method: starting})


def _asked(writer: DataStreamWriter, wishes: Wishes) -> Asked:
    session = writer._spark
    of_session = session.conf.get(_SESSION_CHECKPOINT, None)
    checkpoint = wishes.checkpoint(writer) or of_session
    return Asked(
        wishes.name(writer),
        checkpoint,
        calling_place(),
        session,
        ends=wishes.ends(writer),
        has_trigger=wishes.has_trigger(writer),
        traits=wishes.traits(writer, sources_of(writer._df)),
    )


def _hook_waits(hooks: Hooks) -> None:
    _hook_wait(hooks, StreamingQuery, "awaitTermination")
    _hook_wait(hooks, StreamingQueryManager, "awaitAnyTermination")
    _hook_wait(hooks, StreamingQuery, "processAllAvailable", returns=True)
    for method in ("addListener", "removeListener"):
        _hook_listener(hooks, method)


def _hook_wait(hooks: Hooks, owner: type, method: str, *, returns: bool = False) -> None:
    original = getattr(owner, method)

    @functools.wraps(original)
    def waiting(self: Any, timeout: float | None = None) -> Any:
        answer = hooks.script.waiting(timeout, returns=returns)
        if answer is not None:
            return answer
        return original(self) if timeout is None else original(self, timeout)

    _put(owner, **{method: waiting})


def _hook_listener(hooks: Hooks, method: str) -> None:
    original = getattr(StreamingQueryManager, method)

    @functools.wraps(original)
    def listening(self: StreamingQueryManager, *args: Any, **kwargs: Any) -> None:
        if hooks.script.adding_listener():
            original(self, *args, **kwargs)

    _put(StreamingQueryManager, **{method: listening})


def _hook_ends(hooks: Hooks) -> None:
    stop_query, stop_context = StreamingQuery.stop, SparkContext.stop

    @functools.wraps(stop_query)
    def stopping_query(self: StreamingQuery) -> None:
        hooks.script.stopping_query()
        stop_query(self)

    @functools.wraps(stop_context)
    def stopping_context(self: SparkContext) -> None:
        if hooks.script.stopping_context():
            stop_context(self)

    _put(StreamingQuery, stop=stopping_query)
    # SparkSession.stop comes through here as well.
    _put(SparkContext, stop=stopping_context)


def _hook_session(hooks: Hooks) -> None:
    get_or_create = SparkSession.Builder.getOrCreate

    @functools.wraps(get_or_create)
    def made(self: SparkSession.Builder) -> SparkSession:
        with_context = SparkContext._active_spark_context is None
        session = get_or_create(self)
        if type(session).__module__.startswith("pyspark.sql.connect"):
            raise ConnectError(
                "This is a session of Spark Connect, whose queries run in another process: they "
                "cannot be stopped or captured from here. Use a classic session (no "
                "`remote(…)`, no SPARK_REMOTE, spark.api.mode=classic)."
            )
        hooks.script.session_made(with_context=with_context)
        return session

    _put(SparkSession.Builder, getOrCreate=made)


def _hook_gateway() -> None:
    launch: Callable[..., Any] = vars(context)["launch_gateway"]
    start: Callable[..., subprocess.Popen[Any]] = vars(java_gateway)["Popen"]
    started: list[subprocess.Popen[Any]] = []

    @functools.wraps(start)
    def starting(*args: Any, **kwargs: Any) -> subprocess.Popen[Any]:
        process = start(*args, **kwargs)
        started.append(process)
        return process

    @functools.wraps(launch)
    def launch_apart(conf: Any = None, popen_kwargs: dict[str, Any] | None = None) -> Any:
        # A group of its own: Ctrl-C in a terminal, and whoever signals our group, must not end the
        # JVM under a running batch. It still ends with us, when its standard input does.
        started.clear()
        try:
            return launch(conf, {"process_group": 0, **(popen_kwargs or {})})
        except BaseException:
            # Unwound while the JVM starts: it cannot tell us where it listens, and would stay.
            for process in started:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            raise

    vars(java_gateway)["Popen"] = starting
    vars(context)["launch_gateway"] = launch_apart


def _put(owner: type, **methods: Callable[..., Any]) -> None:
    for name, method in methods.items():
        setattr(owner, name, method)
