"""Other versions of Spark beside the one in the environment, each in a folder of the cache."""

import os
from collections.abc import Sequence
from pathlib import Path

from dev.cache import cached
from dev.console import step
from dev.uv import run_uv

__all__ = ["other_spark"]

_COMPANIONS = {"3.5": ("pandas==2.2.3", "pyarrow==15.0.2", "numpy==1.26.4")}
"""Spark line -> libraries that it needs in another version than ours."""
_KEPT = 8


def other_spark(version: str) -> dict[str, str]:
    """Environment in which `import pyspark` finds that version; installed on the first call."""
    packages = (f"pyspark=={version}", *_COMPANIONS.get(version.rpartition(".")[0], ()))
    name = "-".join((version, *(each.replace("==", "") for each in packages[1:])))
    folder = cached("sparks", name, lambda partial: _install(partial, packages), keep=_KEPT)
    return {**os.environ, "PYTHONPATH": str(folder), "SPARK_HOME": str(folder / "pyspark")}


def _install(folder: Path, packages: Sequence[str]) -> None:
    with step(f"Installing {' and '.join(packages)} beside ours", usually="30 s, once"):
        run_uv("pip", "install", "--quiet", "--target", str(folder), *packages)
