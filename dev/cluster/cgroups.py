"""The control groups of a node: one in every hierarchy (version 1), or a single one (version 2)."""

import os
from pathlib import Path

from dev.cluster.layout import Layout

__all__ = ["join_groups", "make_groups", "memory_in_use", "remove_groups"]

_ROOT = Path("/sys/fs/cgroup")
_OWN = "system"
"""The group of the node's own programs, beside the kubelet's `kubepods`."""


def make_groups(layout: Layout) -> None:
    """Make the groups in which the kubelet will make those of pods."""
    for group in _groups(layout):
        for folder in (group, group / _OWN):
            folder.mkdir(exist_ok=True)
            _fill_cpuset(folder)
    if _is_version_2():
        # Every controller that there is: the kubelet refuses a group that lacks one.
        for group in (_ROOT, _ROOT / layout.cgroup):
            for controller in (group / "cgroup.controllers").read_text().split():
                (group / "cgroup.subtree_control").write_text(f"+{controller}")


def join_groups(layout: Layout) -> None:
    """Put the calling process, and so its children, into the node's own groups."""
    for group in _groups(layout):
        (group / _OWN / "cgroup.procs").write_text(str(os.getpid()))


def remove_groups(layout: Layout) -> bool:
    """Remove the groups, deepest first; False while a process is still dying in one."""
    for group in _groups(layout):
        for folder in [Path(root) for root, _, _ in os.walk(group, topdown=False)]:
            try:
                folder.rmdir()
            except OSError:
                return False
    return True


def memory_in_use(layout: Layout) -> int:
    """Bytes of anonymous memory that the node's programs and pods hold."""
    for group in _groups(layout):
        if (statistics := group / "memory.stat").exists():
            pairs = (line.split() for line in statistics.read_text().splitlines())
            values = {key: int(value) for key, value in pairs}
            return values.get("total_rss", values.get("anon", 0))
    return 0


def _groups(layout: Layout) -> list[Path]:
    if _is_version_2():
        return [_ROOT / layout.cgroup]
    # Including a unified hierarchy beside version 1, in which runc makes groups too.
    return [h / layout.cgroup for h in sorted(_ROOT.iterdir()) if (h / "cgroup.procs").exists()]


def _is_version_2() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


def _fill_cpuset(folder: Path) -> None:
    """Give a new group its parent's processors: version 1 starts with none."""
    if _is_version_2():
        return
    for setting in ("cpuset.cpus", "cpuset.mems"):
        if (folder / setting).exists():
            (folder / setting).write_text((folder.parent / setting).read_text())
