"""SparkSavepoints with the whole operator, but for kopf: taken, checked, expired, disposed of."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.api.crd import SAVEPOINTS as RESOURCE
from sparkpoint.controller.cluster import (
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    SAVEPOINTS,
    Object,
    metadata,
)
from sparkpoint.controller.errors import ClusterError, ForbiddenError, UnprocessableError
from sparkpoint.controller.keys import FINALIZER, OPERATION, SAVEPOINT
from sparkpoint.controller.podfacts import label
from sparkpoint.runtime.model import (
    ErrorInfo,
    OperationState,
    SavepointOperation,
    SavepointSummary,
)
from sparkpoint.worker.tasks import parse
from tests.unit.controller.simulation import (
    KEY,
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


DONE = "Completed"


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


def of_operation(simulation: Simulation, operation: str) -> str:
    """The savepoint that an operation takes; empty before it is announced."""
    found = simulation.cluster.all(SAVEPOINTS, NAMESPACE, {OPERATION: operation})
    return str(metadata(found[0])["name"]) if found else ""


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
    directory = line[line.index("--epoch-dir") + 1]
    assert directory.startswith("s3a://data/checkpoints/shop/visits/epoch-1")
    assert line[-2:] == ["--tag", "keep"]
    assert simulation.savepoint("mine")["status"]["id"] == SUMMARY["id"]


def shown(body: Object) -> dict[str, Any]:
    """What `kubectl get ssp` shows, by the columns of the CRD."""
    columns: dict[str, Any] = {}
    for column in RESOURCE.columns:
        value: Any = body
        for step in column.path.strip(".").split("."):
            value = value.get(step) if isinstance(value, dict) else None
        columns[column.name] = value
    return columns


def summary_of(name: str) -> dict[str, Any]:
    return {**SUMMARY, "name": name, "bytes": 1_288_490_189, "new_bytes": 3 * 1024**2} | {
        "parent": f"{NAMESPACE}/{NAME}/before"
    }


def test_the_columns_are_filled_by_the_agent() -> None:
    simulation = running()
    [driver] = simulation.world.drivers.values()
    result = SavepointSummary.model_validate(summary_of("mine"))
    driver.savepoints["mine"] = SavepointOperation(
        name="mine", state=OperationState.DONE, result=result
    )
    simulation.world.answers = lambda pod: {"answer": "Verified"}

    ask(simulation, verify="Content")
    simulation.settle(lambda: "verified" in simulation.savepoint("mine").get("status", {}))

    columns = shown(simulation.savepoint("mine"))
    assert (columns["Size"], columns["New"]) == ("1.2 GiB", "3.0 MiB")
    assert (columns["Verified"], columns["Parent"]) == ("Content", f"{NAMESPACE}/{NAME}/before")
    assert (columns["Job"], columns["Phase"], columns["Batch"]) == (NAME, "Completed", 7)


@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        ({}, "Captured"),
        ({"existing": {"repository": "s3://old/s", "job": "legacy", "name": "mine"}}, "Inspected"),
    ],
)
def test_the_columns_are_filled_by_workers(spec: dict[str, Any], answer: str) -> None:
    simulation = running()
    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")
    simulation.world.answers = lambda pod: {"answer": answer, "savepoint": summary_of("mine")}

    ask(simulation, **spec)
    simulation.settle(lambda: phase(simulation) == "Completed")

    columns = shown(simulation.savepoint("mine"))
    assert (columns["Size"], columns["New"]) == ("1.2 GiB", "3.0 MiB")
    assert (columns["Batch"], columns["Parent"]) == (7, f"{NAMESPACE}/{NAME}/before")


def refuse_pods(error: ClusterError) -> Callable[[str, Object | str], ClusterError | None]:
    return lambda verb, what: (
        error if verb == "create" and isinstance(what, dict) and what["kind"] == "Pod" else None
    )


def test_a_quota_that_keeps_a_worker_from_being_made_is_told_and_tried_again() -> None:
    simulation = running()
    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")
    simulation.cluster.refuse = refuse_pods(ForbiddenError("pods: exceeded quota: small"))

    ask(simulation)
    simulation.settle(lambda: "quota" in simulation.savepoint("mine")["status"]["message"])
    message = simulation.savepoint("mine")["status"]["message"]
    assert message.startswith("pods: exceeded quota: small. Raise the quota")
    assert phase(simulation) == "Pending"
    simulation.cluster.refuse = lambda verb, what: None
    simulation.world.answers = lambda pod: {"answer": "Captured", "savepoint": SUMMARY}
    simulation.settle(lambda: phase(simulation) == "Completed")


def test_a_quota_that_stays_fails_the_savepoint_after_its_tries() -> None:
    simulation = running()
    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")
    simulation.cluster.refuse = refuse_pods(ForbiddenError("pods: exceeded quota: small"))

    ask(simulation, backoffLimit=2)
    simulation.settle(lambda: phase(simulation) == "Failed")

    assert "Raise the quota" in simulation.savepoint("mine")["status"]["message"]
    assert simulation.events().count("Failed") == 1


def test_a_worker_that_can_never_be_made_fails_the_savepoint_at_once() -> None:
    simulation = running()
    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")
    simulation.cluster.refuse = refuse_pods(UnprocessableError("spec.tolerations[0]: Invalid"))

    ask(simulation)
    simulation.settle(lambda: phase(simulation) == "Failed", passes=5)

    assert "pod template" in simulation.savepoint("mine")["status"]["message"]


def test_data_whose_worker_is_refused_does_not_hold_the_resource_for_ever() -> None:
    simulation = running()
    ask(simulation, onDelete="Delete")
    simulation.settle(lambda: phase(simulation) == "Completed")
    simulation.cluster.refuse = refuse_pods(ForbiddenError("pods: exceeded quota: small"))

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "mine")
    simulation.settle(
        lambda: simulation.cluster.find(SAVEPOINTS, NAMESPACE, "mine") is None, longest=60
    )

    [told] = [e for e in simulation.cluster.all(EVENTS, NAMESPACE) if e["reason"] == "DataRetained"]
    assert "exceeded quota" in told["message"]


def test_workers_that_never_start_are_told_and_do_not_pile_up() -> None:
    simulation = running()
    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")
    simulation.world.answers = lambda pod: None
    waiting = {"waiting": {"reason": "ErrImagePull", "message": 'image "no:1" not found'}}
    most = 0

    def hold_up() -> bool:
        nonlocal most
        found = [pod for pod in simulation.pods("worker") if label(pod, SAVEPOINT)]
        alive = [pod for pod in found if "deletionTimestamp" not in metadata(pod)]
        most = max(most, len(alive))
        for pod in alive:
            statuses = [{"name": "worker", "state": waiting}]
            simulation.world.set_status(pod, {"phase": "Pending", "containerStatuses": statuses})
        return phase(simulation) == "Failed"

    ask(simulation, backoffLimit=1)
    simulation.settle(hold_up, passes=400, longest=60)

    message = simulation.savepoint("mine")["status"]["message"]
    assert 'image "no:1" not found' in message
    assert "spec.image" in message
    assert most == 1
    assert not [pod for pod in simulation.pods("worker") if label(pod, SAVEPOINT)]


def test_a_savepoint_that_is_deleted_while_it_is_taken_leaves_no_worker() -> None:
    simulation = running()
    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")
    simulation.world.answers = lambda pod: None
    ask(simulation)
    simulation.settle(lambda: bool(tasks(simulation)))

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "mine")
    simulation.settle(lambda: simulation.cluster.find(SAVEPOINTS, NAMESPACE, "mine") is None)
    simulation.world.step()

    assert tasks(simulation) == []


def test_a_check_with_spark_leaves_no_config_map() -> None:
    simulation = running()
    simulation.world.answers = lambda pod: None
    ask(simulation, verify="Deep")
    simulation.settle(lambda: bool(tasks(simulation)))
    assert simulation.cluster.find(CONFIG_MAPS, NAMESPACE, "mine-verify-0") is not None

    simulation.world.answers = lambda pod: {"answer": "Verified"}
    simulation.settle(lambda: not tasks(simulation))

    assert simulation.cluster.find(CONFIG_MAPS, NAMESPACE, "mine-verify-0") is None


@pytest.mark.parametrize("ending", ["Completed", "Failed"])
def test_a_savepoint_at_rest_costs_one_call(ending: str) -> None:
    simulation = running()
    [driver] = simulation.world.drivers.values()
    if ending == "Failed":
        error = ErrorInfo(type="NameTaken", message="the name is taken", retry_helps=False)
        driver.savepoints["mine"] = SavepointOperation(
            name="mine", state=OperationState.FAILED, error=error
        )
    ask(simulation)
    simulation.settle(lambda: phase(simulation) == ending)
    simulation.run_pass()
    simulation.run_savepoints()
    simulation.cluster.calls.clear()

    simulation.run_savepoints()

    assert simulation.cluster.calls == [("get", "SparkSavepoint", "mine")]


def test_a_spec_that_cannot_be_used_is_told_once() -> None:
    simulation = running()

    ask(simulation, retention={"ttl": "1h", "keepForever": True})
    for _ in range(3):
        simulation.run_savepoints()

    assert simulation.events().count("NotAccepted") == 1
    [accepted] = [
        each
        for each in simulation.savepoint("mine")["status"]["conditions"]
        if each["type"] == "Accepted"
    ]
    assert (accepted["status"], accepted["reason"]) == ("False", "InvalidSpec")


def test_what_the_agent_says_to_do_is_told() -> None:
    simulation = running()
    [driver] = simulation.world.drivers.values()
    error = ErrorInfo(
        type="Unreachable", message="s3://data cannot be reached.", remedy="Check the endpoint."
    )
    driver.savepoints["mine"] = SavepointOperation(
        name="mine", state=OperationState.FAILED, error=error
    )

    ask(simulation)
    simulation.settle(lambda: phase(simulation) == "Failed")

    message = simulation.savepoint("mine")["status"]["message"]
    assert message == "s3://data cannot be reached. Check the endpoint."


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
    assert simulation.events().count("Retrying") == 2
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
        "savepoint": {**SUMMARY, "name": of_operation(simulation, "suspend-2")},
        "details": {"namespace": NAMESPACE, "job": NAME, "spark_version": "4.3.0"},
    }

    simulation.edit(suspend=True)
    simulation.settle(
        lambda: phase(simulation, of_operation(simulation, "suspend-2")) == "Completed"
    )
    name = of_operation(simulation, "suspend-2")
    assert simulation.savepoint(name)["status"]["batch"] is not None
    simulation.settle(lambda: "id" in simulation.savepoint(name)["status"])

    status = simulation.savepoint(name)["status"]
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


@pytest.mark.parametrize(
    "more", [{}, {"existing": {"repository": "s3://old/s", "job": "legacy", "name": "mine"}}]
)
def test_a_check_that_counts_says_how_many_rows_there_are(more: dict[str, Any]) -> None:
    simulation = running()
    counted = {"name": "visits", "id": "q", "batch": 3, "rows": 12}
    uncounted = {**counted, "rows": None}

    def answer(pod: Object) -> dict[str, Any]:
        deep = "--deep" in pod["spec"]["containers"][0]["args"]
        queries = [counted if deep else uncounted]
        details = {"namespace": NAMESPACE, "job": NAME, "queries": queries}
        word = "Verified" if deep else "Inspected"
        return {"answer": word, "savepoint": SUMMARY, "details": details}

    simulation.world.answers = answer
    ask(simulation, verify="Deep", **more)
    simulation.settle(lambda: "verified" in simulation.savepoint("mine").get("status", {}))

    [query] = simulation.savepoint("mine")["status"]["queries"]
    assert (query["name"], query["rows"]) == ("visits", 12)


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


def test_whoever_watches_it_go_is_told_what_was_freed() -> None:
    simulation = running()
    ask(simulation, onDelete="Delete")
    simulation.settle(lambda: phase(simulation) == "Completed")
    simulation.world.answers = lambda pod: {"answer": "Disposed", "freed_bytes": 4096}
    told: list[int | None] = []

    def listen(verb: str, what: Object | str) -> None:
        if verb == "status" and isinstance(what, dict) and metadata(what)["name"] == "mine":
            told.append(what["status"].get("freedBytes"))

    simulation.cluster.refuse = listen

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "mine")
    simulation.settle(lambda: simulation.cluster.find(SAVEPOINTS, NAMESPACE, "mine") is None)

    assert told[-1] == 4096


def test_what_an_operation_captured_goes_with_a_resource_that_had_no_pass_of_its_own_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = running(savepoints={**SPEC["savepoints"], "onDelete": "Delete"})
    simulation.world.answers = lambda pod: None
    with monkeypatch.context() as patched:
        patched.setattr(simulation, "run_savepoints", lambda: None)
        simulation.edit(suspend=True)
        simulation.settle(lambda: phase(simulation, of_operation(simulation, "suspend-2")) == DONE)

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, of_operation(simulation, "suspend-2"))
    simulation.settle(lambda: bool(tasks(simulation)))

    assert [line[0] for line in tasks(simulation)] == ["dispose"]


def test_a_savepoint_of_the_schedule_is_guarded_from_the_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = running(savepoints={**SPEC["savepoints"], "schedule": "*/10 * * * *"})
    monkeypatch.setattr(simulation, "run_savepoints", lambda: None)

    simulation.settle(lambda: bool(simulation.cluster.all(SAVEPOINTS, NAMESPACE)), longest=60)

    (made,) = simulation.cluster.all(SAVEPOINTS, NAMESPACE)
    assert metadata(made)["finalizers"] == [FINALIZER]


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
    name = of_operation(simulation, "upgrade-2")
    simulation.cluster.edit(
        SAVEPOINTS, NAMESPACE, name, lambda body: body["spec"].update(onDelete="Delete")
    )

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, name)
    simulation.run_savepoints()

    assert tasks(simulation) == []
    assert simulation.cluster.find(SAVEPOINTS, NAMESPACE, name) is not None


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
        of_operation(simulation, "suspend-2")
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


def test_what_a_watch_shows_before_the_pass_that_wrote_it_goes_on_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = running()
    ask(simulation)
    shown: list[Object] = []
    replace_status = simulation.cluster.replace_status

    async def show_at_once(body: Object) -> Object:
        written = await replace_status(body)
        if body["kind"] == SAVEPOINTS.kind:
            simulation.operator.savepoint_cache.put(KEY, written)
            simulation.operator.savepoints.wrote(written)
            shown.append(written)
        return written

    monkeypatch.setattr(simulation.cluster, "replace_status", show_at_once)
    simulation.run_savepoints()

    assert shown
    assert not simulation.operator.savepoints.wrote(shown[-1])
