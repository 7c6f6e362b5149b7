"""Changes of mind, and changes that must not happen: the job goes on, exactly."""

import pytest

from dev.cluster.lifecycle import Cluster
from dev.jobs import EXAMPLE
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, job_spec
from tests.cluster.visits import output, truth, visited

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_edits_and_savepoints_during_an_upgrade_then_a_restore_and_a_fork(
    operator: Cluster, namespace: Namespace
) -> None:
    job = Job(namespace, job_spec())
    job.begin()

    # Two edits in a row, a third one in the midst of it, and somebody wants a savepoint.
    job.spec["args"].append("--files-per-batch=2")
    job.apply()
    job.spec["args"][-1] = "--files-per-batch=3"
    job.apply()
    namespace.await_true("the upgrade to begin", lambda: job.status().get("operation"), seconds=60)
    job.ask_for_savepoint("meanwhile")
    job.spec["args"][-1] = "--files-per-batch=4"
    job.apply()
    job.await_phase("Running", seconds=300)
    assert "--files-per-batch=4" in job.driver_arguments()
    meanwhile = job.await_savepoint("meanwhile", "id")
    job.feed(2)
    job.await_exact()

    # Back to that savepoint: what came after it is computed again.
    job.spec["restoreFrom"] = {"savepoint": "meanwhile", "sink": "Rewind"}
    job.apply()
    job.await_operation("Restore", "Succeeded")
    assert job.status()["restoredFrom"]["id"] == meanwhile["id"], job.status()
    job.feed(1)
    job.await_exact()

    # A second job from the same savepoint, beside the first, into a folder of its own.
    fork = Job(namespace, job.spec, name="fork")
    fork.spec["restoreFrom"] = {"savepoint": "meanwhile", "sink": "Fork"}
    fork.spec["args"][1] = "--output=/data/fork"
    fork.apply()
    # Its state is that of the savepoint, so that each URL that it sees again counts on from there.
    begun = meanwhile["batch"] + 1  # one file per batch until then
    expected = {url: truth(job.fed)[url] for url in visited(begun, job.fed)}
    namespace.await_true(
        "the fork's counts",
        lambda: output(namespace, "/data/fork") == expected,
        seconds=180,
        pods=fork.drivers(),
    )
    assert output(namespace) == truth(job.fed)


def test_code_that_does_not_fit_and_images_that_do_not_exist_never_stop_the_job(
    operator: Cluster, namespace: Namespace
) -> None:
    spec = job_spec()
    spec["upgrade"] |= {"compatibility": "Enforce", "rollback": {"deadline": "60s"}}
    job = Job(namespace, spec)
    job.begin()
    driver = job.drivers()
    script = (EXAMPLE / "url_visits.py").read_text()

    job.put_script(script.replace('groupBy("url")', 'groupBy("url", F.length("url"))'))
    job.await_condition("Degraded", "True", "Incompatible")
    assert job.drivers() == driver

    job.put_script()
    job.spec["image"] = "sparkpoint.dev/nowhere:1"
    job.apply()
    job.await_condition("Degraded", "True", "NotPrepared", seconds=300)
    assert "sparkpoint.dev/nowhere:1" in job.condition("Degraded")["message"]
    assert job.drivers() == driver

    job.spec["image"] = spec["image"]
    job.apply()
    job.await_phase("Running")
    job.feed(1)
    job.await_exact()
    assert job.drivers() == driver
