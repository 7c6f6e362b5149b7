"""A workload running in another process, started and ended by a test. Every wait is bounded."""

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["LiveWorkload", "running_workload"]

_ROOT = Path(__file__).resolve().parents[3]


class LiveWorkload:
    """The process; `log` is where Spark's chatter goes."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self.process, self.log = process, log

    def stop(self, timeout: float = 60) -> None:
        """Stop the query abruptly and wait for the process; AssertionError if it failed."""
        if self.process.poll() is None and self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait(timeout)
        assert self.process.returncode == 0, self.tail()

    def kill(self) -> None:
        """End the process and its JVM at once, as a lost node would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait(30)

    def tail(self, lines: int = 40) -> str:
        """The end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


@contextlib.contextmanager
def running_workload(
    name: str,
    *,
    provider: str,
    inputs: Path,
    checkpoint: str,
    sink: Path,
    log: Path,
    trigger: str | None = None,
    confs: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 180,
) -> Iterator[LiveWorkload]:
    """Run a workload until the block ends; it is running when the block begins."""
    command = [sys.executable, "-m", "tests.spark.workloads.run", "--workload", name]
    command += ["--provider", provider, "--input", str(inputs), "--checkpoint", checkpoint]
    command += ["--sink", str(sink), *(["--trigger", trigger] if trigger else [])]
    for key, value in (confs or {}).items():
        command += ["--conf", f"{key}={value}"]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    live = LiveWorkload(process, log)
    try:
        _wait_until_ready(live, timeout)
        yield live
    finally:
        live.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def _wait_until_ready(live: LiveWorkload, timeout: float) -> None:
    lines: queue.Queue[str] = queue.Queue()
    output = live.process.stdout
    assert output is not None

    def forward() -> None:
        for line in output:
            lines.put(line)
        lines.put("")

    threading.Thread(target=forward, daemon=True).start()
    try:
        line = lines.get(timeout=timeout)
    except queue.Empty:
        raise AssertionError(f"no query within {timeout} s:\n{live.tail()}") from None
    assert line.strip() == "ready", live.tail()
