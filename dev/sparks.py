"""Other versions of Spark beside the one in the environment, each in a folder of the cache."""

import os
from pathlib import Path

from dev.cache import cached
from dev.console import step
from dev.uv import run_uv

__all__ = ["other_spark"]


def other_spark(version: str) -> dict[str, str]:
    """Environment in which `import pyspark` finds that version; installed on the first call."""
    folder = cached("sparks", version, lambda partial: _install(partial, version), keep=4)
    return {**os.environ, "PYTHONPATH": str(folder), "SPARK_HOME": str(folder / "pyspark")}


def _install(folder: Path, version: str) -> None:
    with step(f"Installing Spark {version} beside ours", usually="30 s, once"):
        run_uv("pip", "install", "--quiet", "--target", str(folder), f"pyspark=={version}")
