"""Asking a worker, in a process of its own, for what needs Spark; its log is kept out of it."""

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from sparkpoint.state.errors import MissingLibraryError
from sparkpoint.state.spark.process import stop
from sparkpoint.worker.model import Answer, Word

__all__ = ["ask_worker", "require"]

_LAST_LINES = 3
_GRACE = 10.0
"""Seconds for a worker to end its Spark: more than it takes itself."""


def require(*modules: str, purpose: str, extra: str, instead: str) -> None:
    """MissingLibraryError unless all of these are installed."""
    if any(importlib.util.find_spec(name) is None for name in modules):
        raise MissingLibraryError(
            f"{purpose}. Install them with `pip install 'sparkpoint[{extra}]'`, and Java 17; or "
            f"{instead}."
        )


def ask_worker(arguments: Sequence[str], folder: Path, *, silence: Word) -> Answer:
    """What a worker answers; `silence` in its name if it ends without a word."""
    log = folder / "log"
    said = _run([sys.executable, "-m", "sparkpoint.worker", *arguments], log)
    try:
        return Answer.model_validate_json(said)
    except ValidationError:
        lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
        message = f"The worker ended without a word. It said last: {' / '.join(lines)}"
        return Answer(answer=silence, message=message)


def _run(command: Sequence[str], log: Path) -> bytes:
    """What it says; it does not outlive us."""
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            # Ctrl-C is for us: a second signal would not let it end its Spark.
            process_group=0,
        ) as process,
    ):
        try:
            return process.communicate()[0]
        except BaseException:
            # Killed, it would leave a Spark behind that runs on.
            stop(process, grace=_GRACE)
            raise
