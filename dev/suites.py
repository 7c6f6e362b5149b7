"""`make test`: all suites, cheap ones first, each in its own process; the first failure ends it.

One cluster serves the whole run; a suite's time is printed with how busy the machine was meanwhile,
so that growth is seen, and whether it is work or waiting.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
_LAST_SECONDS = 60
"""For a suite that is no longer waited for."""


@dataclass(frozen=True, slots=True)
class _Suite:
    folder: str
    usually: str
    """How long it takes on 2 cores with warm caches."""
    spread: tuple[str, ...] = ()
    """Over the cores: tests wait for other processes, so there are more workers than cores."""
    python: str = sys.executable
    on_named_clusters: bool = True
    """False: it stops the programs of the node, which is for a node of ours alone."""
    beside: "_Suite | None" = None
    """Another one that mostly waits, run at the same time; what it says is shown at its end."""

    def command(self) -> list[str]:
        arguments = [self.folder, "-q", "--durations=10", *self.spread]
        return [self.python, "-m", "pytest", *arguments]


_SUITES = (
    _Suite(
        "tests/unit",
        "2 min; 1 more for the other",
        ("-n", "4", "--dist", "worksteal"),
        # One process: it keeps one Airflow for all tests, and the last of them starts four more.
        beside=_Suite("tests/airflow", "beside the unit tests", python=_AIRFLOW),
    ),
    _Suite("tests/spark", "9 min", ("-n", "3", *_BY_TEST)),
    _Suite("tests/cluster", "12 min; 12 more with empty caches", ("-n", "3", *_BY_TEST)),
    # One at a time, and after the others: it has an operator of its own.
    _Suite("tests/chaos", "1 min", on_named_clusters=False),
)


def main() -> None:
    """Run the suites; exit with the first failure's code."""
    if not os.environ.get("CONTEXT"):
        check_machine()
    # See tests/conftest.py: no chance in what decides whether something may land.
    os.environ.setdefault("CI", "1")
    took: list[str] = []
    # Here and not in a fixture, which pytest would keep silent for minutes.
    helm_binary()
    for suite in _SUITES:
        if os.environ.get("CONTEXT") and not suite.on_named_clusters:
            continue
        _prepare(suite.folder)
        say(f"==> {suite.folder} (usually {suite.usually})")
        before = _Busy.now()
        code = _run(suite)
        took.append(f"{suite.folder} {before.since()}")
        if code != 0:
            say(f"{suite.folder} failed; the suites after it were not run.")
            sys.exit(code)
    say("All suites passed: " + ", ".join(took))


def _prepare(folder: str) -> None:
    """What is built for minutes, for the same reason as Helm."""
    if folder == "tests/spark":
        archived_classes()
    if folder == "tests/cluster" and not os.environ.get("CONTEXT"):
        kubernetes_binaries()
        build_images()
        build_images(SECOND_SPARK_VERSION)


def _run(suite: _Suite) -> int:
    """Its exit code, or that of the one beside it."""
    with _beside(suite.beside) as other:
        code = subprocess.run(suite.command(), check=False).returncode
        return code or (other.wait() if other else 0)


@contextmanager
def _beside(suite: _Suite | None) -> Iterator[subprocess.Popen[bytes] | None]:
    """It ends with the other one at the latest if that failed; nothing is left running."""
    if suite is None:
        yield None
        return
    say(f"==> {suite.folder} ({suite.usually})")
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(suite.command(), stdout=said, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            _end(process)
            said.seek(0)
            say(said.read().decode(errors="replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C does, so that its fixtures end what they have started."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_LAST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@dataclass(frozen=True, slots=True)
class _Busy:
    at: float
    worked: float
    """Seconds of processor time of the whole machine: clusters are no children of ours."""

    @classmethod
    def now(cls) -> "_Busy":
        user, nice, system, *_ = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        ticks = int(user) + int(nice) + int(system)
        return cls(time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"))

    def since(self) -> str:
        now = self.now()
        seconds = now.at - self.at
        cores = (now.worked - self.worked) / seconds
        return f"{seconds:.0f} s ({cores:.1f} of {os.cpu_count()} cores busy)"


if __name__ == "__main__":
    run_command(main)
