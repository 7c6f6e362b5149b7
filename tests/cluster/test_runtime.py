"""A driver under the runtime, in real pods: watched, captured, stopped at a boundary, exact."""

from typing import Any

import pytest

from dev.console import Problem
from dev.jobs import Runtime
from sparkpoint.runtime.model import EndReason, OperationState, StopOperation, Termination
from tests.cluster.namespace import Namespace
from tests.cluster.visits import (
    JOB,
    ask_agent,
    driver_pod,
    feed,
    last_word,
    make_bucket,
    output,
    prepare,
    running_executors,
    start,
    truth,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

_TOKEN = "known-to-the-test"
_QUERY = "url_visits"
_FAMILY = """
import os, pathlib, subprocess, time
def of(pid, field):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[field]
def comm(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone"
listed = [name for name in os.listdir("/proc") if name.isdigit()]
(jvm,) = [pid for pid in listed if comm(pid) == "java"]
parent = of(jvm, 1)
# Its own parent is gone by the time it ends, so that PID 1 has to wait for it.
orphan = subprocess.run(
    ["sh", "-c", "sleep 0.5 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True, check=True
).stdout.strip()
heir = of(orphan, 1)
deadline = time.monotonic() + 30
while os.path.exists(f"/proc/{orphan}") and time.monotonic() < deadline:
    time.sleep(0.05)
print(comm(1), comm(parent), of(parent, 1), heir, os.path.exists(f"/proc/{orphan}"))
"""
"""PID 1; the JVM's parent, and that one's; who inherits an orphan; whether it stays a zombie."""


def _agent(namespace: Namespace, method: str, path: str, body: object = None) -> Any:
    return ask_agent(namespace, method, path, body, token=_TOKEN)


def _await_batch(namespace: Namespace, batch: int) -> None:
    def reached() -> bool:
        try:
            queries = _agent(namespace, "GET", "/v1/progress")["queries"]
        except (Problem, KeyError):
            return False  # no pod address, or no agent yet
        return any((query["batch"] or 0) >= batch for query in queries)

    namespace.await_true(f"batch {batch}", reached, seconds=300, pods=[JOB])


def _await_end(namespace: Namespace) -> Termination:
    def ended() -> bool:
        return driver_pod(namespace)["status"].get("phase") in ("Succeeded", "Failed")

    namespace.await_true("the driver's end", ended, seconds=180, pods=[JOB])
    return last_word(namespace)


def _run_stop_and_go_on(namespace: Namespace, *, epoch_dir: str, repository: str) -> None:
    endpoint = {"endpoint_url": "http://s3:8333"} if repository.startswith("s3:") else {}
    runtime = Runtime(epoch_dir, token=_TOKEN)
    own = epoch_dir.replace("epochs", "ignored")
    feed(namespace, 0, 4)
    start(namespace, own, runtime)
    _await_batch(namespace, 1)
    assert namespace.python(JOB, _FAMILY).split() == ["tini", "python3", "1", "1", "False"]

    asked = {"repository": repository, **endpoint}
    live = _agent(namespace, "PUT", "/v1/savepoints/live?wait=60", asked)
    for _ in range(5):
        if live["state"] != OperationState.RUNNING.value:
            break
        live = _agent(namespace, "GET", "/v1/savepoints/live?wait=60")
    assert live["state"] == OperationState.DONE.value, live
    assert set(live["result"]["batches"]) == {_QUERY}

    feed(namespace, 4, 4)
    namespace.kubectl("exec", JOB, "--", "kill", "-TERM", "1")
    said = _await_end(namespace)
    assert (said.reason, said.clean, said.exit_code) == (EndReason.TERMINATED, True, 0), said
    namespace.await_true(
        "no executor left", lambda: not running_executors(namespace), seconds=60, pods=[]
    )

    namespace.kubectl("delete", "pod", JOB)
    feed(namespace, 8, 2)
    start(namespace, own, runtime)
    namespace.await_true(
        "counts equal to the recomputed truth",
        lambda: output(namespace) == truth(10),
        seconds=300,
        pods=[JOB],
    )
    wanted = {"savepoint_name": "final", "savepoint": {"repository": repository, **endpoint}}
    stopped = StopOperation.model_validate(
        _agent(namespace, "PUT", "/v1/stop/upgrade-1?wait=60", wanted)
    )
    assert stopped.report is None or stopped.report.clean, stopped

    said = _await_end(namespace)
    assert (said.reason, said.clean, said.savepoint) == (EndReason.STOPPED, True, "final"), said
    assert said.queries[_QUERY].batch == 9
    assert output(namespace) == truth(10)


@pytest.mark.soak
def test_a_driver_on_a_volume_stops_at_a_boundary_and_goes_on_exactly(namespace: Namespace) -> None:
    prepare(namespace)

    _run_stop_and_go_on(namespace, epoch_dir="/data/epochs/1", repository="/data/repository")


def test_a_driver_on_s3_stops_at_a_boundary_and_goes_on_exactly(s3: Namespace) -> None:
    prepare(s3)
    make_bucket(s3)

    _run_stop_and_go_on(s3, epoch_dir="s3a://data/epochs/1", repository="s3://data/repository")
