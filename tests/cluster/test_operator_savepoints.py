"""SparkSavepoints under the real operator: live, still, scheduled, checked, moved, disposed of."""

import json
from typing import Any

import pytest

from tests.cluster.grounds import on_ground
from tests.cluster.operated import Job
from tests.cluster.visits import output, truth, visited

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

_COPY = """
import sys
from sparkpoint.cli.main import main
of, to, *options = sys.argv[1:]
sys.argv = ["sparkpoint", "savepoint", "copy", "still", "--from", of, "--to", to, *options]
sys.exit(main())
"""


@on_ground("s3-rocksdb")
def test_savepoints_are_taken_checked_moved_and_go_with_a_job_that_says_so(job: Job) -> None:
    job.spec["checkpoint"]["onDelete"] = "Delete"
    job.spec["savepoints"] |= {"onDelete": "Delete", "schedule": "* * * * *"}
    job.spec["savepoints"]["retention"] = {"last": 1}
    repository = job.spec["savepoints"]["repository"]
    namespace = job.namespace
    job.begin()

    job.ask_for_savepoint("live", verify="Content")
    live = job.await_savepoint("live", "id", "verified")
    assert (live["verified"]["good"], live["verified"]["verdict"]) == (True, "Content")
    assert live["batch"] >= 0
    assert live["revision"] == job.status()["revisions"]["current"]
    job.feed(1)
    job.await_exact()
    namespace.await_true("two on schedule", lambda: _seen(job, 2), seconds=180)

    job.spec["suspend"] = True
    job.apply()
    job.await_phase("Suspended")
    stopped = job.await_savepoint(job.status()["lastSavepoint"]["name"], "id")
    assert stopped["clean"] is True
    job.ask_for_savepoint("still", onDelete="Delete")
    still = job.await_savepoint("still", "id")
    assert (still["batch"], still["id"] == stopped["id"]) == (stopped["batch"], False)
    assert len(_stored(job, "*/visits/still.json")) == 1
    # Of those that the schedule asked for, retention keeps one; people keep theirs.
    namespace.await_true("one on schedule", lambda: len(_periodic(job)) == 1, seconds=120)
    assert len(_stored(job, "*/visits/live.json")) == 1

    # Moved to another repository, and made known again as in another cluster.
    elsewhere = f"{repository}-elsewhere"
    s3 = ("--endpoint-url", "http://s3:8333") if repository.startswith("s3:") else ()
    namespace.python("toolbox", _COPY, repository, elsewhere, *s3)
    namespace.kubectl("delete", "ssp", "still", "--timeout=120s", timeout=150)
    assert _stored(job, "*/visits/still.json") == []
    moved = {"repository": elsewhere, "job": "visits", "name": "still"}
    job.ask_for_savepoint("moved", existing=moved, verify="Content")
    assert job.await_savepoint("moved", "id", "verified")["id"] == still["id"]

    # A job that begins from it counts on from there; the first one goes, with all that is its own.
    fork = Job(namespace, job.spec, name="fork")
    fork.spec["restoreFrom"] = {"savepoint": "moved", "sink": "Fork"}
    fork.spec["args"][1] = "--output=/data/fork"
    fork.spec["suspend"] = False
    fork.apply()
    job.feed(1)
    expected = {url: truth(job.fed)[url] for url in visited(still["batch"] + 1, job.fed)}
    namespace.await_true(
        "the fork's counts",
        lambda: output(namespace, "/data/fork") == expected,
        seconds=240,
        pods=fork.drivers(),
    )
    assert output(namespace) == truth(job.fed - 1)
    mine = f"{namespace.name}/visits/*"
    assert job.files(job.spec["checkpoint"]["location"], mine)
    namespace.kubectl("delete", "ssj", job.name, "--timeout=240s", timeout=270)
    assert job.files(job.spec["checkpoint"]["location"], mine) == []
    assert _stored(job, "*/visits/*.json") == []
    assert "live" not in namespace.kubectl("get", "ssp")


def _stored(job: Job, pattern: str) -> list[str]:
    """Manifests in the repository."""
    return job.files(f"{job.spec['savepoints']['repository']}/savepoints", pattern)


def _periodic(job: Job) -> list[dict[str, Any]]:
    """What the schedule asked for and is still there."""
    listed = json.loads(job.namespace.kubectl("get", "ssp", "-o", "json"))["items"]
    return [each for each in listed if each["spec"].get("trigger") == "Periodic"]


def _seen(job: Job, count: int) -> bool:
    """Whether the schedule has had so many turns; retention may have removed the first."""
    events = json.loads(job.namespace.kubectl("get", "events", "-o", "json"))["items"]
    about = {each["involvedObject"]["name"] for each in events if each["reason"] == "Completed"}
    return len([name for name in about if "-periodic-" in name]) >= count
