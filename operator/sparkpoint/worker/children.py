"""A Python process of ours that does what needs Spark, and leaves one JSON document behind.

Spark is kept out of the worker itself: it prints, it may run out of memory, and its JVM must be
gone when the worker is.
"""

import subprocess
import sys
from pathlib import Path

from sparkpoint.state.spark.process import how_ended, stop
from sparkpoint.worker.errors import SparkError

__all__ = ["run_child"]


def run_child(module: str, order: str, scratch: Path) -> str:
    """Run a module with the order in a file; the text that it wrote to the other file."""
    given, answer = scratch / "order.json", scratch / "answer.json"
    given.write_text(order)
    # `-P`: no module of the working directory is taken for one of ours or of Spark's.
    command = [sys.executable, "-P", "-m", module, str(given), str(answer)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2)
    try:
        code = process.wait()
    finally:
        stop(process)
    if code != 0 or not answer.exists():
        raise SparkError(
            f"Spark ended {how_ended(code)} before it was done; its log is above. If it ran out of "
            "memory, give the driver more."
        )
    return answer.read_text()
