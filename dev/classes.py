"""Spark's classes in an archive that JVMs start from.

Beside a Spark in the cache and not beside the one of this environment: a JVM asks that the jars lie
where they lay when the archive was made, and every checkout has an environment of its own.
"""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dev.cache import digest_of, exclusive
from dev.console import run_program, step
from dev.sparks import other_spark

__all__ = ["INTERPRETED", "SHORT_LIVED", "Archive", "archived_classes"]

_SCRIPT = Path(__file__).parent.parent / "images" / "archive_classes.py"
# A test's JVM lives for minutes: compiling its code well costs more than it gives.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# The same for the Java that Spark writes and compiles for every plan: a third of the processor time
# up to the first commits, for a few rows.
INTERPRETED: Mapping[str, str] = {"spark.sql.codegen.wholeStage": "false"}


@dataclass(frozen=True)
class Archive:
    """A Spark whose JVMs start quickly."""

    home: Path
    """Its SPARK_HOME: the classes of another one before these would be run in their place."""

    @property
    def variables(self) -> Mapping[str, str]:
        """Of the environment that starts a JVM for a short time."""
        options = f"{SHORT_LIVED} -XX:SharedArchiveFile={self.home / 'classes.jsa'}"
        return {"SPARK_HOME": str(self.home), "SPARK_SUBMIT_OPTS": options}

    @property
    def properties(self) -> Mapping[str, str]:
        """Of Spark."""
        return {"spark.driver.extraClassPath": str(self.home / "classpath.jar"), **INTERPRETED}


def archived_classes(version: str | None = None) -> Archive:
    """Of this version of Spark, or of the environment's; made on the first call."""
    environment = other_spark(version or _own_version())
    home = Path(environment["SPARK_HOME"])
    with exclusive(f"classes-{digest_of([str(home)])}"):
        made = home / "classes.key"
        key = digest_of([_SCRIPT, home / "version.py", _java_version()])
        if not made.exists() or made.read_text() != key:
            with step("Archiving Spark's classes for quick starts", usually="30 s, once"):
                run_program(
                    [sys.executable, str(_SCRIPT)],
                    env=environment,
                    failed="Archiving Spark's classes failed",
                    remedy="run the same command again; the output above tells what happened.",
                )
            made.write_text(key)
    return Archive(home)


def _own_version() -> str:
    # Only here: whoever wants the options of short-lived pods alone need not load Spark.
    import pyspark

    return pyspark.__version__


def _java_version() -> str:
    return subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
