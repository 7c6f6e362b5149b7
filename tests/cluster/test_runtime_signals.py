"""A driver pod that is told to end a hundred times: at a boundary each time, counts exact again."""

import json
import random

import pytest

from dev.console import Problem
from dev.jobs import Runtime, SparkJob, job_objects
from sparkpoint.runtime.model import EndReason, Termination
from tests.cluster.namespace import Namespace
from tests.cluster.visits import JOB, feed, output, prepare, truth

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(4 * 3600)]

_ROUNDS = 100
_FILES = 4
"""Of each round; the job takes one per batch."""
_EPOCH_DIR = "/data/epochs/1"
_ENDS = """
import json, pathlib, sys
query = pathlib.Path(sys.argv[1]) / "url_visits"
numbers = lambda log: [int(path.name) for path in (query / log).glob("[0-9]*")]
print(json.dumps([max(numbers("offsets")), max(numbers("commits"))]))
"""


def _start(namespace: Namespace) -> None:
    """Without executors: what is told to end is the driver."""
    arguments = ["--input=/data/input", "--output=/data/output", "--checkpoint=/data/ignored"]
    job = SparkJob(
        JOB,
        arguments,
        claim="data",
        conf={"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"},
        runtime=Runtime(_EPOCH_DIR),
    )
    namespace.apply(*job_objects(job, namespace=namespace.name))


def _kill(namespace: Namespace) -> None:
    """SIGTERM to the process, which tells how it ended; then its pod is taken away."""
    namespace.kubectl("exec", JOB, "--", "kill", "-TERM", "1")
    namespace.kubectl(
        "wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{JOB}", "--timeout=60s"
    )
    pod = json.loads(namespace.kubectl("get", "pod", JOB, "-o", "json"))
    state = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    said = Termination.model_validate_json(state["message"])
    assert (said.reason, said.clean, said.exit_code) == (EndReason.TERMINATED, True, 0), said
    namespace.kubectl("delete", "pod", JOB)


def _delete(namespace: Namespace) -> None:
    """As whoever drains a node: SIGTERM by the kubelet, and 30 seconds to obey."""
    namespace.kubectl("delete", "pod", JOB, "--grace-period=30", "--timeout=60s")


def _is_exact(namespace: Namespace, files: int) -> bool:
    try:
        return output(namespace) == truth(files)
    except (Problem, json.JSONDecodeError):
        return False  # a file of the output was replaced while it was read


def test_a_hundred_times_told_to_end_it_stops_at_a_boundary_and_goes_on_exactly(
    namespace: Namespace,
) -> None:
    prepare(namespace)
    chance = random.Random(20261116)
    files, busy = _FILES, 0
    feed(namespace, 0, files)
    for number in range(_ROUNDS):
        _start(namespace)
        namespace.await_true(
            f"counts equal to the recomputed truth, round {number}",
            lambda: _is_exact(namespace, files),  # noqa: B023 - called in this round
            seconds=180,
            pods=[JOB],
        )
        feed(namespace, files, _FILES)
        namespace.kubectl("exec", "toolbox", "--", "sleep", f"{chance.uniform(0, 2):.2f}")

        (_delete if number % 2 else _kill)(namespace)

        offsets, commits = json.loads(namespace.python("toolbox", _ENDS, _EPOCH_DIR))
        assert offsets == commits, f"round {number}"
        files += _FILES
        # One file is one batch, and the first one is number 0.
        busy += commits + 1 < files
    print(f"{_ROUNDS} ends, {busy} of them with input waiting")
    assert busy > _ROUNDS / 4, "many of them should find the driver at work"
