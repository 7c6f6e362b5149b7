"""SparkSavepoints with the whole operator, but for kopf: taken, checked, expired, disposed of."""

from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.controller.cluster import JOBS, SAVEPOINTS, Object, metadata
from sparkpoint.controller.keys import SAVEPOINT
from sparkpoint.controller.podfacts import label
from sparkpoint.runtime.model import ErrorInfo, OperationState, SavepointOperation
from sparkpoint.worker.tasks import parse
from tests.unit.controller.simulation import (
    NAME,
    NAMESPACE,
    QUERY,
    SPEC,
    Simulation,
    is_released,
)

SUMMARY = {
    "id": "ab" * 32,
    "name": "mine",
    "batches": {QUERY: 7},
    "files": 3,
    "bytes": 100,
    "new_bytes": 50,
    "seconds": 1.0,
}


def running(**changes: Any) -> Simulation:
    simulation = Simulation({**SPEC, **changes})
    simulation.settle(simulation.is_running)
    return simulation


def ask(simulation: Simulation, name: str = "mine", **spec: Any) -> None:
    simulation.cluster.add(
        {
            "apiVersion": "sparkpoint.dev/v1alpha1",
            "kind": "SparkSavepoint",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"jobRef": {"name": NAME}, **spec},
        }
    )


def phase(simulation: Simulation, name: str = "mine") -> str | None:
    found = simulation.cluster.find(SAVEPOINTS, NAMESPACE, name)
    return ((found or {}).get("status") or {}).get("phase")


def tasks(simulation: Simulation) -> list[list[str]]:
    """What workers for savepoints were told to do; a worker can read all of it."""
    lines = [
        pod["spec"]["containers"][0]["args"][3:]
        for pod in simulation.pods("worker")
        if label(pod, SAVEPOINT)
    ]
    for line in lines:
        parse(line, {})
    return lines


def test_the_agent_takes_it_while_the_job_runs() -> None:
    simulation = running()

    ask(simulation)
    simulation.settle(lambda: phase(simulation) == "Completed")

    status = simulation.savepoint("mine")["status"]
    assert status["repository"] == "s3://data/savepoints"
    assert status["batch"] >= 0
    assert status["newSize"] == "2.0 KiB"
    assert status["revision"] == simulation.status["revisions"]["current"]
    simulation.settle(lambda: simulation.status["lastSavepoint"]["name"] == "mine")
    assert simulation.condition("SavepointHealthy")["status"] == "True"


def test_a_worker_takes_it_while_the_job_stands() -> None:
    simulation = running()
    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")
    simulation.world.answers = lambda pod: None

    ask(simulation, tags=["keep"])
    simulation.settle(lambda: bool(tasks(simulation)))
    [line] = tasks(simulation)
    simulation.world.answers = lambda pod: {"answer": "Captured", "savepoint": SUMMARY}
    simulation.settle(lambda: phase(simulation) == "Completed")

    assert line[0] == "capture"
    assert line[line.index("--epoch-dir") + 1] == "s3a://data/checkpoints/shop/visits/epoch-1"
    assert line[-2:] == ["--tag", "keep"]
    assert simulation.savepoint("mine")["status"]["id"] == SUMMARY["id"]


def test_it_waits_while_something_is_done_to_the_job() -> None:
    simulation = running()
    simulation.edit(application={"script": {"path": "/opt/job/better.py"}})
    simulation.settle(lambda: "operation" in simulation.status)
    assert simulation.status["operation"]["kind"] == "Upgrade"
    ask(simulation)
    simulation.run_savepoints()
    assert phase(simulation) == "Pending"
    assert "upgrade-2" in simulation.savepoint("mine")["status"]["message"]

    simulation.settle(lambda: phase(simulation) == "Completed")

    assert simulation.status["epoch"] == 2


def test_it_waits_for_a_job_that_is_not_there() -> None:
    simulation = running()

    ask(simulation, jobRef={"name": "nobody"})
    simulation.run_savepoints()

    assert phase(simulation) == "Pending"
    assert "none of that name" in simulation.savepoint("mine")["status"]["message"]


def test_a_failed_capture_is_tried_again_until_its_limit() -> None:
    simulation = running()
    [driver] = simulation.world.drivers.values()
    error = ErrorInfo(type="S3", message="slow down", retry_helps=True)

    def fail(name: str) -> None:
        driver.savepoints[name] = SavepointOperation(
            name=name, state=OperationState.FAILED, error=error
        )

    fail("mine")
    ask(simulation, backoffLimit=2)
    simulation.settle(lambda: phase(simulation) == "Failed")

    status = simulation.savepoint("mine")["status"]
    assert status["failures"] == 2
    assert status["message"] == "slow down"
    assert simulation.events().count("Failed") == 1
    simulation.run_pass()
    healthy = simulation.condition("SavepointHealthy")
    assert (healthy["status"], healthy["message"]) == ("False", "mine: slow down")


def test_what_cannot_succeed_is_not_tried_again() -> None:
    simulation = running()
    [driver] = simulation.world.drivers.values()
    error = ErrorInfo(type="NameTaken", message="the name is taken", retry_helps=False)
    driver.savepoints["mine"] = SavepointOperation(
        name="mine", state=OperationState.FAILED, error=error
    )

    ask(simulation)
    simulation.settle(lambda: phase(simulation) == "Failed")

    assert simulation.savepoint("mine")["status"]["failures"] == 0


def test_a_savepoint_that_a_repository_holds_is_made_known() -> None:
    simulation = running()
    simulation.world.answers = lambda pod: {"answer": "Inspected", "savepoint": SUMMARY}
    existing = {"repository": "s3://old/savepoints", "job": "legacy", "name": "mine"}

    ask(simulation, existing=existing)
    simulation.settle(lambda: phase(simulation) == "Completed")

    status = simulation.savepoint("mine")["status"]
    assert status["repository"] == "s3://old/savepoints"
    assert status["batch"] == 7
    assert simulation.status.get("lastSavepoint") is None


def test_a_savepoint_that_was_made_known_by_its_id_can_be_disposed_of() -> None:
    simulation = running()
    existing = {"repository": "s3://old/savepoints", "job": "legacy", "id": SUMMARY["id"]}
    simulation.world.answers = lambda pod: {"answer": "Inspected", "savepoint": SUMMARY}
    ask(simulation, existing=existing, onDelete="Delete")
    simulation.settle(lambda: phase(simulation) == "Completed")
    simulation.settle(lambda: not tasks(simulation))
    simulation.world.answers = lambda pod: None

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "mine")
    simulation.settle(lambda: bool(tasks(simulation)))

    [line] = tasks(simulation)
    assert line[line.index("--name") + 1] == "mine"


def test_what_the_agent_could_not_tell_is_looked_up() -> None:
    simulation = running()
    for driver in simulation.world.drivers.values():
        driver.hasty = True
    simulation.world.answers = lambda pod: {
        "answer": "Inspected",
        "savepoint": {**SUMMARY, "name": "visits-suspend-2"},
        "details": {"namespace": NAMESPACE, "job": NAME, "spark_version": "4.3.0"},
    }

    simulation.edit(suspend=True)
    simulation.settle(lambda: phase(simulation, "visits-suspend-2") == "Completed")
    assert simulation.savepoint("visits-suspend-2")["status"]["batch"] is not None
    simulation.settle(lambda: "id" in simulation.savepoint("visits-suspend-2")["status"])

    status = simulation.savepoint("visits-suspend-2")["status"]
    assert (status["id"], status["sparkVersion"]) == (SUMMARY["id"], "4.3.0")


@pytest.mark.parametrize(
    ("answer", "good", "verdict"), [("Verified", True, "Content"), ("Corrupt", False, "Damaged")]
)
def test_it_is_checked_if_that_is_wanted(answer: str, good: bool, verdict: str) -> None:
    simulation = running()
    simulation.world.answers = lambda pod: {"answer": answer, "problems": ["an object is gone"]}

    ask(simulation, verify="Content")
    simulation.settle(lambda: "verified" in simulation.savepoint("mine").get("status", {}))

    verified = simulation.savepoint("mine")["status"]["verified"]
    assert (verified["good"], verified["verdict"]) == (good, verdict)
    assert verified["problems"] == ["an object is gone"]


def test_a_check_that_fails_itself_leaves_the_savepoint_complete() -> None:
    simulation = running()
    simulation.world.answers = lambda pod: {"answer": "Failed", "message": "no network"}

    ask(simulation, verify="Content", backoffLimit=1)
    simulation.settle(lambda: phase(simulation) == "Completed")
    simulation.settle(lambda: simulation.savepoint("mine")["status"]["record"].get("checked"))

    status = simulation.savepoint("mine")["status"]
    assert (status["phase"], status["message"]) == ("Completed", "no network")
    assert "verified" not in status


def test_a_worker_that_works_is_left_alone() -> None:
    simulation = running()
    simulation.world.answers = lambda pod: None
    ask(simulation, verify="Content")
    simulation.settle(lambda: bool(tasks(simulation)))
    [before] = [pod for pod in simulation.pods("worker") if label(pod, SAVEPOINT)]

    for _ in range(5):
        simulation.run_savepoints()

    [after] = [pod for pod in simulation.pods("worker") if label(pod, SAVEPOINT)]
    assert metadata(after)["uid"] == metadata(before)["uid"]
    assert "deletionTimestamp" not in metadata(after)


def test_workers_that_have_answered_are_removed() -> None:
    simulation = running()
    simulation.world.answers = lambda pod: {"answer": "Verified"}

    ask(simulation, verify="Content")
    simulation.settle(lambda: "verified" in simulation.savepoint("mine").get("status", {}))
    simulation.settle(lambda: not tasks(simulation))


def test_its_data_stays_when_the_resource_is_deleted() -> None:
    simulation = running()
    ask(simulation)
    simulation.settle(lambda: phase(simulation) == "Completed")

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "mine")
    simulation.run_savepoints()

    assert simulation.cluster.find(SAVEPOINTS, NAMESPACE, "mine") is None
    assert tasks(simulation) == []


def test_its_data_goes_with_the_resource_if_that_says_so() -> None:
    simulation = running()
    ask(simulation, onDelete="Delete")
    simulation.settle(lambda: phase(simulation) == "Completed")
    identity = simulation.savepoint("mine")["status"]["id"]
    simulation.world.answers = lambda pod: None

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "mine")
    simulation.settle(lambda: bool(tasks(simulation)))
    [line] = tasks(simulation)
    simulation.world.answers = lambda pod: {"answer": "Disposed"}
    simulation.settle(lambda: simulation.cluster.find(SAVEPOINTS, NAMESPACE, "mine") is None)

    assert line[0] == "dispose"
    assert line[line.index("--id") + 1] == identity
    assert "--collect" in line


def test_data_that_cannot_be_removed_does_not_hold_the_resource_for_ever() -> None:
    simulation = running()
    ask(simulation, onDelete="Delete")
    simulation.settle(lambda: phase(simulation) == "Completed")
    simulation.world.answers = lambda pod: {"answer": "Failed", "message": "access denied"}

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "mine")
    simulation.settle(
        lambda: simulation.cluster.find(SAVEPOINTS, NAMESPACE, "mine") is None, passes=400
    )

    assert "DataRetained" in simulation.events()


def test_a_savepoint_that_a_rollback_needs_is_not_disposed_of() -> None:
    simulation = running()
    simulation.world.broken = lambda pod: "better.py" in str(pod["spec"]["containers"][0]["args"])
    simulation.edit(application={"script": {"path": "/opt/job/better.py"}})
    simulation.settle(lambda: simulation.status["epoch"] == 2)
    name = "visits-upgrade-2"
    simulation.cluster.edit(
        SAVEPOINTS, NAMESPACE, name, lambda body: body["spec"].update(onDelete="Delete")
    )

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "visits-upgrade-2")
    simulation.run_savepoints()

    assert tasks(simulation) == []
    assert simulation.cluster.find(SAVEPOINTS, NAMESPACE, "visits-upgrade-2") is not None


def test_the_schedule_takes_one_savepoint_per_time() -> None:
    savepoints = {**SPEC["savepoints"], "schedule": "*/10 * * * *"}
    simulation = running(savepoints=savepoints)
    begun = simulation.world.now

    simulation.settle(lambda: simulation.world.now > begun + timedelta(minutes=25), longest=60)

    names = [metadata(body)["name"] for body in simulation.cluster.all(SAVEPOINTS, NAMESPACE)]
    assert names == ["visits-periodic-202611161210", "visits-periodic-202611161220"]


def test_an_operator_that_was_away_takes_the_last_missed_savepoint_alone() -> None:
    savepoints = {**SPEC["savepoints"], "schedule": "*/10 * * * *"}
    simulation = running(savepoints=savepoints)
    simulation.restart()
    simulation.world.now += timedelta(hours=5)

    simulation.settle(lambda: bool(simulation.cluster.all(SAVEPOINTS, NAMESPACE)))

    names = [metadata(body)["name"] for body in simulation.cluster.all(SAVEPOINTS, NAMESPACE)]
    assert names == ["visits-periodic-202611161700"]


def test_a_job_that_stands_takes_no_savepoints_by_the_clock() -> None:
    savepoints = {**SPEC["savepoints"], "schedule": "*/10 * * * *"}
    simulation = running(savepoints=savepoints, suspend=False)
    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")
    simulation.world.now += timedelta(hours=5)

    for _ in range(3):
        simulation.run_pass()

    assert [metadata(body)["name"] for body in simulation.cluster.all(SAVEPOINTS, NAMESPACE)] == [
        "visits-suspend-2"
    ]


def test_savepoints_that_retention_does_not_keep_go_with_their_data() -> None:
    savepoints = {
        **SPEC["savepoints"],
        "schedule": "*/10 * * * *",
        "retention": {"last": 2},
    }
    simulation = running(savepoints=savepoints)
    simulation.world.answers = lambda pod: {"answer": "Disposed"}
    disposed: list[str] = []

    def done() -> bool:
        disposed.extend(line[line.index("--name") + 1] for line in tasks(simulation))
        return simulation.world.now.hour == 13 and simulation.world.now.minute > 1

    simulation.settle(done, passes=800, longest=60)

    names = [metadata(body)["name"] for body in simulation.cluster.all(SAVEPOINTS, NAMESPACE)]
    assert names == ["visits-periodic-202611161250", "visits-periodic-202611161300"]
    assert sorted(set(disposed))[0] == "visits-periodic-202611161210"


def test_savepoints_of_a_deleted_job_go_before_it_if_it_says_so() -> None:
    simulation = running(savepoints={**SPEC["savepoints"], "onDelete": "Delete"})
    ask(simulation)
    simulation.settle(lambda: phase(simulation) == "Completed")
    simulation.world.answers = lambda pod: {"answer": "Disposed"}

    simulation.cluster.remove(JOBS, NAMESPACE, NAME)
    simulation.settle(lambda: is_released(simulation))

    assert simulation.cluster.all(SAVEPOINTS, NAMESPACE) == []


def test_an_operation_that_ends_without_its_savepoint_fails_it() -> None:
    simulation = running()
    name = "visits-upgrade-9"
    body: Object = {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "SparkSavepoint",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"sparkpoint.dev/operation": "upgrade-9"},
        },
        "spec": {"jobRef": {"name": NAME}, "trigger": "Upgrade"},
    }
    simulation.cluster.add(body)

    simulation.run_savepoints()

    assert phase(simulation, name) == "Failed"
    assert "ended without it" in simulation.savepoint(name)["status"]["message"]
