"""Live captures stand back behind the job; those that it stands still for do not."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from sparkpoint.runtime.agent.child import capture_process
from sparkpoint.runtime.model import ErrorInfo
from sparkpoint.runtime.orders import Line

# Says in the place of an error what it was given, once its input tells it to.
_ASKED = """
import os, pathlib, sys
sys.stdin.readline()
score = pathlib.Path("/proc/self/oom_score_adj").read_text().strip()
words = "%d %d %s" % (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), score)
print('{"error": {"type": "told", "message": "%s"}}' % words, flush=True)
"""


def _told(*, in_hurry: bool) -> list[int]:
    async def ask() -> str:
        heard: list[Line] = []
        command = (sys.executable, "-c", _ASKED)
        async with capture_process(command, heard.append, in_hurry=in_hurry) as process:
            await process._send("now")
            line = Line.model_validate_json(await process._output.readline())
        assert isinstance(line.error, ErrorInfo)
        return line.error.message

    return [int(word) for word in asyncio.run(ask()).split()]


@pytest.mark.parametrize("in_hurry", [False, True])
def test_only_a_live_capture_lets_others_go_first(*, in_hurry: bool) -> None:
    score = int(Path("/proc/self/oom_score_adj").read_text())
    ours = [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), score]

    assert _told(in_hurry=in_hurry) == (ours if in_hurry else [19, os.SCHED_IDLE, 1000])
