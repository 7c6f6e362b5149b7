"""Workers that commands ask; see tests/spark/state for what they answer."""

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import pytest

from sparkpoint.cli.work import workers
from tests.support.waiting import await_true

_WORKER = """#!/bin/sh
# As a worker does: it has a Spark, and ends it when it is told to end.
sleep 600 &
trap 'kill $!; wait $!; touch "$0.ended"; exit 0' TERM
echo $! > "$0.tmp"; mv "$0.tmp" "$0.pid"
wait
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_ended_lets_its_worker_end_its_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    program = tmp_path / "worker"
    program.write_text(_WORKER)
    program.chmod(0o755)
    pid = tmp_path / "worker.pid"
    monkeypatch.setattr(sys, "executable", str(program))

    def end() -> None:
        await_true(pid.exists, "a worker")
        os.kill(os.getpid(), number)

    def told(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, told)
    ending = threading.Thread(target=end)
    ending.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            workers.ask_worker([], tmp_path, silence="Failed")
    finally:
        ending.join()
        signal.signal(number, before)

    assert (tmp_path / "worker.ended").exists()
    await_true(lambda: not Path("/proc", pid.read_text().strip()).exists(), "the end of its Spark")
