"""The processes of a node and of its pods as the machine sees them: killed, stopped, cut off."""

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dev.cluster.layout import Layout
from dev.cluster.programs import tool_environment
from dev.jobs import AGENT_PORT

__all__ = [
    "cut_agents",
    "kill_pod",
    "processes_of_component",
    "processes_of_pod",
    "standing_still",
    "undone_for_certain",
]

_GROUPS = Path("/sys/fs/cgroup")
_PAUSE = "/pause"
_QUALITIES = ("", "burstable", "besteffort")
"""Of service: where a kubelet puts the groups of pods."""
_AT_THE_LATEST = 60.0
"""Seconds after which something is undone, whatever has become of us: longer than any fault."""


def processes_of_component(layout: Layout, name: str) -> list[int]:
    """Of a program of the node, such as etcd."""
    mark = f"{layout.folder}/"
    return [
        pid
        for pid, words in _commands()
        if words[0] == name and any(mark in word for word in words[1:])
    ]


def processes_of_pod(layout: Layout, uid: str) -> list[int]:
    """Those that do the work of a pod; none once its containers have ended, whatever is reported.

    Asked of the kernel: an API server tells what a kubelet has told it, a moment later.
    """
    pods = _hierarchy(layout) / layout.cgroup / "kubepods"
    found = {pid for quality in _QUALITIES for pid in _members(pods / quality / f"pod{uid}")}
    return sorted(pid for pid in found if _command(pid)[:1] not in ([], [_PAUSE]))


def kill_pod(layout: Layout, uid: str) -> bool:
    """SIGKILL all of its processes at once; False if there was none."""
    found = processes_of_pod(layout, uid)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(found)


@contextlib.contextmanager
def standing_still(processes: list[int]) -> Iterator[None]:
    """They neither run nor end; connections to them stay open and are not answered."""
    with undone_for_certain(["kill", "-CONT", *map(str, processes)]):
        try:
            _signal(processes, signal.SIGSTOP)
            yield
        finally:
            _signal(processes, signal.SIGCONT)


def _signal(processes: Sequence[int], number: signal.Signals) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


@contextlib.contextmanager
def cut_agents(layout: Layout) -> Iterator[None]:
    """Nothing that this machine sends to an agent of the cluster arrives."""
    whose = ("-s", layout.host_address, "-p", "tcp", "--dport", str(AGENT_PORT), "-j", "DROP")
    remove = _iptables(layout, "-D", "FORWARD", *whose)
    with undone_for_certain(remove, env=tool_environment()):
        _run(_iptables(layout, "-I", "FORWARD", *whose))
        try:
            yield
        finally:
            _run(remove)


def _iptables(layout: Layout, *arguments: str) -> list[str]:
    pid = (layout.folder / "node.pid").read_text().split()[0]
    return ["nsenter", "-t", pid, "-m", "-n", "--", "iptables", "-w", *arguments]


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, env=tool_environment(), check=True, capture_output=True, timeout=30)


@contextlib.contextmanager
def undone_for_certain(
    command: Sequence[str],
    *,
    seconds: float = _AT_THE_LATEST,
    env: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Somebody else does this later if we are killed: nobody would find a stopped API server."""
    later = subprocess.Popen(
        ["sh", "-c", f"sleep {seconds}; {shlex.join(command)}"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # A session of its own: it outlives us, and its sleep ends with it.
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(later.pid, signal.SIGKILL)
        later.wait()


def _hierarchy(layout: Layout) -> Path:
    """The single one of version 2, or one of version 1 that containers are in for certain."""
    first = _GROUPS / "memory"
    found = first if (first / layout.cgroup).exists() else _GROUPS
    assert (found / layout.cgroup).exists(), f"no control group of {layout.cgroup}"
    return found


def _members(group: Path) -> Iterator[int]:
    """Of a group and those in it; they come and go meanwhile."""
    for folder, _, _ in os.walk(group):
        with contextlib.suppress(OSError):
            yield from map(int, (Path(folder) / "cgroup.procs").read_text().split())


def _commands() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and (words := _command(int(folder.name))):
            yield int(folder.name), words


def _command(pid: int) -> list[str]:
    """Empty of one that has ended, and is not yet collected too."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []
