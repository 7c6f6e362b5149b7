"""Where the script's calls into PySpark pass through our hands.

Only what decides about a query's life: its name, its checkpoint, its start and stop, the end of the
session. Everything else is PySpark's own.
"""

import functools
import inspect
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark import SparkContext
from pyspark.core import context
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sparkpoint.runtime.errors import ConnectError
from sparkpoint.runtime.identity import Place
from sparkpoint.runtime.script import calling_place

__all__ = ["Asked", "Begun", "Script", "install_hooks", "stop_spark"]

_CHECKPOINT = "checkpointLocation"
_SESSION_CHECKPOINT = "spark.sql.streaming.checkpointLocation"
_NAME = "queryName"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the script wants of a query."""

    name: str | None
    checkpoint: str | None
    """Its own location, which is not used."""
    place: Place
    session: SparkSession


class Begun(Protocol):
    """A query that is being started."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def checkpoint(self) -> str:
        """Where it keeps its state, as Spark writes it."""
        ...

    def started(self, query: StreamingQuery) -> None:
        """It runs."""
        ...


class Script(Protocol):
    """Who decides about what the script asks for."""

    def session_made(self) -> None:
        """There is a session."""
        ...

    def starting(self, asked: Asked) -> AbstractContextManager[Begun]:
        """A query is about to start: where, or not at all."""
        ...

    def stopping_query(self) -> None:
        """The script stops a query by itself; blocks while we do."""
        ...

    def stopping_session(self) -> None:
        """The script stops the session; blocks until every query stands."""
        ...


def install_hooks(script: Script) -> None:
    """Put ourselves in between, once per process."""
    # Locking and unlocking must reach the same JVM thread (execution.py).
    os.environ["PYSPARK_PIN_THREAD"] = "true"
    wishes = _Wishes()
    _hook_writer(wishes)
    for method in ("start", "toTable"):
        _hook_start(script, wishes, method)
    _hook_ends(script)
    _hook_session(script)
    _hook_gateway()


class _Wishes:
    """What a script has said to a writer, kept on the writer itself."""

    _ATTRIBUTE = "_sparkpoint_wishes"
    _KEPT = (_CHECKPOINT.lower(), _NAME.lower())

    def note(self, writer: DataStreamWriter, key: str, value: Any) -> bool:
        """Keep what concerns us; whether PySpark must not hear of it. Spark ignores case, too."""
        lower = str(key).lower()
        if lower in self._KEPT and value is not None:
            self._of(writer)[lower] = str(value)
        return lower == _CHECKPOINT.lower()

    def name(self, writer: DataStreamWriter) -> str | None:
        return self._of(writer).get(_NAME.lower())

    def checkpoint(self, writer: DataStreamWriter) -> str | None:
        return self._of(writer).get(_CHECKPOINT.lower())

    def _of(self, writer: DataStreamWriter) -> dict[str, str]:
        wishes: dict[str, str] = writer.__dict__.setdefault(self._ATTRIBUTE, {})
        return wishes


def _hook_writer(wishes: _Wishes) -> None:
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
        wishes.note(self, _NAME, queryName)
        return self

    _put(DataStreamWriter, option=noting_option, options=noting_options, queryName=noting_name)


def _hook_start(script: Script, wishes: _Wishes, method: str) -> None:
    original = getattr(DataStreamWriter, method)
    signature = inspect.signature(original)
    # The script's own `option` is led past Spark; this one is ours.
    option = inspect.unwrap(DataStreamWriter.option)
    query_name = inspect.unwrap(DataStreamWriter.queryName)

    @functools.wraps(original)
    def start(self: DataStreamWriter, *args: Any, **kwargs: Any) -> StreamingQuery:
        call = signature.bind(self, *args, **kwargs)
        wishes.note(self, _NAME, call.arguments.pop(_NAME, None))
        given = call.arguments.get("options", {})
        call.arguments["options"] = {k: v for k, v in given.items() if not wishes.note(self, k, v)}
        asked = _asked(self, wishes)
        with script.starting(asked) as begun:
            query_name(self, begun.name)
            option(self, _CHECKPOINT, begun.checkpoint)
            query: StreamingQuery = original(*call.args, **call.kwargs)
            begun.started(query)
        return query

    _put(DataStreamWriter, **{method: start})


def _asked(writer: DataStreamWriter, wishes: _Wishes) -> Asked:
    session = writer._spark
    of_session = session.conf.get(_SESSION_CHECKPOINT, None)
    checkpoint = wishes.checkpoint(writer) or of_session
    return Asked(wishes.name(writer), checkpoint, calling_place(), session)


def _hook_ends(script: Script) -> None:
    stop_query, stop_context = StreamingQuery.stop, SparkContext.stop

    @functools.wraps(stop_query)
    def stopping_query(self: StreamingQuery) -> None:
        script.stopping_query()
        stop_query(self)

    @functools.wraps(stop_context)
    def stopping_context(self: SparkContext) -> None:
        script.stopping_session()
        stop_context(self)

    _put(StreamingQuery, stop=stopping_query)
    # SparkSession.stop comes through here as well.
    _put(SparkContext, stop=stopping_context)


def _hook_session(script: Script) -> None:
    get_or_create = SparkSession.Builder.getOrCreate

    @functools.wraps(get_or_create)
    def made(self: SparkSession.Builder) -> SparkSession:
        session = get_or_create(self)
        if type(session).__module__.startswith("pyspark.sql.connect"):
            raise ConnectError(
                "This is a session of Spark Connect, whose queries run in another process: they "
                "cannot be stopped or captured from here. Use a classic session (no "
                "`remote(…)`, no SPARK_REMOTE, spark.api.mode=classic)."
            )
        script.session_made()
        return session

    _put(SparkSession.Builder, getOrCreate=made)


def _hook_gateway() -> None:
    launch: Callable[..., Any] = vars(context)["launch_gateway"]

    @functools.wraps(launch)
    def launch_apart(conf: Any = None, popen_kwargs: dict[str, Any] | None = None) -> Any:
        # A group of its own: Ctrl-C in a terminal, and whoever signals our group, must not end the
        # JVM under a running batch. It still ends with us, when its standard input does.
        return launch(conf, {"process_group": 0, **(popen_kwargs or {})})

    vars(context)["launch_gateway"] = launch_apart


def stop_spark(seconds: float) -> None:
    """Stop what the script left running: in a pod the JVM would die before its own hooks ran."""
    active = SparkContext._active_spark_context
    if active is not None:
        stopping = threading.Thread(target=active.stop, name="sparkpoint-spark", daemon=True)
        stopping.start()
        stopping.join(seconds)


def _put(owner: type, **methods: Callable[..., Any]) -> None:
    for name, method in methods.items():
        setattr(owner, name, method)
