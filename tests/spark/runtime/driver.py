"""A driver under test: `python -m sparkpoint.runtime` in its own process. Waits are bounded."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dev.classes import archived_classes
from dev.sparks import other_spark
from sparkpoint.runtime.client import SyncAgentClient
from sparkpoint.runtime.model import Termination
from tests.spark.workloads.session import SHARED_FILES

__all__ = ["QUICK_FILES", "SCRIPTS", "Driver", "Setting", "agent_of", "agent_options", "driving"]

SCRIPTS = Path(__file__).parent / "scripts"
_TOKEN = "secret"
_LISTENS = re.compile(r"agent listens on (http://\S+)")
# Spark's own choice asks a process of its own about every file that it renames (`readlink`).
QUICK_FILES = SHARED_FILES
"""For tests that are about a script and how it ends, and not about the files of its checkpoint."""
_CONF = """\
spark.master local[2]
spark.ui.enabled false
spark.ui.showConsoleProgress false
spark.log.level ERROR
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.sql.session.timeZone UTC
spark.sql.shuffle.partitions 2
spark.default.parallelism 2
spark.sql.streaming.stateStore.minDeltasForSnapshot 3
spark.sql.streaming.pollingDelay 100ms
"""


@dataclass(frozen=True)
class Setting:
    """Where a job lives, through all its drivers."""

    root: Path
    confs: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    epoch_uri: str | None = None
    """Where its checkpoints are, if not in a directory."""
    spark_version: str | None = None
    """If not that of this environment."""

    @property
    def epoch_dir(self) -> Path:
        """Where its checkpoints are, by default."""
        return self.root / "epoch"

    def checkpoint(self, query: str) -> Path:
        """Of one query."""
        return self.epoch_dir / query

    def environment(self) -> dict[str, str]:
        """Spark's own way to be told what scripts do not say: a file of defaults."""
        conf = self.root / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        archive = archived_classes(self.spark_version)
        confs = {**archive.properties, **self.confs}
        lines = "".join(f"{key} {value}\n" for key, value in confs.items())
        (conf / "spark-defaults.conf").write_text(_CONF + lines)
        return {
            **(other_spark(self.spark_version) if self.spark_version else os.environ),
            **archive.variables,
            "SPARK_CONF_DIR": str(conf),
            "PYSPARK_PYTHON": sys.executable,
            **self.variables,
        }


class Driver:
    """The process."""

    def __init__(self, process: "subprocess.Popen[bytes]", root: Path) -> None:
        self.process, self._root = process, root

    @property
    def log(self) -> str:
        """All that it has written so far."""
        return (self._root / "driver.log").read_text(errors="replace")

    def await_true(self, what: Callable[[], object], seconds: float = 400) -> None:
        """Wait until something holds; AssertionError if it does not, or the driver ends."""
        deadline = time.monotonic() + seconds
        while not what():
            assert self.process.poll() is None, f"the driver has ended:\n{self.log[-4000:]}"
            assert time.monotonic() < deadline, f"waited {seconds:.0f} s:\n{self.log[-4000:]}"
            time.sleep(0.05)

    def signal(self, number: signal.Signals) -> None:
        """To the process alone, as the kubelet does."""
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """To everything in its process group, as Ctrl-C in a terminal does."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, seconds: float = 400) -> Termination:
        """Wait for its end; its last word, which agrees with its exit code."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running:\n{self.log[-4000:]}") from None
        text = (self._root / "termination").read_text()
        assert len(text.encode()) <= 4096
        termination = Termination.model_validate_json(text)
        assert termination.exit_code == code, self.log[-4000:]
        return termination

    def jars(self) -> set[str]:
        """Names of the jars that its JVM has opened."""
        found = set()
        for pid in _children(self.process.pid):
            for opened in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    found.add(opened.readlink().name)
        return {name for name in found if name.endswith(".jar")}

    def kill_jvm(self) -> None:
        """As the kernel does when memory runs out."""
        for pid in _children(self.process.pid):
            os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        """As a lost node: the process and its JVM, at once."""
        for pid in (*_children(self.process.pid), self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(30)


@contextlib.contextmanager
def driving(
    setting: Setting, script: str | Path, *arguments: object, options: tuple[str, ...] = ()
) -> Iterator[Driver]:
    """Run a script until the block ends."""
    path = SCRIPTS / script if isinstance(script, str) else script
    directory = setting.epoch_uri or str(setting.epoch_dir)
    command = [sys.executable, "-m", "sparkpoint.runtime", "--epoch-dir", directory]
    command += ["--epoch", "1", "--job", "tests/job", *options]
    command += ["--termination-log", str(setting.root / "termination")]
    command += ["--", str(path), *map(str, arguments)]
    setting.root.mkdir(parents=True, exist_ok=True)
    (setting.root / "termination").unlink(missing_ok=True)
    with (setting.root / "driver.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=setting.root,
            env=setting.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    driver = Driver(process, setting.root)
    try:
        yield driver
    finally:
        driver.kill()


def agent_options(setting: Setting) -> tuple[str, ...]:
    """Options that give a driver an agent."""
    setting.root.mkdir(parents=True, exist_ok=True)
    (setting.root / "token").write_text(f"{_TOKEN}\n")
    return "--agent-port", "0", "--token-file", str(setting.root / "token")


def agent_of(driver: Driver) -> SyncAgentClient:
    """A client of the agent that a driver says it has."""
    driver.await_true(lambda: _LISTENS.search(driver.log))
    found = _LISTENS.search(driver.log)
    assert found is not None
    return SyncAgentClient(found[1], _TOKEN)


def _children(parent: int) -> list[int]:
    """Its JVM, which has a process group of its own."""
    found = Path(f"/proc/{parent}/task/{parent}/children")
    with contextlib.suppress(OSError):
        return [int(pid) for pid in found.read_text().split()]
    return []
