"""SparkSavepoints under the real operator: live, still, checked, disposed of; and its own death."""

import json

import pytest

from dev.cluster.lifecycle import Cluster
from dev.operator import NAMESPACE as OPERATOR
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, job_spec

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

_FILES = """
import json, pathlib, sys
root = pathlib.Path(sys.argv[1])
print(json.dumps(sorted(str(path.relative_to(root)) for path in root.rglob(sys.argv[2]))))
"""


def files(job: Job, root: str, pattern: str) -> list[str]:
    """What the volume holds."""
    found: list[str] = json.loads(job.namespace.python("toolbox", _FILES, root, pattern))
    return found


def test_savepoints_are_taken_live_and_still_and_checked(
    operator: Cluster, namespace: Namespace
) -> None:
    job = Job(namespace, job_spec())
    job.begin()

    job.ask_for_savepoint("live", verify="Content")
    live = job.await_savepoint("live", "id", "verified")
    assert (live["verified"]["good"], live["verified"]["verdict"]) == (True, "Content")
    assert live["batch"] >= 0
    assert live["revision"] == job.status()["revisions"]["current"]
    job.feed(1)
    job.await_exact()

    job.spec["suspend"] = True
    job.apply()
    job.await_phase("Suspended")
    stopped = job.await_savepoint(job.status()["lastSavepoint"]["name"], "id")
    assert stopped["clean"] is True
    job.ask_for_savepoint("still", onDelete="Delete")
    still = job.await_savepoint("still", "id")
    assert (still["batch"], still["id"] == stopped["id"]) == (stopped["batch"], False)
    assert "visits/still.json" in str(files(job, "/data/savepoints/savepoints", "*.json"))

    namespace.kubectl("delete", "ssp", "still", "--timeout=120s", timeout=150)
    assert "visits/still.json" not in str(files(job, "/data/savepoints/savepoints", "*.json"))
    job.spec["suspend"] = False
    job.apply()
    job.feed(1)
    job.await_exact()


def test_an_operator_that_dies_in_an_upgrade_is_followed_by_one_that_ends_it(
    operator: Cluster, namespace: Namespace
) -> None:
    job = Job(namespace, job_spec())
    job.begin()

    job.spec["args"].append("--files-per-batch=2")
    job.apply()
    namespace.await_true("the upgrade to begin", lambda: job.status().get("operation"), seconds=60)
    operator.kubectl("-n", OPERATOR, "delete", "pod", "--all", "--force", "--grace-period=0")
    job.await_operation("Upgrade", "Succeeded")
    job.feed(1)
    job.await_exact()

    assert (job.status()["epoch"], job.status()["attempt"]) == (2, 2)


def test_everything_goes_with_a_job_that_says_so(operator: Cluster, namespace: Namespace) -> None:
    spec = job_spec()
    spec["checkpoint"]["onDelete"] = "Delete"
    spec["savepoints"]["onDelete"] = "Delete"
    job = Job(namespace, spec)
    job.begin()
    job.ask_for_savepoint("mine")
    job.await_savepoint("mine", "id")
    assert files(job, "/data/checkpoints", "epoch-1-*")

    namespace.kubectl("delete", "ssj", job.name, "--timeout=240s", timeout=270)

    assert files(job, "/data/checkpoints", "epoch-*") == []
    assert files(job, "/data/savepoints/savepoints", "*.json") == []
    assert "mine" not in namespace.kubectl("get", "ssp")
