"""`make test`: all suites, cheap ones first, each in its own process; the first failure ends it.

One cluster serves the whole run; a suite's time is printed, so that growth is seen.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from dev.classes import archived_classes
from dev.cluster.preflight import check_machine
from dev.cluster.programs import kubernetes_binaries
from dev.console import run_command, say
from dev.helm import helm_binary
from dev.image.build import SECOND_SPARK_VERSION, build_images

# Airflow's packages are not those of the other suites; `make test` installs them.
_AIRFLOW = str(Path(__file__).parent.parent / ".venv-airflow" / "bin" / "python")
# One test at a time to whoever is free, as they differ by minutes.
_BY_TEST = ("--dist", "load", "--maxschedchunk", "1")


@dataclass(frozen=True, slots=True)
class _Suite:
    folder: str
    usually: str
    """How long it takes on 2 cores with warm caches."""
    spread: tuple[str, ...] = ()
    """Over the cores: tests wait for other processes, so there are more workers than cores."""
    python: str = sys.executable

    def command(self) -> list[str]:
        arguments = [self.folder, "-q", "--durations=10", *self.spread]
        return [self.python, "-m", "pytest", *arguments]


_SUITES = (
    _Suite("tests/unit", "2 min 30 s", ("-n", "4", "--dist", "loadfile")),
    # One process: it keeps one Airflow for all tests, and the last of them starts four more.
    _Suite("tests/airflow", "3 min", python=_AIRFLOW),
    _Suite("tests/spark", "13 min", ("-n", "3", *_BY_TEST)),
    _Suite("tests/cluster", "13 min; 12 more with empty caches", ("-n", "3", *_BY_TEST)),
    # One at a time, and after the others: it has an operator of its own.
    _Suite("tests/chaos", "2 min"),
)


def main() -> None:
    """Run the suites; exit with the first failure's code."""
    if not os.environ.get("CONTEXT"):
        check_machine()
    took: dict[str, float] = {}
    # Here and not in a fixture, which pytest would keep silent for minutes.
    helm_binary()
    for suite in _SUITES:
        folder = suite.folder
        if folder == "tests/spark":
            archived_classes()
        if folder == "tests/cluster" and not os.environ.get("CONTEXT"):
            # For the same reason.
            kubernetes_binaries()
            build_images()
            build_images(SECOND_SPARK_VERSION)
        say(f"==> {folder} (usually {suite.usually})")
        started = time.monotonic()
        done = subprocess.run(suite.command(), check=False)
        took[folder] = time.monotonic() - started
        if done.returncode != 0:
            say(f"{folder} failed after {took[folder]:.0f} s; the suites after it were not run.")
            sys.exit(done.returncode)
    say("All suites passed: " + ", ".join(f"{name} {s:.0f} s" for name, s in took.items()))


if __name__ == "__main__":
    run_command(main)
