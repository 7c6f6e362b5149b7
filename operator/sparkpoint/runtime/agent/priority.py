"""Who waits for whom: a capture beside a running job takes what the job leaves."""

import contextlib
import os
from pathlib import Path

__all__ = ["stand_back"]

_NICE = 19
_FIRST_TO_GO = "1000"
"""When memory runs out, the driver is to survive."""


def stand_back(pid: int) -> None:
    """Let everything else go before a process that was just started: already its imports count.

    Niceness alone would not do: the kernel lets even the nicest wait behind others only for a
    while, and on all cores but one. A locked-down container may not allow any of it, and other
    systems have nothing of the kind.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _NICE)
    if hasattr(os, "SCHED_IDLE"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(_FIRST_TO_GO)
