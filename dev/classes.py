"""Spark's classes in an archive that JVMs start from, beside the Spark of this environment."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from dev.cache import digest_of, exclusive
from dev.console import run_program, step

__all__ = ["SHORT_LIVED", "archived_classes"]

_SCRIPT = Path(__file__).parent.parent / "images" / "archive_classes.py"
# A test's JVM lives for minutes: compiling its code well costs more than it gives.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def archived_classes(other: Mapping[str, str] | None = None) -> tuple[str, Mapping[str, str]]:
    """JVM options and Spark properties of short runs; the archive is made on the first call.

    `other` is the environment of another Spark: its classes are its own, and ours before them on
    the class path would be run in their place.
    """
    home = Path(other["SPARK_HOME"]) if other else _own_home()
    with exclusive(f"classes-{digest_of([str(home)])}"):
        made = home / "classes.key"
        key = digest_of([_SCRIPT, home / "version.py", _java_version()])
        if not made.exists() or made.read_text() != key:
            with step("Archiving Spark's classes for quick starts", usually="30 s, once"):
                run_program(
                    [sys.executable, str(_SCRIPT)],
                    env={**os.environ, **other} if other else None,
                    failed="Archiving Spark's classes failed",
                    remedy="run the same command again; the output above tells what happened.",
                )
            made.write_text(key)
    options = f"{SHORT_LIVED} -XX:SharedArchiveFile={home / 'classes.jsa'}"
    return options, {"spark.driver.extraClassPath": str(home / "classpath.jar")}


def _own_home() -> Path:
    # Only here: whoever wants the options of short-lived pods alone need not load Spark.
    import pyspark

    return Path(pyspark.__file__).parent


def _java_version() -> str:
    return subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
