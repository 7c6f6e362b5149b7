"""Other partitions by `kubectl patch`: the state moves, and every count stays exact."""

import json
import re
from typing import Any

import pytest

from tests.cluster.grounds import GROUNDS, on_ground
from tests.cluster.operated import Job, crashing_late, example

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

_TOO_MANY = 99999
"""The API takes it, and no state is ever moved to so many."""


@on_ground("volume-hdfsbacked")
def test_a_patched_number_moves_the_state_though_its_worker_is_killed(job: Job) -> None:
    _begin(job, partitions=3)

    # What cannot be done is found out before the stop.
    driver = job.drivers()
    _patch(job, state={"partitions": _TOO_MANY})
    job.await_condition("Degraded", "True", "NotRepartitioned")
    assert "from 1 to 10000" in job.condition("Degraded")["message"]
    assert (job.drivers(), job.status()["partitions"]) == (driver, 3)

    # The worker that moves the state is taken away, and another one makes the same savepoint.
    _patch(job, state={"partitions": 5})
    _kill_the_mover(job)
    job.feed(4)
    before = _repartitioned(job, 5)
    made = _made_of(job, before)
    assert [each["metadata"]["name"] for each in made] == [f"{before}-p5"]
    assert made[0]["status"]["queries"][0]["partitions"] == 5


@pytest.mark.soak
@pytest.mark.parametrize("job", GROUNDS, ids=str, indirect=True)
def test_partitions_change_with_code_after_a_suspension_and_back(job: Job) -> None:
    _begin(job, partitions=3)
    _patch(job, state={"partitions": 5})
    job.feed(4)
    first = _repartitioned(job, 5)

    # With other code at once, to fewer than there were ever.
    job.put_script(example() + "\n# for fewer partitions\n")
    _patch(job, state={"partitions": 2}, args=[*job.spec["args"], "--files-per-batch=2"])
    job.feed(6)
    _repartitioned(job, 2)

    # A suspended job gets its partitions when it is resumed.
    _patch(job, suspend=True)
    job.await_phase("Suspended")
    _patch(job, state={"partitions": 4})
    job.await_phase("Suspended")
    job.feed(6)
    _patch(job, suspend=False)
    _repartitioned(job, 4)

    # Undone: the savepoint of the first stop, in the number that it has.
    job.feed(1)
    restore = {"savepoint": first, "sink": "Rewind"}
    _patch(job, state={"partitions": 3}, restoreFrom=restore)
    job.await_operation("Restore", "Succeeded")
    job.feed(1)
    job.await_exact()
    assert _partitions(job) == 3


@pytest.mark.soak
@pytest.mark.parametrize("job", GROUNDS, ids=str, indirect=True)
def test_a_revision_that_crashes_in_other_partitions_goes_back_to_the_former(job: Job) -> None:
    job.spec["upgrade"]["rollback"] = {"stableAfterCommits": 5}
    _begin(job, partitions=3)

    _patch(job, suspend=True)
    job.await_phase("Suspended")
    job.put_script(crashing_late(example(), batch=job.fed + 2))
    job.feed(4)
    _patch(job, suspend=False, state={"partitions": 5})
    job.await_operation("Rollback", "Succeeded", seconds=600)

    job.feed(1)
    job.await_exact()
    assert (_partitions(job), job.status()["partitions"]) == (3, 3)
    assert job.condition("Degraded")["reason"] == "RolledBack"


def _begin(job: Job, *, partitions: int) -> None:
    job.spec["state"]["partitions"] = partitions
    job.begin()
    assert _partitions(job) == partitions


def _patch(job: Job, **spec: Any) -> None:
    """As a person does it; what is kept in git follows."""
    patch = json.dumps({"spec": spec})
    job.namespace.kubectl("patch", "ssj", job.name, "--type=merge", "-p", patch)
    job.spec = job.get()["spec"]


def _repartitioned(job: Job, partitions: int) -> str:
    """It has succeeded, into a new epoch, and the counts are right; the savepoint of its stop."""
    job.await_phase("Running", seconds=600)
    last = job.status()["record"]["last"]
    assert (last["kind"], last["result"]) == ("Repartition", "Succeeded"), last
    assert job.status()["partitions"] == partitions
    job.await_exact()
    assert _partitions(job) == partitions
    return str(last["savepoint"])


def _partitions(job: Job) -> int:
    """Folders of state in the directory of the present epoch: each batch writes to all of them."""
    location, epoch = job.spec["checkpoint"]["location"], job.status()["epoch"]
    files = job.files(location, f"*/epoch-{epoch}-*/state/0/*")
    found = {int(part[1]) for file in files if (part := re.search(r"/state/0/(\d+)/", file))}
    assert found == set(range(len(found))), found
    return len(found)


def _kill_the_mover(job: Job) -> None:
    selector = f"sparkpoint.dev/job={job.name},sparkpoint.dev/role=worker"

    def movers() -> list[str]:
        names = [pod["metadata"]["name"] for pod in job.namespace.pods(selector)]
        return [name for name in names if "-modify-" in name]

    job.namespace.await_true("a worker that moves the state", movers, seconds=240)
    job.namespace.kubectl("delete", "pod", *movers(), "--force", "--grace-period=0")


def _made_of(job: Job, savepoint: str) -> list[dict[str, Any]]:
    """The SparkSavepoints whose savepoints are children of this one."""
    listed = json.loads(job.namespace.kubectl("get", "ssp", "-o", "json"))["items"]
    parent = f"{job.namespace.name}/{job.name}/{savepoint}"
    return [each for each in listed if (each.get("status") or {}).get("parent") == parent]
