"""One object as it changes: by a watch, never by asking over and over.

A thread reads the watch, so that whoever waits can redraw the time and keep a deadline meanwhile.
"""

import queue
import threading
import time
from collections.abc import Generator
from typing import Final

from sparkpoint.cli.jobs.cluster import Cluster, Kind, Object, Watch
from sparkpoint.cli.jobs.errors import ClusterError, NotFoundError

__all__ = ["follow"]

_PAUSES: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Between tries, while the API server does not answer; after the last one it is an error."""
_SHORT: Final = 1.0
_BREATH: Final = 0.5
"""After a watch that ended within a second, so that nobody is asked over and over."""


def follow(
    cluster: Cluster, kind: Kind, name: str, *, seconds: float | None, tick: float | None
) -> Generator[Object | None, None, None]:
    """The object now and after every change; None at each tick; until the time is over.

    NotFoundError if it is not there, or is deleted. One version may come twice.
    """
    reader = _Reader(cluster, kind, name)
    end = None if seconds is None else time.monotonic() + seconds
    reader.start()
    try:
        while (left := _left(end)) is None or left > 0:
            waits = [each for each in (left, tick) if each is not None]
            try:
                found = reader.inbox.get(timeout=min(waits, default=None))
            except queue.Empty:
                if tick is not None:
                    yield None
                continue
            if isinstance(found, Exception):
                raise found
            yield found
    finally:
        reader.end()


def _left(end: float | None) -> float | None:
    return None if end is None else end - time.monotonic()


class _Reader(threading.Thread):
    """Puts every version of the object into the inbox, or the error that ended it."""

    def __init__(self, cluster: Cluster, kind: Kind, name: str) -> None:
        super().__init__(name=f"watch {name}", daemon=True)
        self.inbox: queue.Queue[Object | Exception] = queue.Queue()
        self._cluster, self._kind, self._name = cluster, kind, name
        self._ended = threading.Event()
        self._watch: Watch | None = None

    def run(self) -> None:
        """Watch, and watch again whenever the API server ends it."""
        try:
            self._keep_watching()
        except Exception as error:
            # Whoever waits would do so for ever, as this thread is all that could wake them.
            self.inbox.put(error)

    def _keep_watching(self) -> None:
        failures = 0
        while not self._ended.is_set():
            begun = time.monotonic()
            try:
                self._look_and_watch()
                failures = 0
                if time.monotonic() - begun < _SHORT:
                    self._ended.wait(_BREATH)
            except ClusterError as error:
                if not error.retry_helps or failures == len(_PAUSES):
                    raise
                self._ended.wait(_PAUSES[failures])
                failures += 1

    def end(self) -> None:
        """Read no more."""
        self._ended.set()
        watch = self._watch
        if watch is not None:
            watch.close()

    def _look_and_watch(self) -> None:
        body = self._cluster.get(self._kind, self._name)
        self.inbox.put(body)
        self._watch = self._cluster.watch(
            self._kind, self._name, body["metadata"]["resourceVersion"]
        )
        if self._ended.is_set():
            # Read nevertheless: to its end, which is now, so that the connection is closed.
            self._watch.close()
        for what, seen in self._watch.events():
            if what == "DELETED":
                raise NotFoundError(f"{self._kind.kind} {self._name} was deleted meanwhile.")
            if what == "ERROR":
                # The version is too old by now: look afresh.
                return
            if what in ("ADDED", "MODIFIED"):
                self.inbox.put(seen)
