"""The Spark session between two runs of a script, and at the very end."""

import threading

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkpoint.runtime.execution import answered

__all__ = ["forget_ended", "renew_session", "stop_context", "stop_spark"]


def forget_ended(session: SparkSession) -> None:
    """Let `awaitAnyTermination` of this session wait for queries that are yet to end."""
    with answered():
        session.streams.resetTerminated()


def renew_session(known: SparkSession | None) -> None:
    """Let the next `getOrCreate` have a session without the views and settings of the former.

    It is on the same context, with the same executors and catalogue. `known` is for a script that
    has stopped its session.
    """
    session = SparkSession._instantiatedSession or known
    if session is not None and session._sc._jsc is not None:
        SparkSession._instantiatedSession = None
        with answered():
            # It makes itself the one to get.
            session.newSession()


def stop_context() -> None:
    """Stop Spark, and let the next session begin with a new one."""
    session, active = SparkSession._instantiatedSession, SparkContext._active_spark_context
    with answered():
        if session is not None:
            session.stop()
        elif active is not None:
            active.stop()


def stop_spark(seconds: float) -> None:
    """Stop what the script left running: in a pod the JVM would die before its own hooks ran."""
    active = SparkContext._active_spark_context
    if active is not None:
        stopping = threading.Thread(target=active.stop, name="sparkpoint-spark", daemon=True)
        stopping.start()
        stopping.join(seconds)
