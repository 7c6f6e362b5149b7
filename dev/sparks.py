"""Other versions of Spark beside the one in the environment, each in a folder of the cache."""

import os
import subprocess
import sys
from pathlib import Path

from dev.cache import cached
from dev.console import Problem, step

__all__ = ["other_spark"]


def other_spark(version: str) -> dict[str, str]:
    """Environment in which `import pyspark` finds that version; installed on the first call."""
    folder = cached("sparks", version, lambda partial: _install(partial, version), keep=4)
    return {**os.environ, "PYTHONPATH": str(folder), "SPARK_HOME": str(folder / "pyspark")}


def _install(folder: Path, version: str) -> None:
    uv = Path(sys.executable).parent / "uv"
    command = [str(uv), "pip", "install", "--quiet", "--target", str(folder)]
    with step(f"Installing Spark {version} beside ours", usually="30 s, once"):
        done = subprocess.run(
            [*command, f"pyspark=={version}"], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        raise Problem(
            f"pyspark {version} could not be installed: {done.stderr.strip()[-800:]}",
            remedy="check that PyPI is reachable, then run the same command again.",
        )
