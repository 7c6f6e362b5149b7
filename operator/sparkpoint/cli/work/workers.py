"""Asking a worker, in a process of its own, for what needs Spark; its log is kept out of it."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from sparkpoint.state.errors import MissingLibraryError
from sparkpoint.worker.model import Answer, Word

__all__ = ["ask_worker", "require"]

_LAST_LINES = 3


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
    with log.open("wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "sparkpoint.worker", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            env=dict(os.environ),
            check=False,
        )
    try:
        return Answer.model_validate_json(done.stdout)
    except ValidationError:
        lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
        message = f"The worker ended without a word. It said last: {' / '.join(lines)}"
        return Answer(answer=silence, message=message)
