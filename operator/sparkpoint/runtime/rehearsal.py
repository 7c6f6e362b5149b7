"""A rehearsal: the script's own queries, for one batch each, on a throw-away copy of a savepoint.

The script runs as it will run later, but with this in the place of the job (hooks.py). It is ended
where it begins to wait for its queries, and what they did is the verdict: a check of compatibility
that asks Spark itself, and a warm-up of everything that the first batch needs.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sparkpoint.runtime.conclusion import Course, conclude
from sparkpoint.runtime.errors import ScriptOver
from sparkpoint.runtime.execution import LostError
from sparkpoint.runtime.identity import Identities, Identity
from sparkpoint.runtime.model import RehearsalInfo
from sparkpoint.runtime.options import RehearsalOptions
from sparkpoint.runtime.scratch import Scratch
from sparkpoint.runtime.script import ScriptEnd
from sparkpoint.runtime.sessions import forget_ended, renew_session, stop_context
from sparkpoint.runtime.threads import working_threads
from sparkpoint.runtime.trials import Trials
from sparkpoint.runtime.writing import Asked, Launch

__all__ = ["Rehearsal"]

_LOOK = 0.05
"""Seconds between two looks at the trials."""
_QUIET = 5.0
"""A script that has started all that is expected, and then only sleeps, waits for its queries."""
_UNWIND = 60.0
"""How long a script may take, after the deadline, to come to a point where it can be ended."""
_STOP_SECONDS = 5.0
_STUCK = (
    "The rehearsal cannot be ended: the script goes on. It may catch whatever is raised "
    "(`except:`), or wait for something else than its queries. Start it without --rehearse."
)

logger = logging.getLogger("sparkpoint.runtime")


class Rehearsal:
    """Implements hooks.Script for the script, and what the job shows of it."""

    def __init__(
        self,
        options: RehearsalOptions,
        scratch: Scratch,
        trials: Trials,
        *,
        job: str,
        is_called_off: Callable[[], bool],
        nudge: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_called_off` tells whether the driver ends; `nudge` ends a script that sleeps."""
        self._options, self._scratch, self._trials, self._job = options, scratch, trials, job
        self._is_called_off, self._nudge, self._monotonic = is_called_off, nudge, monotonic
        self._deadline = monotonic() + options.deadline
        self._identities = Identities()
        self._over, self._script_ended = threading.Event(), threading.Event()
        self._closing, self._closed = threading.Lock(), False
        self._sessions: list[SparkSession] = []
        self._ends_by_itself = False
        self._quiet_since = float("inf")
        self._not_seen: str | None = None
        self._owns_context = self._stops_context = False
        self._done: RehearsalInfo | None = None

    # --- for the launcher and the job ------------------------------------------------------------

    def perform(
        self, run: Callable[[], ScriptEnd], give_up: Callable[[str], object]
    ) -> RehearsalInfo:
        """Run the script to the point where it waits, and its queries for a batch each.

        Afterwards nothing of it is left but a warm Spark. `give_up` is called if the script cannot
        be ended.
        """
        watch = threading.Thread(
            target=self._watch, args=(give_up,), name="sparkpoint-rehearsal", daemon=True
        )
        watch.start()
        end = run()
        self._script_ended.set()
        watch.join()
        course = self._course(end)
        self.close()
        self._leave_session()
        self._done = conclude(course)
        return self._done

    @property
    def is_over(self) -> bool:
        """Whether the script is to end."""
        return self._over.is_set()

    def info(self) -> RehearsalInfo:
        """As it is now."""
        if self._done is not None:
            return self._done
        queries = self._trials.found()
        return RehearsalInfo(savepoint=self._savepoint, state="running", queries=queries)

    def close(self) -> None:
        """Stop the trials and remove the copy; whoever comes second waits for the first."""
        with self._closing:
            if self._closed:
                return
            self._over.set()
            self._trials.stop(budget=0 if self._is_called_off() else _STOP_SECONDS)
            for session in self._sessions:
                with suppress(LostError):
                    forget_ended(session)
            if self._options.keep is not None and not self._is_called_off():
                self._scratch.keep(self._options.keep, job=self._job)
            self._scratch.remove()
            self._closed = True

    # --- for the script's hooks ------------------------------------------------------------------

    def session_made(self, *, with_context: bool) -> None:
        """Remember whose the context is."""
        self._owns_context = self._owns_context or with_context

    @contextmanager
    def starting(self, asked: Asked) -> Iterator["_Begun"]:
        """Let a query have its trial as soon as the copy is there."""
        self._check()
        identity = self._identities.claim(asked.name, asked.place, is_active=self._is_known)
        if self._is_known(identity.name):
            self._not_seen = f"the script starts query {identity.name!r} a second time."
            self._over.set()
        self._await_copy()
        self._ends_by_itself = self._ends_by_itself or asked.ends
        if asked.session not in self._sessions:
            self._sessions.append(asked.session)
        try:
            yield _Begun(self._trials, identity)
        finally:
            self._quiet_since = self._monotonic()

    def waiting(self, seconds: float | None, *, returns: bool) -> bool:
        """End the script here; a wait with an end of its own is waited, as nothing has ended."""
        self._check()
        if seconds is not None:
            self._over.wait(seconds)
            self._check()
            return False
        if threading.current_thread() is not threading.main_thread():
            # Other threads of the script, and the main one, may have more to start.
            raise ScriptOver
        self._over.set()
        if returns or self._ends_by_itself:
            self._not_seen = "the script waits for one that ends by itself before it goes on."
        elif working_threads():
            self._not_seen = "the script has threads that may have started it later."
        raise ScriptOver

    def adding_listener(self) -> bool:
        """What happens here is nothing that the script should tell others."""
        return False

    def stopping_query(self) -> None:
        """Not before it has had its batch."""
        self._trials.await_decided(self._left())

    def stopping_context(self) -> bool:
        """Keep it warm."""
        return self._stops_context

    def _leave_session(self) -> None:
        """Let the script find what it would find, and everything warm."""
        try:
            if self._owns_context:
                renew_session(self._sessions[0] if self._sessions else None)
            else:
                # What the script makes with its own hands cannot be made again beside this one.
                self._stops_context = True
                stop_context()
        except LostError as lost:
            logger.warning("Rehearsal: the session could not be renewed: %s", lost)

    # --- the course ------------------------------------------------------------------------------

    def _watch(self, give_up: Callable[[str], object]) -> None:
        """Until the script has ended and every trial is decided, or time is over."""
        while not self._is_done():
            self._trials.look()
            if self._cut_short() or self._is_quiet() or self._scratch.error is not None:
                self._over.set()
            if self.is_over and not self._script_ended.is_set():
                self._nudge()
            if self._left() < -_UNWIND:
                give_up(_STUCK)
                return
            time.sleep(_LOOK)

    def _is_done(self) -> bool:
        ended = self._script_ended.is_set()
        return ended and (self._cut_short() is not None or self._trials.is_decided())

    def _cut_short(self) -> str | None:
        """Why time is over, if it is."""
        if self._is_called_off():
            return "when the driver was ended"
        return f"within {self._options.deadline:.0f} s" if self._left() <= 0 else None

    def _is_quiet(self) -> bool:
        copied = self._scratch.copied
        if copied is None or not self._trials.folders(decided=True) >= copied.read.keys():
            return False
        return self._monotonic() - self._quiet_since > _QUIET

    def _left(self) -> float:
        return self._deadline - self._monotonic()

    def _is_known(self, name: str) -> bool:
        return name in self._trials.found()

    def _await_copy(self) -> None:
        while not self._scratch.await_filled(_LOOK):
            self._check()
        if self._scratch.error is not None:
            self._over.set()
        self._check()

    def _check(self) -> None:
        """Unwind a script whose rehearsal is over."""
        if self.is_over:
            raise ScriptOver

    @property
    def _savepoint(self) -> str:
        copied = self._scratch.copied
        return copied.savepoint if copied else self._options.savepoint

    def _course(self, end: ScriptEnd) -> Course:
        copied = self._scratch.copied
        return Course(
            savepoint=self._savepoint,
            expected=copied.read.keys() if copied else set(),
            started=self._trials.folders(),
            found=self._trials.found(),
            script=end,
            copy_error=self._scratch.error,
            not_seen=self._not_seen,
            cut_short=self._cut_short(),
            is_called_off=self._is_called_off(),
        )


class _Begun:
    """A query between the decision to try it and its trial."""

    def __init__(self, trials: Trials, identity: Identity) -> None:
        self._trials, self._identity = trials, identity

    def launch(self, launch: Launch) -> StreamingQuery:
        """Try it out."""
        return self._trials.begin(self._identity, launch)
