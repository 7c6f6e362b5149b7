"""The operator on real pods: everything a person changes, with the exact counts after each step."""

import json

import pytest

from dev.cluster.lifecycle import Cluster
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, job_spec

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def _story(job: Job) -> None:
    job.begin()
    before = job.get()["metadata"]["generation"], job.drivers()
    job.apply()
    assert (job.get()["metadata"]["generation"], job.drivers()) == before

    # Upgrade: another argument, through a savepoint, into a new epoch.
    job.spec["args"].append("--files-per-batch=2")
    job.apply()
    upgrade = job.await_operation("Upgrade", "Succeeded")
    assert job.status()["epoch"] == 2, upgrade
    job.feed(2)
    job.await_exact()

    # Rescale by kubectl: the same epoch, another attempt.
    job.namespace.kubectl("scale", "ssj", job.name, "--replicas=2")
    job.spec["executor"]["instances"] = 2
    job.await_operation("Rescale", "Succeeded")
    assert job.status()["epoch"] == 2
    job.feed(1)
    job.await_exact()

    # Suspend and resume.
    job.spec["suspend"] = True
    job.apply()
    job.await_phase("Suspended")
    assert not job.namespace.pods("sparkpoint.dev/role=executor")
    job.feed(1)
    job.spec["suspend"] = False
    job.apply()
    job.await_exact()
    job.await_phase("Running")


@pytest.mark.soak
def test_a_job_on_a_volume_is_upgraded_rescaled_suspended_and_resumed_exactly(
    operator: Cluster, namespace: Namespace
) -> None:
    _story(Job(namespace, job_spec()))


def test_a_job_on_s3_is_upgraded_rescaled_suspended_and_resumed_exactly(
    operator: Cluster, s3: Namespace
) -> None:
    _story(Job(s3, job_spec(on_s3=True, provider="RocksDB")))


def test_a_revision_that_crashes_is_rolled_back_and_the_job_goes_on_exactly(
    operator: Cluster, namespace: Namespace
) -> None:
    job = Job(namespace, job_spec())
    job.begin()

    job.spec["args"].append("--no-such-option")
    job.apply()
    job.await_operation("Rollback", "Succeeded", seconds=300)
    job.feed(2)
    job.await_exact()
    degraded = job.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "RolledBack"), degraded

    # The same file again changes nothing; a new edit breaks out.
    job.apply()
    job.spec["args"][-1] = "--files-per-batch=3"
    job.apply()
    job.await_operation("Upgrade", "Succeeded")
    job.feed(3)
    job.await_exact()


def test_a_driver_that_is_killed_or_deleted_is_recovered_exactly(
    operator: Cluster, namespace: Namespace
) -> None:
    job = Job(namespace, job_spec())
    job.begin()

    namespace.kubectl("exec", job.drivers()[-1], "--", "sh", "-c", "kill -9 -1", "--")
    job.feed(1)
    job.await_exact()
    job.await_phase("Running")
    # Its end was seen: the next attempt goes on in the same directory.
    assert job.status()["epoch"] == 1
    namespace.kubectl("delete", "pod", job.drivers()[-1], "--grace-period=0", "--force")
    job.feed(1)
    job.await_exact()
    job.await_phase("Running")
    # The object is gone at once and the process a while later: it keeps its directory.
    assert job.status()["epoch"] == 2

    namespace.kubectl("delete", "ssj", job.name, "--timeout=120s", timeout=150)
    gone = "sparkpoint.dev/job=visits"  # the last driver goes with its owner
    namespace.await_true("no pod of the job", lambda: not namespace.pods(gone), seconds=60)
    listed = json.loads(namespace.kubectl("get", "ssj", "-o", "json"))
    assert listed["items"] == []
