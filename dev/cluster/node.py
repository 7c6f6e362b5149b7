"""A node seen from the machine: make its namespaces and its link, look after it, end it."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dev.cluster import cgroups
from dev.cluster.components import components
from dev.cluster.layout import Layout
from dev.cluster.programs import debian_tools, tool_environment
from dev.console import Problem, say

__all__ = ["component_states", "is_running", "start_node", "stop_node"]

_CHECKOUT = Path(__file__).parent.parent.parent
_START_TIMEOUT = 150.0
_LOG_TAIL = 15
_LINK_SECONDS = 240
# A node outlives whoever started it; a collected Popen object would complain of that.
_STARTED: list[subprocess.Popen[bytes]] = []


def start_node(layout: Layout) -> None:
    """Start the node's init process and wait until all components are healthy."""
    stop_node(layout)
    shutil.rmtree(layout.volatile, ignore_errors=True)
    layout.volatile.mkdir(parents=True)
    _refuse_used_network(layout)
    cgroups.make_groups(layout)
    with (layout.volatile / "init.log").open("ab") as log:
        process = subprocess.Popen(
            [
                *("unshare", "--mount", "--net", "--pid", "--ipc", "--uts"),
                *("--fork", "--kill-child", "--mount-proc", "--propagation", "private"),
                *(sys.executable, "-m", "dev.cluster.init", layout.name, str(debian_tools())),
            ],
            cwd=_CHECKOUT,
            env=tool_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _STARTED.append(process)
    (layout.folder / "node.pid").write_text(f"{process.pid} {_started(process.pid)}")
    _connect(layout, process)
    _await_components(layout, process)


def stop_node(layout: Layout) -> None:
    """End the node, and with it every process, mount and interface in it; harmless twice."""
    if pid := _node_pid(layout):
        # unshare was started with --kill-child: its death kills PID 1 of the node, and the kernel
        # then kills the rest of the PID namespace.
        os.kill(pid, signal.SIGKILL)
        _await(lambda: not _alive(pid), 120, f"process {pid} of cluster {layout.name} to end")
    _remove_link(layout)
    _await(lambda: cgroups.remove_groups(layout), 120, f"cgroup {layout.cgroup} to empty")
    (layout.folder / "node.pid").unlink(missing_ok=True)


def is_running(layout: Layout) -> bool:
    """Whether the node's init process lives and every component was healthy when it started."""
    states = component_states(layout)
    names = {component.name for component in components(layout)}
    return _node_pid(layout) is not None and states == dict.fromkeys(names, "healthy")


def component_states(layout: Layout) -> dict[str, str]:
    """What the node's init process says of each component."""
    try:
        states: dict[str, str] = json.loads((layout.volatile / "components.json").read_text())
    except FileNotFoundError:
        return {}
    return states


def _node_pid(layout: Layout) -> int | None:
    try:
        pid, started = map(int, (layout.folder / "node.pid").read_text().split())
    except (FileNotFoundError, ValueError):
        return None
    # A process id may have been given to somebody else since: the start time tells.
    return pid if _alive(pid) and _started(pid) == started else None


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def _connect(layout: Layout, process: subprocess.Popen[bytes]) -> None:
    """Give the node an `eth0` whose other end is here, and routes to its pods and services."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    _await(lambda: process.poll() is not None or _read(children), 10, "the node's init process")
    if process.poll() is not None:
        raise _start_failure(layout, {})
    init = _read(children).split()[0]
    _ip("link", "add", layout.link, "type", "veth", "peer", "name", "eth0", "netns", init)
    _ip("address", "add", f"{layout.host_address}/24", "dev", layout.link)
    _ip("link", "set", layout.link, "up")
    for destination in (layout.pod_range, layout.service_range):
        _ip("route", "replace", destination, "via", layout.node_address)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], env=tool_environment(), check=True)


def _refuse_used_network(layout: Layout) -> None:
    routes = subprocess.run(
        ["ip", "-o", "route"], env=tool_environment(), capture_output=True, text=True, check=True
    ).stdout
    starts = tuple(network.removesuffix("0/24") for network in layout.ranges)
    used = [line for line in routes.splitlines() if line.startswith(starts)]
    if used:
        raise Problem(
            f"The machine already uses the addresses of cluster {layout.name}: {used[0].strip()}",
            remedy="remove that route; or make clean, and the next cluster takes other addresses.",
        )


def _await_components(layout: Layout, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_TIMEOUT
    seen: set[str] = set()
    while not is_running(layout):
        states = component_states(layout)
        for name, state in states.items():
            if state == "healthy" and name not in seen:
                seen.add(name)
                say(f"    {name} is healthy")
        if process.poll() is not None or time.monotonic() > deadline:
            raise _start_failure(layout, states)
        time.sleep(0.1)


def _start_failure(layout: Layout, states: dict[str, str]) -> Problem:
    bad = next((name for name, state in states.items() if state != "healthy"), "init")
    log = layout.logs / f"{bad}.log" if bad != "init" else layout.volatile / "init.log"
    lines = log.read_text(errors="replace").splitlines()[-_LOG_TAIL:] if log.exists() else []
    stop_node(layout)
    return Problem(
        f"{bad} did not become healthy ({states.get(bad, 'never started')}). End of {log}:\n"
        + "\n".join(f"    {line[:300]}" for line in lines),
        remedy="mend what the log says, then run the same command again; it starts afresh.",
    )


def _remove_link(layout: Layout) -> None:
    """Remove our end, and with it the node's.

    Both go with the node's network namespace too, but the kernel takes that apart in its own time:
    of a busy node, minutes.
    """
    link = Path(f"/sys/class/net/{layout.link}")
    if link.exists():
        with contextlib.suppress(FileNotFoundError):  # no `ip` here: then we have that time
            subprocess.run(
                ["ip", "link", "delete", layout.link],
                env=tool_environment(),
                stderr=subprocess.DEVNULL,
                check=False,
            )
    _await(lambda: not link.exists(), _LINK_SECONDS, f"link {layout.link} to go")


def _await(condition: Callable[[], object], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Problem(f"Waited {seconds:.0f} s for {what}.", remedy="run the command again.")
        time.sleep(0.05)
