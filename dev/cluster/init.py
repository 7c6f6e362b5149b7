"""PID 1 of a node: prepares its namespaces, starts the components in order, keeps them running.

Runs inside fresh mount, network, PID, IPC and UTS namespaces made by `node.py`. When it ends, the
kernel ends everything that it started. Uses the standard library alone.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from dev.cluster import cgroups, components
from dev.cluster.layout import NODE, PRIVATE_FOLDERS, PROVISIONED, Layout, find_layout

_START_TIMEOUT = 90.0
_RESTART_DELAY = 1.0

# The kubelet insists on these kernel settings and would change them for the whole machine.
# It is shown files that already say what it wants.
_KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def main() -> None:
    """Run the node until it is told to end."""
    layout = find_layout(sys.argv[1])
    if layout is None:
        sys.exit(f"no cluster {sys.argv[1]}")
    tools = Path(sys.argv[2])
    # Everything in this PID namespace dies with us; there is nothing to tidy up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    cgroups.join_groups(layout)
    _prepare_mounts(layout)
    _prepare_network(layout)
    components.write_configuration(layout, tools=tools)
    Supervisor(layout).run()


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _prepare_mounts(layout: Layout) -> None:
    # Private to this namespace, but shared between its own children, as kubelets expect.
    _run("mount", "--make-rshared", "/")
    _run("mount", "-t", "tmpfs", "tmpfs", "/run")
    for target in PRIVATE_FOLDERS:
        source = layout.volatile / "private" / target.name
        source.mkdir(parents=True, exist_ok=True)
        # An empty folder may stay on the machine: removing it would tear the mount out of every
        # other node that has one there.
        target.mkdir(mode=0o755, parents=True, exist_ok=True)
        _run("mount", "--bind", str(source), str(target))
    settings = layout.volatile / "sysctl"
    for name, value in _KERNEL_SETTINGS.items():
        file = settings / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value + "\n")
        if (target := Path("/proc/sys") / name).exists():
            _run("mount", "--bind", str(file), str(target))


def _prepare_network(layout: Layout) -> None:
    _run("hostname", NODE)
    _run("ip", "link", "set", "lo", "up")
    deadline = time.monotonic() + 10
    while "eth0" not in _interfaces():
        if time.monotonic() > deadline:
            sys.exit("the host did not hand us eth0 within 10 s")
        time.sleep(0.02)
    _run("ip", "address", "add", f"{layout.node_address}/24", "dev", "eth0")
    _run("ip", "link", "set", "eth0", "up")
    # Nobody forwards it there: the route only gives programs a default address.
    _run("ip", "route", "add", "default", "via", layout.host_address)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _interfaces() -> str:
    # /sys shows the interfaces of the namespace that mounted it; `ip` asks the kernel.
    return subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout


class Supervisor:
    """Starts each component after the one before it is healthy, and again whenever it ends."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.components = components.components(layout)
        # By process id. No Popen objects: an unreferenced one is reaped by the next Popen, and
        # the end of a component would go unseen.
        self.running: dict[int, components.Component] = {}
        self.states: dict[str, str] = {}

    def run(self) -> None:
        self.layout.logs.mkdir(exist_ok=True)
        for component in self.components:
            self._start(component)
            self._await_health(component)
            if component.name == "kube-apiserver":
                _apply_base(self.layout)
        while True:
            self._reap()
            self._notice_recovery()
            _open_new_volumes()
            time.sleep(0.1)

    def _start(self, component: components.Component) -> None:
        self._report(component, "starting")
        log = str(self.layout.logs / f"{component.name}.log")
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawnp(
            component.command[0],
            component.command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, append, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
        )
        self.running[pid] = component

    def _await_health(self, component: components.Component) -> None:
        deadline = time.monotonic() + _START_TIMEOUT
        while not component.healthy():
            if time.monotonic() > deadline:
                self._report(component, "failed")
                sys.exit(1)
            self._reap()
            time.sleep(0.1)
        self._report(component, "healthy")

    def _notice_recovery(self) -> None:
        for component in self.components:
            if self.states[component.name] == "starting" and component.healthy():
                self._report(component, "healthy")

    def _reap(self) -> None:
        """Collect ended children, ours and adopted ones; restart ours."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if component := self.running.pop(pid, None):
                self._report(component, f"exited with {os.waitstatus_to_exitcode(status)}")
                time.sleep(_RESTART_DELAY)
                self._start(component)

    def _report(self, component: components.Component, state: str) -> None:
        self.states[component.name] = state
        file = self.layout.volatile / "components.json"
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(self.states))
        draft.rename(file)


def _apply_base(layout: Layout) -> None:
    # Right after the API server: CoreDNS is ready only once it may read services.
    manifest = Path(__file__).parent / "manifests" / "base.yaml"
    _run("kubectl", f"--kubeconfig={layout.kubeconfig}", "apply", "-f", str(manifest))


def _open_new_volumes() -> None:
    """Let pods write to their volumes, whatever user they run as.

    Kubernetes' host-path provisioner makes folders of root with mode 0750, and fsGroup does not
    apply to host paths.
    """
    for volume in PROVISIONED.iterdir():
        # One that was deleted since it was listed is no concern of ours.
        with contextlib.suppress(FileNotFoundError):
            if volume.stat().st_mode & 0o777 != 0o777:
                volume.chmod(0o777)


if __name__ == "__main__":
    main()
