"""The operator on real pods: everything a person changes, with the exact counts after each step."""

import json

import pytest

from dev.cluster.lifecycle import Cluster
from dev.operator import NAMESPACE as OPERATOR
from tests.cluster.grounds import on_ground
from tests.cluster.operated import Job, crashing_late, example, with_lines

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]


@on_ground("s3-rocksdb")
def test_a_job_is_upgraded_rescaled_suspended_and_resumed_exactly(job: Job) -> None:
    job.begin()
    before = job.get()["metadata"]["generation"], job.drivers()
    job.apply()
    assert (job.get()["metadata"]["generation"], job.drivers()) == before

    # What does not say what is to be done is refused, and the job runs on.
    del job.spec["state"]["partitions"]
    job.apply()
    job.await_condition("Accepted", "False", "ChangeRefused")
    assert job.drivers() == before[1]
    job.spec["state"]["partitions"] = 2

    # Upgrade: arguments, configuration and resources, through a savepoint, into a new epoch.
    job.spec["args"].append("--files-per-batch=2")
    job.spec["sparkConf"]["spark.sql.streaming.minBatchesToRetain"] = "50"
    job.spec["driver"]["memory"] = "720m"
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


@on_ground("volume-rocksdb")
def test_a_revision_that_crashes_is_rolled_back_with_its_output(
    operator: Cluster, job: Job
) -> None:
    """Two queries, one of them with Spark's file sink, which skips batches that it has seen.

    The revision is put in place while the job stands, so that a worker captures what the rollback
    goes back to, and it fails only after its queries have written several batches.
    """
    job.spec["upgrade"]["rollback"] = {"stableAfterCommits": 5}
    job.begin(with_lines(example()))
    job.await_lines()
    job.spec["suspend"] = True
    job.apply()
    job.await_phase("Suspended")

    job.put_script(crashing_late(with_lines(example()), batch=job.fed + 2))
    job.feed(4)
    job.spec["suspend"] = False
    job.apply()
    job.await_operation("Rollback", "Succeeded", seconds=400)
    degraded = job.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "RolledBack"), degraded
    assert "crashes late" in str(job.status()["conditions"])

    # The same file again changes nothing.
    before = job.status()["revisions"], job.drivers()
    job.apply()
    job.feed(1)
    job.await_exact()
    job.await_lines()
    assert (job.status()["revisions"], job.drivers()) == before

    # A new edit breaks out; the operator dies in the midst of it, and its successor ends it.
    job.put_script(with_lines(example()) + "\n# mended\n")
    job.namespace.await_true(
        "the upgrade to begin", lambda: job.status().get("operation"), seconds=120
    )
    operator.kubectl("-n", OPERATOR, "delete", "pod", "--all", "--force", "--grace-period=0")
    job.await_operation("Upgrade", "Succeeded")
    job.feed(1)
    job.await_exact()
    job.await_lines()


@on_ground("s3-hdfsbacked")
def test_executors_and_drivers_that_die_are_recovered_and_what_is_retained_is_adopted(
    job: Job,
) -> None:
    job.spec["savepoints"]["finalOnDelete"] = True
    job.begin()
    namespace = job.namespace

    driver = job.drivers()
    namespace.kubectl("delete", "pod", "-l", "sparkpoint.dev/role=executor", "--grace-period=0")
    job.feed(1)
    job.await_exact()
    assert job.drivers() == driver

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
    final = [each for each in _savepoints(job) if each["spec"]["trigger"] == "Final"]
    assert [each["status"]["phase"] for each in final] == ["Completed"]

    # A new job of the name takes the retained checkpoint on.
    job.spec["checkpoint"]["adopt"] = _newest_epoch(job)
    job.feed(1)
    job.apply()
    job.await_exact()
    job.await_phase("Running")


def _savepoints(job: Job) -> list[dict[str, dict[str, str]]]:
    listed = json.loads(job.namespace.kubectl("get", "ssp", "-o", "json"))
    items: list[dict[str, dict[str, str]]] = listed["items"]
    return items


def _newest_epoch(job: Job) -> str:
    """The directory of the newest epoch that is left at the job's location."""
    location = job.spec["checkpoint"]["location"]
    folders = {path.rpartition("/url_visits/")[0] for path in job.files(location, "*/metadata")}
    newest = max(folders - {""}, key=lambda path: int(path.rsplit("/", 1)[1].split("-")[1]))
    return f"{location}/{newest}"
