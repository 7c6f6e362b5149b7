"""A new job begins from what somebody else left: a checkpoint, or a savepoint of another job."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sparkpoint.controller.cluster import SAVEPOINTS, Kind, Object
from sparkpoint.controller.keys import FINALIZER, JOB
from tests.unit.controller.simulation import NAMESPACE, SPEC, Simulation

OLD = "s3://old/visits"
SAVEPOINT = "visits-start-1-uid1"
SUMMARY = {
    "id": "ab" * 32,
    "name": SAVEPOINT,
    "batches": {"visits": 41},
    "files": 10,
    "bytes": 4096,
    "new_bytes": 2048,
    "seconds": 0.5,
    "created": "2026-11-16T12:00:00Z",
    "location": f"s3://data/savepoints/savepoints/shop/visits/{SAVEPOINT}.json",
}
CAPTURED = {"answer": "Captured", "savepoint": SUMMARY}


def adopting(**more: Any) -> Simulation:
    checkpoint = {**SPEC["checkpoint"], "adopt": OLD, **more}
    return Simulation({**SPEC, "checkpoint": checkpoint})


def line(pod: Object) -> list[str]:
    found: list[str] = pod["spec"]["containers"][0]["args"]
    return found


def after(options: list[str], option: str) -> str:
    return options[options.index(option) + 1]


def test_a_checkpoint_is_captured_and_the_first_driver_restores_it() -> None:
    simulation = adopting(adoptAs="visits")
    lines: list[list[str]] = []

    def answer(pod: Object) -> dict[str, Any]:
        lines.append(line(pod)[3:])
        return CAPTURED

    simulation.world.answers = answer
    simulation.settle(simulation.is_running)

    [adopt] = lines
    assert adopt[0] == "adopt"
    assert after(adopt, "--checkpoint") == OLD
    assert after(adopt, "--name") == SAVEPOINT
    assert "--as=visits" in adopt
    [driver] = simulation.pods("driver")
    assert after(line(driver), "--restore") == SAVEPOINT
    assert after(line(driver), "--repository") == "s3://data/savepoints"
    assert after(line(driver), "--epoch-dir").endswith("/shop/visits/epoch-1-uid1")
    taken = simulation.savepoint(SAVEPOINT)["status"]
    assert (taken["phase"], taken["id"], taken["batch"]) == ("Completed", "ab" * 32, 41)
    assert simulation.status["restoredFrom"]["name"] == SAVEPOINT


def test_one_that_cannot_be_read_starts_nothing_until_it_is_corrected() -> None:
    simulation = adopting()
    refused = {"answer": "Failed", "message": "s3://old: access denied.", "retry_helps": False}
    simulation.world.answers = lambda pod: refused if OLD in line(pod) else CAPTURED
    simulation.settle(lambda: "NotAdopted" in simulation.events())
    for _ in range(100):
        simulation.run_pass()
        simulation.world.step()
        simulation.world.now += simulation.world.now.resolution * 5_000_000
    assert simulation.pods("driver") == []
    assert len(simulation.pods("worker")) <= 2
    assert "access denied" in simulation.condition("Degraded")["message"]
    assert simulation.events().count("NotAdopted") == 1

    name = "visits-start-2-uid1"
    simulation.world.answers = lambda pod: {
        "answer": "Captured",
        "savepoint": {**SUMMARY, "name": name},
    }
    simulation.edit(checkpoint={**SPEC["checkpoint"], "adopt": "s3://old/elsewhere"})
    simulation.settle(simulation.is_running)

    assert simulation.status["restoredFrom"]["name"] == name
    assert simulation.condition("Degraded")["status"] == "False"


FORK = {"manifest": {"repository": "s3://data/savepoints", "job": "other", "id": "cd" * 32}}


def other_savepoint(**more: Any) -> Object:
    return {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "SparkSavepoint",
        "metadata": {"name": "noon", "namespace": NAMESPACE},
        "spec": {"jobRef": {"name": "other"}, **more},
    }


def known(simulation: Simulation, *, labels: dict[str, str] | None = None, **more: Any) -> None:
    body = other_savepoint(**more)
    body["metadata"]["labels"] = labels or {}
    simulation.cluster.add(body)
    status = {"phase": "Completed", "name": "noon-1", "id": "cd" * 32}
    simulation.cluster.edit(SAVEPOINTS, NAMESPACE, "noon", lambda body: body.update(status=status))


def test_a_savepoint_of_another_job_is_found_by_its_id() -> None:
    simulation = Simulation({**SPEC, "restoreFrom": {**FORK, "sink": "Fork"}})
    known(simulation)

    simulation.settle(simulation.is_running)

    [driver] = simulation.pods("driver")
    assert after(line(driver), "--restore") == "shop/other/noon-1"
    assert after(line(driver), "--sink") == "fork"


def test_a_savepoint_that_the_operator_made_is_found_without_reading_all_of_the_namespace() -> None:
    simulation = Simulation({**SPEC, "restoreFrom": {**FORK, "sink": "Fork"}})
    known(simulation, labels={JOB: "other"})
    asked: list[Mapping[str, str]] = []
    original = simulation.cluster.list

    async def list_(kind: Kind, namespace: str, *, labels: Mapping[str, str]) -> Sequence[Object]:
        asked.extend([labels] if kind == SAVEPOINTS else [])
        return await original(kind, namespace, labels=labels)

    simulation.cluster.list = list_  # type: ignore[method-assign]
    simulation.settle(simulation.is_running)

    assert asked
    assert all(labels == {JOB: "other"} for labels in asked)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [({"savepoint": "noon"}, "savepoint"), (FORK, "manifest.id")],
    ids=["by its resource", "by its id"],
)
def test_nothing_begins_from_a_savepoint_that_is_being_deleted(
    wanted: dict[str, Any], field: str
) -> None:
    simulation = Simulation({**SPEC, "restoreFrom": {**wanted, "sink": "Fork"}})
    known(simulation)
    guard = {"finalizers": [FINALIZER]}
    simulation.cluster.edit(
        SAVEPOINTS, NAMESPACE, "noon", lambda body: body["metadata"].update(guard)
    )
    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "noon")

    for _ in range(3):
        simulation.run_pass()

    said = f"spec.restoreFrom.{field}: SparkSavepoint noon is being deleted"
    assert said in simulation.condition("Progressing")["message"]
    assert simulation.pods("driver") == []


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        ({}, "no SparkSavepoint of job other in namespace shop has this id"),
        ({"namespace": "bank"}, "its namespace bank is not looked into"),
    ],
    ids=["unknown", "foreign namespace"],
)
def test_an_id_that_nobody_knows_the_name_of_is_refused_with_the_reason(
    manifest: dict[str, str], why: str
) -> None:
    wanted = {"manifest": {**FORK["manifest"], **manifest}}
    simulation = Simulation({**SPEC, "restoreFrom": wanted})
    if manifest:
        known(simulation)

    for _ in range(3):
        simulation.run_pass()

    message = simulation.condition("Progressing")["message"]
    assert "spec.restoreFrom.manifest.id" in message
    assert why in message
    assert simulation.pods("driver") == []
