"""Asking the sources of a tried query whether they can go on, in a thread that may be left behind.

A file source looks at every file of its last batch, which takes as long as its store needs, and
nothing ends it: whoever waits for the answer decides how long.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from sparkpoint.runtime.lastread import LastRead, Offsets, Part
from sparkpoint.runtime.model import RehearsedQuery
from sparkpoint.runtime.verdict import Thrown, if_it_reads, judge, unreadable_offset

__all__ = ["Asking", "HasSources"]


class HasSources(Protocol):
    """What must answer; see execution.py."""

    def gather_jobs(self) -> None: ...
    def cancel_jobs(self) -> None: ...
    def unreadable(self, offsets: Offsets) -> Sequence[Thrown]: ...
    def unrepeatable(self, parts: Sequence[Part]) -> Sequence[Thrown]: ...


class Asking:
    """One question, asked as soon as it is made."""

    def __init__(self, execution: HasSources, read: LastRead) -> None:
        self._execution, self._read = execution, read
        self._answer: Future[RehearsedQuery | None] = Future()
        threading.Thread(target=self._ask, name="sparkpoint-rehearsal-ask", daemon=True).start()

    @property
    def is_answered(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._answer.done()

    def objection(self) -> RehearsedQuery | None:
        """What keeps the query from going on; raises what was raised when they were asked."""
        return self._answer.result()

    def leave(self) -> None:
        """Wait no more: what Spark does for it would hold the real queries up."""
        if not self.is_answered:
            self._execution.cancel_jobs()

    def _ask(self) -> None:
        try:
            self._execution.gather_jobs()
            self._answer.set_result(self._found())
        # The outermost loop of this thread: it is raised where the answer is looked at.
        except Exception as error:
            self._answer.set_exception(error)

    def _found(self) -> RehearsedQuery | None:
        if chain := self._execution.unreadable(self._read.ends):
            return unreadable_offset(chain)
        if chain := self._execution.unrepeatable(self._read.parts()):
            return judge(chain)
        if chain := self._execution.unrepeatable(self._read.earlier_parts()):
            return if_it_reads(judge(chain))
        return None
