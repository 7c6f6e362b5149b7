"""A driver pod that is told to end a hundred times: at a boundary each time, counts exact again.

Half of them with each kind of state store: a checkpoint stays with the one that began it.
"""

import json
import random

import pytest

from dev.console import Problem
from dev.jobs import Runtime, SparkJob, job_objects
from sparkpoint.runtime.model import EndReason
from tests.cluster.namespace import Namespace
from tests.cluster.visits import JOB, ask_agent, feed, last_word, output, prepare, truth

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(4 * 3600)]

_ROUNDS = 50
"""Of each kind of state store."""
_TOKEN = "known-to-the-test"
_STORE = "spark.sql.streaming.stateStore"
_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
_PROVIDERS = {
    "hdfs": {f"{_STORE}.providerClass": f"{_PACKAGE}.HDFSBackedStateStoreProvider"},
    "rocksdb-changelog": {
        f"{_STORE}.providerClass": f"{_PACKAGE}.RocksDBStateStoreProvider",
        f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    },
}
_FILES = 4
"""Of each round; the job takes one per batch."""
_EPOCH_DIR = "/data/epochs/1"
_ENDS = """
import json, pathlib, sys
query = pathlib.Path(sys.argv[1]) / "url_visits"
numbers = lambda log: [int(path.name) for path in (query / log).glob("[0-9]*")]
print(json.dumps([max(numbers("offsets")), max(numbers("commits"))]))
"""


def _start(namespace: Namespace, provider: str) -> None:
    """Without executors: what is told to end is the driver."""
    arguments = ["--input=/data/input", "--output=/data/output", "--checkpoint=/data/ignored"]
    job = SparkJob(
        JOB,
        arguments,
        claim="data",
        conf={
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            **_PROVIDERS[provider],
        },
        runtime=Runtime(_EPOCH_DIR, token=_TOKEN),
    )
    namespace.apply(*job_objects(job, namespace=namespace.name))


def _kill(namespace: Namespace, number: int) -> None:
    """SIGTERM to the process, which tells how it ended; then its pod is taken away."""
    namespace.kubectl("exec", JOB, "--", "kill", "-TERM", "1")
    _await_end(namespace, EndReason.TERMINATED)


def _delete(namespace: Namespace, number: int) -> None:
    """As whoever drains a node: SIGTERM by the kubelet, and 30 seconds to obey."""
    namespace.kubectl("delete", "pod", JOB, "--grace-period=30", "--timeout=60s")


def _stop(namespace: Namespace, number: int) -> None:
    """As the operator: through the agent, whose answer is not waited for."""
    ask_agent(namespace, "PUT", f"/v1/stop/round-{number}", {}, token=_TOKEN)
    _await_end(namespace, EndReason.STOPPED)


_ENDINGS = (_kill, _delete, _stop)


def _await_end(namespace: Namespace, reason: EndReason) -> None:
    namespace.kubectl(
        "wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{JOB}", "--timeout=60s"
    )
    said = last_word(namespace)
    assert (said.reason, said.clean, said.exit_code) == (reason, True, 0), said
    namespace.kubectl("delete", "pod", JOB)


def _is_exact(namespace: Namespace, files: int) -> bool:
    try:
        return output(namespace) == truth(files)
    except (Problem, json.JSONDecodeError):
        return False  # a file of the output was replaced while it was read


@pytest.mark.parametrize("provider", _PROVIDERS)
def test_fifty_times_told_to_end_it_stops_at_a_boundary_and_goes_on_exactly(
    namespace: Namespace, provider: str
) -> None:
    prepare(namespace)
    chance = random.Random(f"20261116:{provider}")
    files, busy = _FILES, 0
    feed(namespace, 0, files)
    for number in range(_ROUNDS):
        _start(namespace, provider)
        namespace.await_true(
            f"counts equal to the recomputed truth, round {number}",
            lambda: _is_exact(namespace, files),  # noqa: B023 - called in this round
            seconds=180,
            pods=[JOB],
        )
        feed(namespace, files, _FILES)
        namespace.kubectl("exec", "toolbox", "--", "sleep", f"{chance.uniform(0, 2):.2f}")

        _ENDINGS[number % len(_ENDINGS)](namespace, number)

        offsets, commits = json.loads(namespace.python("toolbox", _ENDS, _EPOCH_DIR))
        assert offsets == commits, f"round {number}"
        files += _FILES
        # One file is one batch, and the first one is number 0.
        busy += commits + 1 < files
    print(f"{provider}: {_ROUNDS} ends, {busy} of them with input waiting")
    assert busy > _ROUNDS / 4, "many of them should find the driver at work"
