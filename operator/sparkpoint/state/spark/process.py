"""Starting Spark beside us: a Python process with an order, whose answer is one JSON document.

Spark is kept out of our own process: it prints, it may run out of memory, and its JVM must be gone
when we are. What it prints goes to a file, of which an error tells the end.
"""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

from sparkpoint.state.errors import MissingLibraryError, SparkFailedError

__all__ = ["how_ended", "require_spark", "run_spark", "stop"]

_GRACE = 3.0
"""Seconds for the JVM to go; then it is killed with the process."""
_TOLD = 3
"""Lines of the log that an error repeats."""
_LONGEST = 400


def require_spark(what: str) -> None:
    """MissingLibraryError unless PySpark is installed."""
    if importlib.util.find_spec("pyspark") is None:
        raise MissingLibraryError(
            f"{what} needs Spark. Install it with `pip install 'sparkpoint[spark]'`, and Java 17."
        )


def run_spark(module: str, order: str, scratch: Path) -> str:
    """Run a module with the order in a file; the text that it wrote to the other file."""
    given, answer, log = scratch / "order.json", scratch / "answer.json", scratch / "spark.log"
    given.write_text(order)
    answer.unlink(missing_ok=True)
    # `-P`: no module of the working directory is taken for one of ours or of Spark's.
    command = [sys.executable, "-P", "-m", module, str(given), str(answer)]
    environment = {"PYSPARK_PYTHON": sys.executable, **os.environ}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
        try:
            code = process.wait()
        finally:
            stop(process)
    if code != 0 or not answer.exists():
        raise SparkFailedError(
            f"Spark ended {how_ended(code)} before it was done. It said last: {_end_of(log)}"
        )
    return answer.read_text()


def stop(process: "subprocess.Popen[bytes]", *, grace: float = _GRACE) -> None:
    """End it, whatever it does; within the grace it can end what it has started."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def how_ended(code: int) -> str:
    """An exit code in words."""
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


def _end_of(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " / ".join(line[:_LONGEST] for line in lines[-_TOLD:]) or "nothing."
