"""The process around a task: it says its answer once, on standard output and where the kubelet
looks, whatever happens; a signal ends it within seconds.

Nothing has to be tidied up for the sake of what was written: the repository's rules allow for a
process that is killed. A signal only lets the task give its lease back.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

from sparkpoint.runtime.redaction import Redaction
from sparkpoint.runtime.termination import flush_streams, say
from sparkpoint.worker.exits import exit_of
from sparkpoint.worker.failures import answer_of
from sparkpoint.worker.fitting import render, render_whole
from sparkpoint.worker.model import Answer
from sparkpoint.worker.tasks import parse
from sparkpoint.worker.telling import Telling

__all__ = ["answer_to", "run", "termination_log", "write_answer"]

_TERMINATION_LOG = Path("/dev/termination-log")
_GRACE = 5.0
"""Seconds to give a lease back after a signal: well below Kubernetes' grace period."""


class _Signalled(BaseException):
    """Unwinds the task; an `except Exception` lets it through."""


def answer_to(arguments: Sequence[str], environment: Mapping[str, str]) -> Answer:
    """Do the task; every failure is an answer, too."""
    try:
        task, work = parse(arguments, environment)
        with Telling(task) as telling:
            return _redacted(work(telling), environment)
    # The outermost loop of this process: whatever it is, whoever asked shall know.
    except Exception as error:
        return _redacted(answer_of(error), environment)


def _redacted(answer: Answer, environment: Mapping[str, str]) -> Answer:
    """Without secrets: it ends in the status of a job or a savepoint."""
    content = Redaction.of(environment).document(answer.model_dump())
    return Answer.model_validate(content)


def run(arguments: Sequence[str]) -> NoReturn:
    """Do the task, say the answer, end the process."""
    ending = _Ending(_own_output(), termination_log(arguments))
    signal.signal(signal.SIGTERM, ending.signalled)
    signal.signal(signal.SIGINT, ending.signalled)
    try:
        answer = answer_to(arguments, os.environ)
    except _Signalled:
        answer = ending.interrupted()
    ending.conclude(answer)
    while True:  # another thread is about to end the process
        time.sleep(1)


class _Ending:
    """Says one answer, and ends the process with its code."""

    def __init__(self, output: IO[bytes], log: Path | None) -> None:
        self._output, self._log = output, log
        self._once = threading.Lock()
        self._signal = ""

    def signalled(self, number: int, _frame: FrameType | None) -> None:
        """Unwind the task, but not for ever; a second signal waits for nothing."""
        if self._signal:
            self.conclude(self.interrupted())
            return
        self._signal = signal.Signals(number).name
        threading.Thread(target=self._conclude_soon, name="signalled", daemon=True).start()
        raise _Signalled

    def _conclude_soon(self) -> None:
        time.sleep(_GRACE)
        self.conclude(self.interrupted())

    def interrupted(self) -> Answer:
        return Answer(
            answer="Failed",
            kind="Interrupted",
            message=f"{self._signal} came before the task was done. Nothing half-done is in the "
            "way: the same command does it again.",
            retry_helps=True,
        )

    def conclude(self, answer: Answer) -> None:
        """End the process; returns only if that is under way already."""
        if not self._once.acquire(blocking=False):
            return
        write_answer(answer, self._log)
        self._output.write(f"{render_whole(answer)}\n".encode())
        flush_streams()
        # Threads that still wait for a server must not hold the process.
        os._exit(exit_of(answer))


def termination_log(arguments: Sequence[str]) -> Path | None:
    """Where the answer goes, also if the rest of the command line is wrong.

    The usual place counts only where it exists: outside of a pod nobody looks there.
    """
    ours = list(takewhile(lambda each: each != "--", arguments))
    for index, argument in enumerate(ours):
        name, equals, value = argument.partition("=")
        if name == "--termination-log":
            given = value if equals else "".join(ours[index + 1 : index + 2])
            return Path(given) if given and not given.startswith("--") else None
    return _TERMINATION_LOG if _TERMINATION_LOG.is_file() else None


def write_answer(answer: Answer, log: Path | None) -> None:
    """Write it in place: the kubelet has mounted the file. If that fails, the log says so."""
    if log is None:
        return
    try:
        log.write_text(render(answer), encoding="utf-8")
    except OSError as error:
        say(f"sparkpoint: the answer cannot be written to {log}: {error}")


def _own_output() -> IO[bytes]:
    """Standard output for the answer alone: whatever else prints goes to the log."""
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    sys.stdout.flush()
    os.dup2(2, 1)
    return output
