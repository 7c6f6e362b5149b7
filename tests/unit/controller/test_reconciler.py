"""The whole operator, but for kopf: a job's life in a cluster in memory."""

import asyncio
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from sparkpoint.controller.cluster import (
    CONFIG_MAPS,
    JOBS,
    PODS,
    REVISIONS,
    SAVEPOINTS,
    Object,
    metadata,
)
from sparkpoint.controller.errors import (
    ClusterError,
    ConflictError,
    ForbiddenError,
    UnavailableError,
    UnprocessableError,
)
from sparkpoint.runtime.model import EndReason
from tests.unit.controller.simulation import (
    KEY,
    NAME,
    NAMESPACE,
    QUERY,
    SPEC,
    Simulation,
    is_released,
)

NEW_CODE = {"application": {"script": {"path": "/opt/job/better.py"}}}


def running(spec: dict[str, Any] | None = None) -> Simulation:
    simulation = Simulation(spec)
    simulation.settle(simulation.is_running)
    return simulation


def test_a_job_starts_and_runs() -> None:
    simulation = running()

    status = simulation.status
    assert (status["epoch"], status["attempt"]) == (1, 1)
    assert status["lastOperation"]["result"] == "Succeeded"
    assert simulation.condition("Ready")["status"] == "True"
    assert status["driver"]["pod"] == "visits-e1-a1"
    assert status["executors"] == 2
    assert simulation.events() == ["Start", "StartSucceeded"]


def test_a_job_that_runs_costs_no_call_of_the_api_server() -> None:
    simulation = running()
    for _ in range(3):
        simulation.run_pass()
    simulation.cluster.calls.clear()

    simulation.run_pass()

    assert {kind for _, kind, _ in simulation.cluster.calls} == {"Agent"}


def test_progress_is_written_now_and_then_alone() -> None:
    simulation = running()
    simulation.cluster.calls.clear()

    for _ in range(100):
        simulation.run_pass()
        simulation.world.step()
        simulation.world.now += simulation.world.now.resolution * 1_000_000

    writes = simulation.cluster.writes
    assert 2 <= len(writes) <= 5
    assert {verb for verb, _, _ in writes} == {"status"}


def test_new_code_goes_through_a_savepoint_into_a_new_epoch() -> None:
    simulation = running()
    batch = simulation.status["batch"]

    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)

    status = simulation.status
    source = status["restoredFrom"]
    assert source["name"] == "visits-upgrade-2-uid1"
    assert source["id"] == status["lastSavepoint"]["id"]
    assert status["lastSavepoint"]["name"] == "visits-upgrade-2-uid1"
    assert status["lastOperation"]["downtimeSeconds"] > 0
    assert status["revisions"]["current"] == status["revisions"]["stable"]
    savepoint = simulation.savepoint("visits-upgrade-2-uid1")
    assert savepoint["status"]["phase"] == "Completed"
    assert savepoint["status"]["batch"] >= batch
    assert savepoint["status"]["size"] == "4.0 KiB"
    assert simulation.events() == ["Start", "StartSucceeded", "Upgrade", "UpgradeSucceeded"]


def test_where_the_time_of_an_upgrade_went_is_told() -> None:
    simulation = running()

    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)

    last = simulation.status["lastOperation"]
    spent = {each["phase"]: each["seconds"] for each in last["phases"]}
    began, ended = (datetime.fromisoformat(last[each]) for each in ("startedAt", "finishedAt"))
    assert list(spent) == ["Stop", "Launch", "Observe"]
    assert sum(spent.values()) == (ended - began).total_seconds()


def test_a_savepoint_is_complete_also_if_only_the_drivers_last_word_tells_of_it() -> None:
    simulation = running()
    for driver in simulation.world.drivers.values():
        driver.hasty = True

    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)

    status = simulation.savepoint("visits-upgrade-2-uid1")["status"]
    assert status["phase"] == "Completed"
    assert status["queries"][0]["name"] == QUERY
    assert "id" not in status


def test_the_savepoint_of_an_upgrade_is_known_before_the_job_is_stopped() -> None:
    simulation = running()
    simulation.edit(**NEW_CODE)

    simulation.settle(lambda: any(driver.stops for driver in simulation.world.drivers.values()))

    assert simulation.savepoint("visits-upgrade-2-uid1")["status"]["phase"] == "InProgress"


def test_code_that_fails_is_rolled_back_and_not_tried_again() -> None:
    simulation = running()
    stable = simulation.status["revisions"]["stable"]
    simulation.world.broken = lambda pod: "better.py" in str(pod["spec"]["containers"][0]["args"])

    simulation.edit(**NEW_CODE)
    simulation.settle(
        lambda: simulation.is_running() and simulation.status["epoch"] == 3, passes=400
    )

    status = simulation.status
    assert status["revisions"]["stable"] == stable
    assert status["revisions"]["failed"] is not None
    assert simulation.condition("Degraded")["reason"] == "RolledBack"
    assert "Change the spec" in simulation.condition("Degraded")["message"]
    assert "UpgradeRolledBack" in simulation.events()


def test_another_number_of_executors_needs_no_savepoint() -> None:
    simulation = running()

    simulation.edit(executor={"instances": 4})
    simulation.settle(lambda: simulation.is_running() and simulation.status["attempt"] == 2)

    assert simulation.status["epoch"] == 1
    assert simulation.cluster.all(SAVEPOINTS, NAMESPACE) == []


def test_a_driver_that_dies_is_followed_by_another() -> None:
    simulation = running()
    driver = next(iter(simulation.world.drivers.values()))
    driver.end(EndReason.SCRIPT_FAILED, 1, "a bug", clean=False)

    simulation.settle(lambda: simulation.is_running() and simulation.status["attempt"] == 2)

    status = simulation.status
    assert status["driver"]["restarts"] == 1
    assert status["driver"]["reason"] == "ScriptFailed"
    assert status["driver"]["lastException"] == "a bug"
    assert status["driver"]["failures"] == 1


def _is_at(simulation: Simulation, attempt: int) -> bool:
    return simulation.is_running() and simulation.status["attempt"] == attempt


def test_only_the_newest_driver_that_ended_is_kept_for_its_logs() -> None:
    simulation = running()
    for attempt in (2, 3, 4):
        driver = next(each for each in simulation.world.drivers.values() if each.phase == "running")
        driver.end(EndReason.SCRIPT_FAILED, 1, "a bug", clean=False)
        simulation.settle(partial(_is_at, simulation, attempt), passes=400)
    for _ in range(3):
        simulation.run_pass()
        simulation.world.step()

    names = [metadata(pod)["name"] for pod in simulation.pods("driver")]
    assert names == ["visits-e1-a3", "visits-e1-a4"]


def test_a_job_is_suspended_with_a_savepoint_and_resumed_in_its_directory() -> None:
    simulation = running()

    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status.get("phase") == "Suspended")
    assert simulation.savepoint("visits-suspend-2-uid1")["status"]["phase"] == "Completed"
    assert simulation.condition("Ready")["reason"] == "Suspended"
    simulation.edit(suspend=False)
    simulation.settle(simulation.is_running)

    assert (simulation.status["epoch"], simulation.status["attempt"]) == (1, 2)


def test_a_spec_that_cannot_be_used_changes_nothing_and_says_all_that_is_wrong() -> None:
    simulation = running()

    simulation.edit(image="", executor={"instances": -1})
    for _ in range(3):
        simulation.run_pass()
        simulation.world.step()

    accepted = simulation.condition("Accepted")
    assert (accepted["status"], accepted["reason"]) == ("False", "InvalidSpec")
    assert "spec.image" in accepted["message"]
    assert "spec.executor.instances" in accepted["message"]
    assert simulation.status["phase"] == "Running"
    assert simulation.events().count("NotAccepted") == 1


def test_a_job_with_a_spec_that_cannot_be_used_is_still_healed() -> None:
    simulation = running()
    simulation.edit(image="")
    driver = next(iter(simulation.world.drivers.values()))

    driver.end(EndReason.SCRIPT_FAILED, 1, "a bug", clean=False)
    simulation.settle(lambda: simulation.is_running() and simulation.status["attempt"] == 2)

    assert simulation.condition("Accepted")["status"] == "False"


def test_a_suspended_job_stays_so_when_its_spec_becomes_unusable() -> None:
    simulation = running()
    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status.get("phase") == "Suspended")

    simulation.edit(suspend=False, image="")
    for _ in range(5):
        simulation.run_pass()
        simulation.world.step()

    assert simulation.status["phase"] == "Suspended"


def test_a_job_that_was_never_valid_has_no_run_and_can_be_deleted() -> None:
    simulation = Simulation({**SPEC, "image": ""})
    simulation.run_pass()
    assert simulation.status["phase"] == "Pending"
    assert simulation.pods("driver") == []

    simulation.cluster.remove(JOBS, NAMESPACE, NAME)
    simulation.settle(lambda: is_released(simulation))

    assert simulation.pods("driver") == []


def test_a_corrected_spec_is_carried_out() -> None:
    simulation = running()
    simulation.edit(image="")
    simulation.run_pass()

    simulation.edit(image=SPEC["image"], **NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)

    assert simulation.condition("Accepted")["status"] == "True"


def test_a_truth_value_in_place_of_a_number_is_a_change() -> None:
    """They are the same to Python, and not to Kubernetes."""
    simulation = running({**SPEC, "driver": {"podTemplate": {"spec": {"enableServiceLinks": 0}}}})

    simulation.edit(driver={"podTemplate": {"spec": {"enableServiceLinks": False}}})
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)

    assert simulation.status["lastOperation"]["kind"] == "Upgrade"


def test_a_job_whose_script_is_not_there_waits_for_it() -> None:
    wanted = {"configMap": {"name": "code", "key": "job.py"}}
    simulation = Simulation({**SPEC, "application": {"script": wanted}})
    simulation.run_pass()
    assert simulation.condition("Accepted")["reason"] == "ScriptNotFound"
    assert "ConfigMap code" in simulation.condition("Accepted")["message"]

    simulation.cluster.add(config_map("print('one')"))
    simulation.settle(simulation.is_running)

    assert simulation.condition("Accepted")["status"] == "True"


def test_a_changed_config_map_is_an_upgrade() -> None:
    wanted = {"configMap": {"name": "code", "key": "job.py"}}
    simulation = Simulation({**SPEC, "application": {"script": wanted}})
    simulation.cluster.add(config_map("print('one')"))
    simulation.settle(simulation.is_running)

    simulation.cluster.erase(CONFIG_MAPS, NAMESPACE, "code")
    simulation.cluster.add(config_map("print('two')"))
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)

    assert simulation.status["lastOperation"]["kind"] == "Upgrade"


def config_map(text: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "code", "namespace": NAMESPACE},
        "data": {"job.py": text},
    }


def test_a_status_that_somebody_else_wrote_meanwhile_is_looked_at_again() -> None:
    simulation = running()
    simulation.edit(**NEW_CODE)
    writes = 0

    def refuse(verb: str, what: object) -> ClusterError | None:
        nonlocal writes
        writes += verb == "status"
        return ConflictError("modified") if verb == "status" and writes in (1, 3) else None

    simulation.cluster.refuse = refuse
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)

    assert simulation.status["attempt"] == 2
    assert simulation.events() == ["Start", "StartSucceeded", "Upgrade", "UpgradeSucceeded"]


def test_an_api_server_that_does_not_answer_is_asked_again_later_and_later() -> None:
    simulation = Simulation()
    simulation.cluster.refuse = lambda verb, what: UnavailableError("down")

    delays = [simulation.run_pass().seconds for _ in range(8)]

    assert delays == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_driver_that_can_never_be_made_is_rolled_back() -> None:
    simulation = running()

    def refuse(verb: str, what: Object | str) -> ClusterError | None:
        if verb != "create" or isinstance(what, str) or what["kind"] != "Pod":
            return None
        bad = "better.py" in str(what["spec"])
        return UnprocessableError("spec.containers[0].image: Invalid value") if bad else None

    simulation.cluster.refuse = refuse
    simulation.edit(**NEW_CODE)
    simulation.settle(
        lambda: simulation.is_running() and simulation.status["epoch"] == 3, passes=400
    )

    assert simulation.status["lastOperation"]["kind"] == "Rollback"
    assert "Invalid value" in simulation.condition("Degraded")["message"]
    assert "ObjectRefused" in simulation.events()


def test_a_quota_that_is_used_up_is_told_and_waited_for() -> None:
    simulation = Simulation()
    simulation.cluster.refuse = lambda verb, what: (
        ForbiddenError("exceeded quota: pods")
        if verb == "create" and isinstance(what, dict) and what["kind"] == "Pod"
        else None
    )
    for _ in range(5):
        simulation.run_pass()
    degraded = simulation.condition("Degraded")
    assert degraded["reason"] == "ObjectRefused"
    assert degraded["message"].startswith("exceeded quota: pods. Raise the quota")

    simulation.cluster.refuse = lambda verb, what: None
    simulation.settle(simulation.is_running)

    assert simulation.condition("Degraded")["status"] == "False"
    assert (simulation.status["epoch"], simulation.status["attempt"]) == (1, 1)


def test_a_gate_is_opened_on_what_the_api_server_lists_and_not_on_a_watch() -> None:
    simulation = running()
    [pod], [driver] = simulation.pods("driver"), simulation.world.drivers.values()
    driver.phase = "gated"
    simulation.feed()
    labels = {**metadata(pod)["labels"], "sparkpoint.dev/attempt": "0"}
    about = {**metadata(pod), "name": "visits-e1-a0", "labels": labels}
    status = {**pod["status"], "podIP": "10.0.0.99"}
    former = simulation.cluster.add({**pod, "metadata": about, "status": status})

    simulation.run_pass_behind()
    phases: list[str] = [driver.phase]
    simulation.cluster.erase(PODS, NAMESPACE, metadata(former)["name"])
    simulation.run_pass_behind()
    phases.append(driver.phase)

    assert phases == ["gated", "running"]


def test_nothing_begins_while_pods_of_an_earlier_job_of_this_name_live() -> None:
    former = running()
    driver = former.pods("driver")[0]
    simulation = Simulation()
    left = {**driver, "metadata": {**driver["metadata"], "name": "visits-e1-a9"}}
    simulation.cluster.add(left)
    for _ in range(3):
        simulation.run_pass()
    assert [metadata(pod)["name"] for pod in simulation.pods("driver")] == ["visits-e1-a9"]
    assert "earlier job" in simulation.condition("Degraded")["message"]

    simulation.cluster.erase(PODS, NAMESPACE, "visits-e1-a9")
    simulation.settle(simulation.is_running)

    assert simulation.status["attempt"] == 1


def test_a_deleted_job_ends_its_driver_at_a_boundary_and_is_let_go() -> None:
    simulation = running()

    simulation.cluster.remove(JOBS, NAMESPACE, NAME)
    simulation.settle(lambda: is_released(simulation))

    assert all(driver.phase == "ended" for driver in simulation.world.drivers.values())
    assert simulation.status["phase"] == "Deleting"
    assert simulation.pods("executor") == []


def test_the_checkpoints_of_a_deleted_job_are_removed_if_it_says_so() -> None:
    checkpoint = {"location": "s3://data/checkpoints", "onDelete": "Delete"}
    simulation = running({**SPEC, "checkpoint": checkpoint})

    simulation.cluster.remove(JOBS, NAMESPACE, NAME)
    simulation.settle(lambda: is_released(simulation))

    [worker] = simulation.pods("worker")
    arguments = worker["spec"]["containers"][0]["args"]
    assert arguments[3:] == [
        *("remove", "--root", "s3://data/checkpoints", "--job", "shop/visits", "--life", "uid1"),
    ]


def test_a_deleted_job_takes_a_last_savepoint_if_it_says_so() -> None:
    savepoints = {"repository": "s3://data/savepoints", "finalOnDelete": True}
    simulation = running({**SPEC, "savepoints": savepoints})

    simulation.cluster.remove(JOBS, NAMESPACE, NAME)
    simulation.settle(lambda: is_released(simulation))

    savepoint = simulation.savepoint("visits-delete-2-uid1")
    assert savepoint["spec"]["trigger"] == "Final"
    assert savepoint["status"]["phase"] == "Completed"


def test_a_job_that_is_gone_is_let_go() -> None:
    simulation = Simulation()
    simulation.cluster.erase(JOBS, NAMESPACE, NAME)

    assert simulation.run_pass().released


@pytest.mark.parametrize("deleted", [True, False], ids=["deleted", "running"])
def test_a_job_that_somebody_else_let_go_is_forgotten_before_the_watch_tells(
    deleted: bool,
) -> None:
    simulation = running()
    if deleted:
        simulation.cluster.remove(JOBS, NAMESPACE, NAME)
        simulation.run_pass()
    else:
        # It has something to write.
        simulation.edit(restartNonce="1")
        simulation.feed()

    simulation.cluster.erase(JOBS, NAMESPACE, NAME)
    requeues = [simulation.run_pass_behind() for _ in range(3)]

    assert requeues[-1].released
    assert 'resources{kind="job"' not in simulation.operator.metrics.render()


def test_a_job_begins_from_a_savepoint_once_that_is_complete() -> None:
    simulation = Simulation({**SPEC, "restoreFrom": {"savepoint": "old"}})
    simulation.run_pass()
    assert "no SparkSavepoint old" in simulation.condition("Progressing")["message"]
    simulation.cluster.add(old_savepoint())
    simulation.run_pass()
    assert simulation.condition("Progressing")["reason"] == "WaitingForSavepoint"

    complete(simulation, "old")
    simulation.settle(simulation.is_running)

    [driver] = simulation.pods("driver")
    arguments = driver["spec"]["containers"][0]["args"]
    assert arguments[arguments.index("--restore") + 1] == "shop/other/old"
    assert arguments[arguments.index("--repository") + 1] == "s3://elsewhere/savepoints"
    assert simulation.status["restoredFrom"]["name"] == "shop/other/old"


def test_a_savepoint_that_does_not_exist_is_told_once_and_still_waited_for() -> None:
    simulation = Simulation({**SPEC, "restoreFrom": {"savepoint": "old"}})
    simulation.run_pass()
    assert simulation.condition("Degraded")["status"] == "False"

    simulation.settle(lambda: simulation.condition("Degraded")["status"] == "True")
    for _ in range(3):
        simulation.run_pass()

    degraded = simulation.condition("Degraded")
    assert degraded["reason"] == "SavepointNotFound"
    assert "there is no SparkSavepoint old" in degraded["message"]
    assert "correct the name" in degraded["message"]
    assert simulation.events().count("SavepointNotFound") == 1
    simulation.cluster.add(old_savepoint())
    complete(simulation, "old")
    simulation.settle(simulation.is_running)
    assert simulation.condition("Degraded")["status"] == "False"


def test_a_savepoint_that_failed_is_told() -> None:
    simulation = Simulation({**SPEC, "restoreFrom": {"savepoint": "old"}})
    simulation.cluster.add(old_savepoint())
    failed = {"phase": "Failed", "name": "old"}
    simulation.cluster.edit(SAVEPOINTS, NAMESPACE, "old", lambda body: body.update(status=failed))

    simulation.settle(lambda: simulation.condition("Degraded")["status"] == "True")

    assert simulation.condition("Degraded")["reason"] == "SavepointFailed"
    assert "choose another one" in simulation.condition("Degraded")["message"]
    assert "SavepointFailed" in simulation.events()


def old_savepoint() -> Object:
    return {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "SparkSavepoint",
        "metadata": {"name": "old", "namespace": NAMESPACE},
        "spec": {"jobRef": {"name": "other"}},
    }


def complete(simulation: Simulation, name: str) -> None:
    status = {"phase": "Completed", "name": name, "repository": "s3://elsewhere/savepoints"}
    simulation.cluster.edit(SAVEPOINTS, NAMESPACE, name, lambda body: body.update(status=status))


def test_a_record_that_cannot_be_read_stops_everything_and_is_told() -> None:
    simulation = running()
    simulation.cluster.edit(
        JOBS, NAMESPACE, NAME, lambda body: body["status"]["record"].update(fromTheFuture=1)
    )
    simulation.restart()
    simulation.cluster.calls.clear()

    assert simulation.run_pass().seconds == 60

    assert [verb for verb, _, _ in simulation.cluster.writes] == ["create", "status"]
    assert "RecordUnreadable" in simulation.events()


def test_a_job_whose_record_cannot_be_read_does_not_look_well() -> None:
    simulation = running()
    before = {**simulation.status, "record": {**simulation.status["record"], "fromTheFuture": 1}}
    simulation.cluster.edit(JOBS, NAMESPACE, NAME, lambda body: body.update(status=before))
    simulation.restart()

    simulation.run_pass()
    simulation.cluster.calls.clear()
    simulation.run_pass()

    degraded = simulation.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "RecordUnreadable")
    assert simulation.cluster.writes == []
    others = [each for each in before["conditions"] if each["type"] != "Degraded"]
    assert simulation.status == {**before, "conditions": [*others, degraded]}
    metrics = simulation.operator.metrics.render()
    assert 'reason="RecordUnreadable"' in metrics
    assert 'sparkpoint_operator_resources{kind="job",phase="Running"} 1' in metrics


def test_a_record_that_cannot_be_read_does_not_hold_a_deletion_up() -> None:
    simulation = running()
    simulation.cluster.edit(
        JOBS, NAMESPACE, NAME, lambda body: body["status"]["record"].update(fromTheFuture=1)
    )
    gone = {"deletionTimestamp": "2020-01-01T00:00:00Z"}
    simulation.cluster.edit(JOBS, NAMESPACE, NAME, lambda body: body["metadata"].update(gone))
    simulation.restart()

    assert simulation.run_pass().released
    assert "RecordUnreadable" in simulation.events()
    metrics = simulation.operator.metrics.render()
    assert 'reason="RecordUnreadable"' in metrics
    assert 'sparkpoint_operator_resources{kind="job",phase="Running"} 1' in metrics


def test_a_revision_that_cannot_be_read_is_told_and_holds_no_deletion_up() -> None:
    simulation = running()
    (kept,) = simulation.cluster.all(REVISIONS, NAMESPACE)
    simulation.cluster.edit(
        REVISIONS,
        NAMESPACE,
        kept["metadata"]["name"],
        lambda body: body["data"]["spec"].update(checkpoint="of another form"),
    )
    simulation.restart()

    simulation.run_pass()
    degraded = simulation.condition("Degraded")
    gone = {"deletionTimestamp": "2020-01-01T00:00:00Z"}
    simulation.cluster.edit(JOBS, NAMESPACE, NAME, lambda body: body["metadata"].update(gone))

    assert degraded["reason"] == "RecordUnreadable"
    assert f"ControllerRevision {kept['metadata']['name']} cannot be read" in degraded["message"]
    assert simulation.run_pass().released


def test_a_paused_job_is_left_as_it_is_until_it_goes_on_or_is_deleted() -> None:
    simulation = running()
    pause = {"sparkpoint.dev/paused": "true"}
    simulation.cluster.edit(
        JOBS, NAMESPACE, NAME, lambda body: body["metadata"].update(annotations=pause)
    )
    simulation.edit(**NEW_CODE)
    simulation.cluster.calls.clear()
    simulation.run_pass()
    assert simulation.cluster.writes == []

    simulation.cluster.edit(
        JOBS, NAMESPACE, NAME, lambda body: body["metadata"].update(annotations={})
    )
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)


def test_passes_over_the_same_job_never_overlap() -> None:
    simulation = running()
    simulation.edit(**NEW_CODE)
    simulation.feed()
    inside = 0

    async def twice() -> None:
        await asyncio.gather(*(simulation.operator.jobs.run_once(KEY) for _ in range(5)))

    original = simulation.cluster.get

    async def slow(*arguments: Any) -> Object:
        nonlocal inside
        inside += 1
        assert inside == 1
        await asyncio.sleep(0)
        inside -= 1
        return await original(*arguments)

    simulation.cluster.get = slow  # type: ignore[method-assign, assignment]
    asyncio.run(twice())

    assert simulation.events().count("Upgrade") == 1
