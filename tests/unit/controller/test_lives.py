"""A job that is deleted and made again under its name: nothing of the one reaches the other."""

from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.controller.cluster import (
    BUDGETS,
    CONFIG_MAPS,
    JOBS,
    PODS,
    REVISIONS,
    SAVEPOINTS,
    SECRETS,
    Kind,
    Object,
    metadata,
    owner_uid,
)
from sparkpoint.controller.keys import FINALIZER
from tests.unit.controller.simulation import NAME, NAMESPACE, SPEC, Simulation, is_released

SERVICES = Kind("v1", "Service", "services")
NEW_CODE = {"application": {"script": {"path": "/opt/job/better.py"}}}
TEMPORARY = {**SPEC, "checkpoint": {"location": "s3://data/checkpoints", "onDelete": "Delete"}}


def running(spec: dict[str, Any] | None = None) -> Simulation:
    simulation = Simulation(spec)
    simulation.settle(simulation.is_running)
    return simulation


def delete(simulation: Simulation) -> None:
    simulation.cluster.remove(JOBS, NAMESPACE, NAME)
    simulation.settle(lambda: is_released(simulation), passes=400)


def make_again(simulation: Simulation, spec: dict[str, Any]) -> None:
    """Kubernetes removes what the job owned that was let go, and a user applies anew."""
    uid = metadata(simulation.job)["uid"]
    for kind in (PODS, CONFIG_MAPS, SECRETS, SERVICES, BUDGETS, REVISIONS):
        for body in simulation.cluster.all(kind, NAMESPACE):
            if owner_uid(body) == uid:
                simulation.cluster.erase(kind, NAMESPACE, metadata(body)["name"])
    simulation.world.drivers.clear()
    simulation.world.directories.clear()
    simulation.run_pass()
    simulation.add_job(spec)


def argument(pod: Object, option: str) -> str:
    line: list[str] = pod["spec"]["containers"][0]["args"]
    return line[line.index(option) + 1]


def directory(simulation: Simulation) -> str:
    """Of the driver that runs."""
    return argument(simulation.pods("driver")[-1], "--epoch-dir")


def upgraded(simulation: Simulation) -> None:
    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)


def test_it_begins_in_a_directory_of_its_own_and_takes_savepoints_of_its_own() -> None:
    simulation = running()
    upgraded(simulation)
    first = directory(simulation)
    savepoint = simulation.status["lastSavepoint"]["name"]
    taken = simulation.savepoint(savepoint)["status"]["id"]
    delete(simulation)
    make_again(simulation, SPEC)
    simulation.settle(simulation.is_running)
    assert argument(simulation.pods("driver")[-1], "--expect") == "empty"
    upgraded(simulation)

    assert directory(simulation) != first
    assert simulation.status["lastSavepoint"]["name"] != savepoint
    assert simulation.savepoint(savepoint)["status"]["id"] == taken
    assert all(
        body["status"]["phase"] == "Completed"
        for body in simulation.cluster.all(SAVEPOINTS, NAMESPACE)
    )


def test_its_code_is_not_tried_on_the_state_of_the_former_job() -> None:
    simulation = running()
    upgraded(simulation)
    delete(simulation)
    simulation.world.now += simulation.world.now.resolution * 1_000_000
    make_again(simulation, {**SPEC, "upgrade": {"compatibility": "Enforce"}})
    simulation.settle(simulation.is_running)
    own = directory(simulation)

    upgraded(simulation)

    (trial,) = simulation.pods("worker")
    assert argument(trial, "--epoch-dir").endswith(own)


def test_a_worker_that_removes_data_has_ended_before_the_job_is_let_go() -> None:
    simulation = running(TEMPORARY)
    simulation.world.answers = lambda pod: None
    seen: list[int] = []
    simulation.cluster.remove(JOBS, NAMESPACE, NAME)

    def let_go() -> bool:
        if is_released(simulation):
            seen.append(len(simulation.pods("worker")))
        elif simulation.pods("worker"):
            seen.append(-1)
        return is_released(simulation)

    simulation.settle(let_go, passes=400)

    assert seen[0] == -1, "a worker was at work"
    assert seen[-1] == 0, "and is gone when the job is let go"
    assert "DeletionTimedOut" in simulation.events()


def test_a_worker_of_the_former_job_spares_the_directories_of_the_next() -> None:
    simulation = running(TEMPORARY)
    delete(simulation)
    [worker] = simulation.pods("worker")
    life = argument(worker, "--life")
    make_again(simulation, TEMPORARY)
    simulation.settle(simulation.is_running)

    assert life
    assert not directory(simulation).endswith(life)


def test_a_worker_that_can_never_be_made_does_not_hold_a_deletion_up() -> None:
    template = {"spec": {"tolerations": "all"}}
    simulation = running(TEMPORARY)
    # As an operator of before has kept it, when templates were not looked at yet.
    for body in simulation.cluster.all(REVISIONS, NAMESPACE):
        simulation.cluster.edit(
            REVISIONS,
            NAMESPACE,
            metadata(body)["name"],
            lambda known: known["data"]["spec"].update(driver={"podTemplate": template}),
        )
    simulation.restart()

    delete(simulation)

    assert "ObjectRefused" in simulation.events()
    assert "could not be removed" in simulation.status["lastOperation"]["message"]


def left_behind(simulation: Simulation, name: str, **status: Any) -> None:
    """A savepoint of the job as it is now, which does not live for ever after it."""
    simulation.cluster.add(
        {
            "apiVersion": "sparkpoint.dev/v1alpha1",
            "kind": "SparkSavepoint",
            "metadata": {"name": name, "namespace": NAMESPACE, "finalizers": [FINALIZER]},
            "spec": {"jobRef": {"name": NAME}, "trigger": "Periodic"},
        }
    )
    moment = simulation.world.now.isoformat()
    written = {
        "phase": "Completed",
        "startedAt": moment,
        "completedAt": moment,
        "id": f"{name:0<64}",
        "name": name,
        **status,
    }
    simulation.cluster.edit(SAVEPOINTS, NAMESPACE, name, lambda body: body.update(status=written))


def born_again(spec: dict[str, Any]) -> Simulation:
    """A job whose former life has left two good savepoints and one that failed."""
    simulation = running()
    delete(simulation)
    query = {"name": "visits", "partitions": 7}
    left_behind(simulation, "one", queries=[query], sparkVersion="3.5.9")
    left_behind(simulation, "two", queries=[query], sparkVersion="3.5.9")
    left_behind(simulation, "three", phase="Failed", message="of the former job")
    simulation.world.now += timedelta(days=2)
    make_again(simulation, spec)
    simulation.settle(simulation.is_running)
    return simulation


FORMER = ("one", "two", "three")


def untouched(simulation: Simulation) -> bool:
    found = [simulation.savepoint(name) for name in FORMER]
    words = ("keptBecause", "expiresAt")
    return not any(
        metadata(body).get("deletionTimestamp")
        or (body["status"].get("record") or {}).get("expired")
        or any(word in body["status"] for word in words)
        for body in found
    )


def test_its_retention_leaves_what_the_former_job_left() -> None:
    retained = {**SPEC, "savepoints": {**SPEC["savepoints"], "retention": {"last": 1}}}
    simulation = born_again(retained)
    simulation.world.answers = lambda pod: {"answer": "Disposed"}
    left_behind(simulation, "old")
    simulation.world.now += timedelta(minutes=2)
    left_behind(simulation, "new")

    simulation.settle(lambda: simulation.cluster.find(SAVEPOINTS, NAMESPACE, "old") is None)

    assert untouched(simulation)
    assert simulation.savepoint("new")["status"]["keptBecause"][0] == "newest"


def test_its_deletion_leaves_what_the_former_job_left() -> None:
    removed = {**SPEC, "savepoints": {**SPEC["savepoints"], "onDelete": "Delete"}}
    simulation = born_again(removed)
    simulation.world.answers = lambda pod: {"answer": "Disposed"}
    left_behind(simulation, "own")

    delete(simulation)

    assert simulation.cluster.find(SAVEPOINTS, NAMESPACE, "own") is None
    assert untouched(simulation)


def test_its_status_does_not_speak_of_what_the_former_job_left() -> None:
    simulation = born_again(SPEC)

    simulation.run_pass()

    assert "lastSavepoint" not in simulation.status
    assert simulation.condition("SavepointHealthy")["reason"] == "NoneYet"
    assert not {7, "3.5.9"} & {simulation.status.get(f) for f in ("partitions", "sparkVersion")}


@pytest.mark.parametrize("on_delete", ["Retain", "Delete"])
def test_the_data_of_savepoints_that_were_made_known_is_not_the_jobs_to_remove(
    on_delete: str,
) -> None:
    removed = {**SPEC, "savepoints": {**SPEC["savepoints"], "onDelete": "Delete"}}
    simulation = running(removed)
    left_behind(simulation, "legacy", completedAt="2020-01-01T00:00:00Z")
    existing = {"repository": "s3://old/savepoints", "job": "legacy", "name": "legacy"}
    simulation.cluster.edit(
        SAVEPOINTS,
        NAMESPACE,
        "legacy",
        lambda body: body["spec"].update(existing=existing, onDelete=on_delete),
    )
    disposed: list[str] = []

    def answer(pod: Object) -> dict[str, Any]:
        line: list[str] = pod["spec"]["containers"][0]["args"]
        disposed.extend(word for word in line if word == "dispose")
        return {"answer": "Disposed"}

    simulation.world.answers = answer
    delete(simulation)

    assert simulation.cluster.find(SAVEPOINTS, NAMESPACE, "legacy") is None
    # What a person says of this very savepoint is done.
    assert bool(disposed) == (on_delete == "Delete")
