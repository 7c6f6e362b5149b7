"""The local Kubernetes itself: what a person does with kubectl works, and nothing stays behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.cache import exclusive
from dev.cluster.layout import Layout, all_layouts, find_layout, take_layout
from dev.cluster.lifecycle import Cluster, lower_cluster, raise_cluster
from dev.cluster.node import is_running
from dev.cluster.programs import tool_environment
from dev.console import Problem
from dev.jobs import service_account_objects, toolbox, volume_claim
from tests.cluster.namespace import Namespace

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

_SPARE = os.environ.get("TEST_CLUSTER", "test") + "-spare"
_CHECKOUT = Path(__file__).parent.parent.parent
_SERVE = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8000, bind='0.0.0.0')"


@pytest.fixture
def box(namespace: Namespace) -> Namespace:
    """A namespace with a running pod called `toolbox` that has a volume."""
    namespace.apply(*service_account_objects(), volume_claim("data"), toolbox("data"))
    namespace.kubectl("wait", "--for=condition=Ready", "pod/toolbox", "--timeout=90s")
    return namespace


@pytest.fixture
def spare(cluster: Cluster) -> Iterator[str]:
    """The name of a cluster that does not exist yet and will not afterwards.

    One test at a time has it.
    """
    with exclusive("tests-of-other-clusters"):
        _remove(_SPARE)
        yield _SPARE
        _remove(_SPARE)


def _remove(name: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "dev.cluster", "delete", "--name", name], cwd=_CHECKOUT, check=True
    )


def test_a_pod_that_runs_as_nobody_special_can_write_to_its_volume(box: Namespace) -> None:
    printed = box.python(
        "toolbox",
        "import os, pathlib; pathlib.Path('/data/x').write_text('kept'); print(os.getuid())",
    )

    assert printed.strip() == "185"
    assert box.kubectl("exec", "toolbox", "--", "cat", "/data/x") == "kept"


def test_names_of_services_resolve_in_pods(box: Namespace) -> None:
    program = "import socket; print(socket.gethostbyname('kubernetes.default.svc.cluster.local'))"

    address = box.python("toolbox", program).strip()

    assert address == box.cluster.kubectl(
        "get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"
    )


def test_a_pod_may_do_only_what_its_role_allows(box: Namespace) -> None:
    account = f"--as=system:serviceaccount:{box.name}:spark"

    assert box.kubectl("auth", "can-i", "create", "pods", account).strip() == "yes"
    with pytest.raises(Problem, match="failed"):
        box.kubectl("auth", "can-i", "get", "secrets", account)
    with pytest.raises(Problem, match="Forbidden"):
        box.kubectl("get", "secrets", account)


def test_logs_and_port_forward_reach_a_pod(box: Namespace) -> None:
    box.kubectl("exec", "toolbox", "--", "sh", "-c", f'python3 -c "{_SERVE}" >/proc/1/fd/1 2>&1 &')
    box.await_true("the server in the pod", lambda: _answers(box), seconds=120)
    forward = subprocess.Popen(
        [
            *("kubectl", *box.cluster.kubectl_arguments, "-n", box.name),
            *("port-forward", "pod/toolbox", ":8000"),
        ],
        env=tool_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert forward.stdout is not None
        line = forward.stdout.readline()
        port = int(re.findall(r"127\.0\.0\.1:(\d+)", line)[0])

        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            assert answer.status == 200
    finally:
        forward.terminate()
        forward.communicate(timeout=10)
    assert "GET / HTTP/1.1" in box.kubectl("logs", "toolbox")


def _answers(box: Namespace) -> bool:
    program = "import socket; print(socket.socket().connect_ex(('127.0.0.1', 8000)))"
    return box.python("toolbox", program).strip() == "0"


def test_the_kubeconfig_verifies_the_server_and_belongs_to_its_owner(cluster: Cluster) -> None:
    if cluster.kubeconfig is None:
        pytest.fail("this test is about the local cluster; run it without CONTEXT")
    config = json.loads(cluster.kubeconfig.read_text())

    assert "insecure-skip-tls-verify" not in cluster.kubeconfig.read_text()
    assert config["clusters"][0]["cluster"]["certificate-authority-data"]
    assert cluster.kubeconfig.stat().st_mode & 0o077 == 0


def test_raising_a_running_cluster_again_changes_nothing(cluster: Cluster) -> None:
    assert cluster.layout is not None
    before = (cluster.layout.folder / "node.pid").read_text()

    raise_cluster(cluster.layout.name)

    assert (cluster.layout.folder / "node.pid").read_text() == before


def test_a_second_cluster_stands_beside_the_first_and_leaves_nothing(
    cluster: Cluster, spare: str
) -> None:
    before = _traces()

    second = raise_cluster(spare)

    assert second.kubectl("get", "nodes", "-o", "name") == "node/node-1\n"
    assert second.kubectl("get", "namespaces") != cluster.kubectl("get", "namespaces")
    assert second.layout is not None
    lower_cluster(second.layout)
    assert _traces() == before
    assert cluster.kubectl("get", "nodes", "-o", "name") == "node/node-1\n"


def test_an_interrupted_start_is_repaired_by_the_same_command(spare: str) -> None:
    layout = take_layout(spare)
    before = _traces()
    command = [sys.executable, "-m", "dev.cluster", "up", "--name", spare]
    first = subprocess.Popen(command, cwd=_CHECKOUT, stderr=subprocess.DEVNULL)
    _await_first_component(layout)
    first.send_signal(signal.SIGKILL)
    first.wait(timeout=10)
    assert not is_running(layout)

    subprocess.run(command, cwd=_CHECKOUT, check=True, timeout=400)

    assert is_running(layout)
    lower_cluster(layout)
    assert _traces() == before


def test_a_node_whose_first_process_dies_leaves_nothing(spare: str) -> None:
    before = _traces()
    raised = raise_cluster(spare)
    assert raised.layout is not None
    pid = int((raised.layout.folder / "node.pid").read_text().split()[0])

    os.kill(pid, signal.SIGKILL)

    lower_cluster(raised.layout)
    assert _traces() == before


def test_a_component_that_dies_is_started_again(cluster: Cluster) -> None:
    assert cluster.layout is not None
    (before,) = _processes("kube-scheduler", cluster.layout)

    os.kill(before, signal.SIGKILL)

    deadline = time.monotonic() + 120
    while _processes("kube-scheduler", cluster.layout) in ([], [before]) or not is_running(
        cluster.layout
    ):
        assert time.monotonic() < deadline, "the scheduler was not well again within 120 s"
        time.sleep(0.2)


def _processes(name: str, layout: Layout) -> list[int]:
    """Process ids of one component of one cluster."""
    found = subprocess.run(
        ["pgrep", "-f", f"^{name}.*{layout.folder}/"], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in found.stdout.split()]


def _await_first_component(layout: Layout) -> None:
    deadline = time.monotonic() + 60
    while not (layout.volatile / "components.json").exists():
        assert time.monotonic() < deadline, "no component started within 60 s"
        time.sleep(0.02)


def _traces() -> dict[str, object]:
    """What a cluster could leave on the machine."""
    rules = subprocess.run(
        ["iptables-save"], env=tool_environment(), capture_output=True, text=True, check=True
    )
    return {
        "interfaces": _interfaces(),
        "mounts": sorted(line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()),
        # Chains too, without their counters.
        "rules": [r.split(" [")[0] for r in rules.stdout.splitlines() if not r.startswith("#")],
        "processes": _processes_of(_SPARE),
        "groups": _groups_of(_SPARE),
        "sysctl": Path("/proc/sys/vm/overcommit_memory").read_text(),
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
    }


def _groups_of(name: str) -> list[str]:
    # Not by a pattern: it stumbles over groups of other clusters' pods that end meanwhile.
    folders = (folder for folder, _, _ in os.walk("/sys/fs/cgroup"))
    return sorted(folder for folder in folders if Path(folder).name == f"sparkpoint-{name}")


def _interfaces() -> list[str]:
    """The network interfaces that no other cluster explains: those come and go as they like."""
    others = _links_of_others()
    found = {p.name for p in Path("/sys/class/net").iterdir()}
    return sorted(found - others - _links_of_others())


def _links_of_others() -> set[str]:
    return {layout.link for layout in all_layouts() if layout.name != _SPARE}


def _processes_of(name: str) -> list[str]:
    layout = find_layout(name)
    if layout is None:
        return []
    found = subprocess.run(
        ["pgrep", "-f", str(layout.folder)], capture_output=True, text=True, check=False
    )
    return found.stdout.split()
