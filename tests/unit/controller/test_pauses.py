"""Hands off: what a person works on is neither changed, taken nor removed, until they go on."""

from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.controller.cluster import JOBS, SAVEPOINTS, Kind, Object, metadata
from sparkpoint.controller.keys import FINALIZER, PAUSED
from tests.unit.controller.simulation import NAME, NAMESPACE, SPEC, Simulation, is_released

EXISTING = {"repository": "s3://old/savepoints", "job": "legacy", "name": "mine"}


def running(**savepoints: Any) -> Simulation:
    """A job that has been there for a day."""
    simulation = Simulation({**SPEC, "savepoints": {**SPEC["savepoints"], **savepoints}})
    simulation.settle(simulation.is_running)
    simulation.world.now += timedelta(days=1)
    return simulation


def pause(simulation: Simulation, kind: Kind, name: str) -> None:
    def change(body: Object) -> None:
        body["metadata"]["annotations"] = {PAUSED: "true"}

    simulation.cluster.edit(kind, NAMESPACE, name, change)


def go_on(simulation: Simulation, kind: Kind, name: str) -> None:
    simulation.cluster.edit(kind, NAMESPACE, name, lambda body: body["metadata"].pop("annotations"))


def add_savepoint(
    simulation: Simulation, name: str, *, hours: int, status: bool = True, **spec: Any
) -> None:
    simulation.cluster.add(
        {
            "apiVersion": "sparkpoint.dev/v1alpha1",
            "kind": "SparkSavepoint",
            "metadata": {"name": name, "namespace": NAMESPACE, "finalizers": [FINALIZER]},
            "spec": {"jobRef": {"name": NAME}, **spec},
        }
    )
    moment = (simulation.world.now - timedelta(hours=hours)).isoformat()
    written = {"phase": "Completed", "completedAt": moment, "id": f"{name:0<64}", "name": name}
    if status:
        simulation.cluster.edit(
            SAVEPOINTS, NAMESPACE, name, lambda body: body.update(status=written)
        )


def left(simulation: Simulation) -> list[str]:
    return [metadata(body)["name"] for body in simulation.cluster.all(SAVEPOINTS, NAMESPACE)]


def test_retention_leaves_a_paused_savepoint_as_it_is() -> None:
    simulation = running(retention={"last": 1})
    simulation.world.answers = lambda pod: {"answer": "Disposed"}
    for name, hours in (("new", 1), ("paused", 2), ("old", 3)):
        add_savepoint(simulation, name, hours=hours, trigger="Periodic")
    pause(simulation, SAVEPOINTS, "paused")
    before = simulation.savepoint("paused")

    simulation.settle(lambda: left(simulation) == ["new", "paused"])
    assert simulation.savepoint("paused") == before

    go_on(simulation, SAVEPOINTS, "paused")
    simulation.settle(lambda: left(simulation) == ["new"])


def test_a_job_that_takes_its_savepoints_along_leaves_a_paused_one() -> None:
    simulation = running(onDelete="Delete")
    simulation.world.answers = lambda pod: {"answer": "Disposed"}
    add_savepoint(simulation, "other", hours=1)
    add_savepoint(simulation, "paused", hours=1)
    pause(simulation, SAVEPOINTS, "paused")

    simulation.cluster.remove(JOBS, NAMESPACE, NAME)
    simulation.settle(lambda: is_released(simulation))

    assert left(simulation) == ["paused"]
    assert "expired" not in simulation.savepoint("paused")["status"].get("record", {})


@pytest.mark.parametrize("spec", [{}, {"existing": EXISTING}], ids=["new", "existing"])
def test_nothing_is_taken_of_a_paused_job_until_it_goes_on(spec: dict[str, Any]) -> None:
    simulation = running()
    summary = {"id": "ab" * 32, "name": "mine", "batches": {}, "files": 1, "bytes": 1} | {
        "new_bytes": 1,
        "seconds": 1.0,
    }
    simulation.world.answers = lambda pod: {"answer": "Inspected", "savepoint": summary}
    pause(simulation, JOBS, NAME)
    add_savepoint(simulation, "mine", hours=0, status=False, **spec)

    for _ in range(3):
        simulation.run_savepoints()
        simulation.world.step()
        simulation.world.now += timedelta(minutes=1)
    status = simulation.savepoint("mine")["status"]
    assert (status["phase"], status["message"]) == ("Pending", "The job is paused.")
    assert simulation.pods("worker") == []

    go_on(simulation, JOBS, NAME)
    simulation.settle(lambda: simulation.savepoint("mine")["status"]["phase"] == "Completed")


def test_a_check_waits_for_a_paused_job_and_a_deletion_does_not() -> None:
    simulation = running()
    simulation.world.answers = lambda pod: {"answer": "Disposed"}
    pause(simulation, JOBS, NAME)
    add_savepoint(simulation, "mine", hours=1, verify="Content", onDelete="Delete")

    simulation.run_savepoints()
    assert simulation.savepoint("mine")["status"]["message"] == "The job is paused."
    assert simulation.pods("worker") == []

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "mine")
    simulation.settle(lambda: left(simulation) == [])
