"""Whether the kernel has killed processes of this container, which was at its limit of memory.

It chooses the largest, which is Spark's. The script then sees a connection that breaks, and whether
Kubernetes hears of it in time is a matter of luck: so the last word says it.
"""

import contextlib
import re
from pathlib import Path

__all__ = ["MemoryWatch"]

_COUNTED = (
    Path("/sys/fs/cgroup/memory.events"),
    Path("/sys/fs/cgroup/memory/memory.oom_control"),
)
"""Of this container, where it has a view of its own: cgroup v2, and v1."""
_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class MemoryWatch:
    """Remembers what was before: outside of a container others are counted, too."""

    def __init__(self, counted: tuple[Path, ...] = _COUNTED) -> None:
        self._counted = counted
        self._before = self._kills()

    def has_killed(self) -> bool:
        """Whether there were kills since this was made."""
        return self._kills() > self._before

    def _kills(self) -> int:
        kills = 0
        for path in self._counted:
            with contextlib.suppress(OSError):
                if found := _KILLS.search(path.read_text()):
                    kills += int(found[1])
        return kills
