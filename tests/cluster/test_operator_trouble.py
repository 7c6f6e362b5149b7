"""What goes wrong in clusters, on real pods: exact counts, and never two writers."""

import contextlib
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from dev.cluster.layout import Layout
from dev.cluster.lifecycle import Cluster
from dev.cluster.programs import tool_environment
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, job_spec

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(1200)]

_NEWEST_EPOCH = """
import pathlib
folders = [p.parent for p in pathlib.Path("/data/checkpoints").rglob("url_visits")]
print(max(folders, key=lambda folder: folder.stat().st_mtime))
"""


def test_a_revision_that_crashes_at_once_is_rolled_back(
    operator: Cluster, namespace: Namespace
) -> None:
    job = Job(namespace, job_spec())
    job.begin()

    job.spec["args"].append("--no-such-option")
    job.apply()
    job.await_operation("Rollback", "Succeeded", seconds=300)

    job.feed(2)
    job.await_exact()
    job.spec["args"][-1] = "--files-per-batch=3"
    job.apply()
    job.await_operation("Upgrade", "Succeeded")
    job.feed(3)
    job.await_exact()


def test_a_driver_that_runs_out_of_memory_is_rolled_back_and_told(
    operator: Cluster, namespace: Namespace
) -> None:
    job = Job(namespace, job_spec())
    job.begin()

    # A heap that is there from the beginning, and no room for anything beside it.
    job.spec["driver"] |= {"memory": "512m", "memoryOverhead": "16m"}
    job.spec["sparkConf"]["spark.driver.extraJavaOptions"] += " -Xms512m -XX:+AlwaysPreTouch"
    job.apply()
    job.await_operation("Rollback", "Succeeded", seconds=400)

    job.feed(1)
    job.await_exact()
    assert "OOMKilled" in str(job.status()), job.status()


def test_a_job_that_is_deleted_during_an_upgrade_goes_and_its_state_is_adopted(
    operator: Cluster, namespace: Namespace
) -> None:
    job = Job(namespace, job_spec())
    job.begin()
    job.spec["args"].append("--files-per-batch=2")
    job.apply()
    namespace.await_true("the upgrade to begin", lambda: job.status().get("operation"), seconds=60)

    namespace.kubectl("delete", "ssj", job.name, "--timeout=240s", timeout=270)

    # The same name again: it takes its former state on, and nothing is counted twice.
    job.spec["checkpoint"]["adopt"] = namespace.python("toolbox", _NEWEST_EPOCH).strip()
    job.feed(1)
    job.apply()
    job.await_exact()
    job.await_phase("Running")


def test_a_driver_whose_network_is_cut_is_replaced_and_never_doubled(
    operator: Cluster, namespace: Namespace
) -> None:
    job = Job(namespace, job_spec())
    job.begin()
    assert operator.layout is not None

    with _one_writer_at_a_time(job):
        link = _link(operator.layout, job.driver_pods()[-1]["status"]["podIP"])
        _in_node(operator.layout, "ip", "link", "set", link, "down")
        job.feed(1)
        job.await_condition("Ready", "Unknown", "AgentSilent")
        job.await_exact(seconds=600)
        job.await_phase("Running")


def test_a_driver_on_a_node_that_does_not_answer_keeps_its_directory(
    operator: Cluster, namespace: Namespace
) -> None:
    job = Job(namespace, job_spec())
    job.begin()
    layout = operator.layout
    assert layout is not None

    with _one_writer_at_a_time(job):
        _kubelet(layout, "STOP")
        try:
            job.spec["args"].append("--files-per-batch=2")
            job.apply()
            namespace.await_true("the node to be lost", lambda: _is_lost(operator), seconds=180)
            # Past every patience of the operator: its processes live and may write.
            time.sleep(90)
        finally:
            _kubelet(layout, "CONT")
        job.await_phase("Running", seconds=400)
        job.feed(1)
        job.await_exact()


@contextlib.contextmanager
def _one_writer_at_a_time(job: Job) -> Iterator[None]:
    """Watch the job's pods: two that may write into one directory are an error."""
    ended, seen = threading.Event(), list[list[str]]()

    def watch() -> None:
        while not ended.wait(0.5):
            alive = [
                pod["metadata"]["name"]
                for pod in job.driver_pods()
                if pod["status"].get("phase") not in ("Succeeded", "Failed")
            ]
            epochs = [name.rsplit("-a", 1)[0] for name in alive]
            if len(set(epochs)) < len(epochs):
                seen.append(alive)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    assert seen == []


def _is_lost(cluster: Cluster) -> bool:
    ready = '{.items[0].status.conditions[?(@.type=="Ready")].status}'
    return cluster.kubectl("get", "nodes", "-o", f"jsonpath={ready}") == "Unknown"


def _in_node(layout: Layout, *command: str) -> str:
    """Run a program in the namespaces of the node."""
    pid = (layout.folder / "node.pid").read_text().split()[0]
    done = subprocess.run(
        ["nsenter", "-t", pid, "-m", "-n", "--", *command],
        env=tool_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def _link(layout: Layout, address: str) -> str:
    words = _in_node(layout, "ip", "route", "get", address).split()
    return words[words.index("dev") + 1]


def _kubelet(layout: Layout, signal: str) -> None:
    subprocess.run(
        ["pkill", f"-{signal}", "-f", f"^kubelet.*{layout.folder}/"], check=True, timeout=10
    )
