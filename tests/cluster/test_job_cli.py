"""`sparkpoint job` on a real job: what a person types, from the first look to the last resume."""

from pathlib import Path

import pytest

from dev.cluster.lifecycle import Cluster
from tests.cluster.cli import Cli
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, job_spec

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def test_a_job_is_operated_from_the_command_line(
    operator: Cluster, namespace: Namespace, tmp_path: Path
) -> None:
    job = Job(namespace, job_spec())
    cli = Cli(operator, namespace, tmp_path)
    sparkpoint, document = cli.run, cli.document

    job.begin()
    sparkpoint("wait", "visits", "--for", "ready", "--timeout", "1m")
    [listed] = document("list")["jobs"]
    assert (listed["name"], listed["phase"], listed["degraded"]) == ("visits", "Running", None)
    assert "Last: Start start-1 Succeeded" in sparkpoint("status", "visits")
    assert sparkpoint("logs", "visits", "--tail", "5")
    assert sparkpoint("logs", "visits", "--executor", "1", "--tail", "5")

    # A savepoint; the same command again finds the same one.
    ask = ("savepoint", "visits", "--name", "mine", "--tag", "keep")
    taken = document(*ask)["savepoint"]
    assert (taken["phase"], taken["tags"]) == ("Completed", ["keep"])
    assert document(*ask)["savepoint"]["id"] == taken["id"]

    # What the API server refuses changes nothing.
    before = job.get()["metadata"]["generation"]
    sparkpoint("fork", "visits", "trial", "--savepoint", "mine", code=3)
    elsewhere = ("--set", "args[1]=--output=/data/trial")
    sparkpoint("fork", "visits", "trial", "--savepoint", "mine", *elsewhere, "--dry-run")
    sparkpoint("restore", "visits", "--savepoint", "mien", "--sink", "rewind", code=4)
    assert document("rollback", "visits", "--dry-run", code=4)["error"]["kind"] == "NotFound"
    assert job.get()["metadata"]["generation"] == before
    assert "trial" not in namespace.kubectl("get", "ssj")

    # Stand, and go on, with nothing lost.
    assert document("suspend", "visits")["phase"] == "Suspended"
    assert not namespace.pods("sparkpoint.dev/role=executor")
    job.feed(1)
    sparkpoint("wait", "visits", "--for", "running", "--timeout", "1s", code=6)
    resumed = document("resume", "visits")
    assert (resumed["result"], resumed["lastOperation"]["kind"]) == ("Succeeded", "Resume")
    job.await_exact()
    assert job.get()["spec"]["args"] == job.spec["args"]
