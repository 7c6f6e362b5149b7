"""Changes of mind, and changes that must not happen: the job goes on, exactly."""

from pathlib import Path

import pytest

from dev.cluster.lifecycle import Cluster
from dev.image.build import SECOND_SPARK_VERSION
from dev.image.load import load_images
from tests.cluster.cli import Cli
from tests.cluster.grounds import on_ground
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, example, job_spec
from tests.cluster.visits import output, truth, visited

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]


@on_ground("volume-hdfsbacked")
def test_edits_and_savepoints_during_an_upgrade_then_a_restore_and_a_fork(
    operator: Cluster, job: Job, tmp_path: Path
) -> None:
    namespace = job.namespace
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

    # A savepoint that nobody knows is waited for, and the job runs on.
    driver = job.drivers()
    job.spec["restoreFrom"] = {"savepoint": "mien", "sink": "Rewind"}
    job.apply()
    job.await_condition("Progressing", "True", "WaitingForSavepoint")
    assert "mien" in job.condition("Progressing")["message"]
    assert job.drivers() == driver
    del job.spec["restoreFrom"]
    job.apply()

    # Back to the right one: what came after it is computed again.
    sparkpoint = Cli(operator, namespace, tmp_path)
    sparkpoint.run("restore", "visits", "--savepoint", "meanwhile", "--sink", "rewind")
    job.spec = job.get()["spec"]
    assert job.status()["restoredFrom"]["id"] == meanwhile["id"], job.status()
    job.feed(1)
    job.await_exact()

    # A second job from the same savepoint, beside the first, into a folder of its own.
    elsewhere = ("--set", "args[1]=--output=/data/fork")
    sparkpoint.run("fork", "visits", "fork", "--savepoint", "meanwhile", *elsewhere)
    # Its state is that of the savepoint, so that each URL that it sees again counts on from there.
    begun = meanwhile["batch"] + 1  # one file per batch until then
    expected = {url: truth(job.fed)[url] for url in visited(begun, job.fed)}
    namespace.await_true(
        "the fork's counts",
        lambda: output(namespace, "/data/fork") == expected,
        seconds=180,
        pods=Job(namespace, job.spec, name="fork").drivers(),
    )
    assert output(namespace) == truth(job.fed)


def test_another_spark_runs_on_and_what_does_not_fit_never_stops_the_job(
    operator: Cluster, namespace: Namespace
) -> None:
    load_images(operator, spark_version=SECOND_SPARK_VERSION)
    spec = job_spec()
    spec["upgrade"] |= {"compatibility": "Enforce", "rollback": {"deadline": "150s"}}
    job = Job(namespace, spec)
    job.spec["image"] = f"sparkpoint.dev/runtime:spark-{SECOND_SPARK_VERSION}"
    job.begin()

    # From the older Spark to the newer one, with a script that differs: tried, then done.
    job.put_script(example() + "\n# for the newer Spark\n")
    job.spec["image"] = spec["image"]
    job.apply()
    job.await_operation("Upgrade", "Succeeded", seconds=400)
    job.await_phase("Running")
    assert job.driver_pods()[-1]["spec"]["containers"][0]["image"] == spec["image"]
    job.feed(1)
    job.await_exact()
    driver = job.drivers()

    job.put_script(example().replace('groupBy("url")', 'groupBy("url", F.length("url"))'))
    job.await_condition("Degraded", "True", "Incompatible")
    assert job.drivers() == driver

    job.put_script(example() + "\n# for the newer Spark\n")
    job.spec["image"] = "sparkpoint.dev/nowhere:1"
    job.apply()
    job.await_condition("Degraded", "True", "NotPrepared", seconds=400)
    assert "sparkpoint.dev/nowhere:1" in job.condition("Degraded")["message"]
    assert job.drivers() == driver

    job.spec["image"] = spec["image"]
    job.apply()
    job.await_phase("Running")
    job.feed(1)
    job.await_exact()
    assert job.drivers() == driver
