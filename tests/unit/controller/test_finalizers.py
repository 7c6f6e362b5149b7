"""The finalizer: put on before anything is made, taken off when nothing is left to be done."""

from typing import Any

import pytest

from sparkpoint.controller.cluster import JOBS, SAVEPOINTS, Object, metadata
from sparkpoint.controller.errors import ClusterError, ConflictError, UnavailableError
from sparkpoint.controller.keys import FINALIZER, PAUSED
from tests.unit.controller.simulation import NAME, NAMESPACE, Simulation

OTHERS = "others/keep"


def with_finalizers(simulation: Simulation, *finalizers: str) -> None:
    simulation.cluster.edit(
        JOBS, NAMESPACE, NAME, lambda body: body["metadata"].update(finalizers=list(finalizers))
    )


def finalizers(body: Object) -> Any:
    return metadata(body).get("finalizers")


def delete(simulation: Simulation) -> None:
    simulation.cluster.remove(JOBS, NAMESPACE, NAME)


def test_it_is_put_on_a_job_before_anything_is_made() -> None:
    simulation = Simulation()
    with_finalizers(simulation, OTHERS)

    simulation.run_pass()

    assert simulation.cluster.writes[0] == ("patch", "StatefulSparkJob", NAME)
    assert len(simulation.cluster.writes) > 1
    assert finalizers(simulation.job) == [OTHERS, FINALIZER]


def test_nothing_is_made_while_it_cannot_be_put_on() -> None:
    simulation = Simulation()
    with_finalizers(simulation)
    simulation.cluster.refuse = lambda verb, what: (
        UnavailableError("busy") if verb == "patch" else None
    )

    simulation.run_pass()

    assert simulation.cluster.writes == [("patch", "StatefulSparkJob", NAME)]


def test_nothing_is_put_on_a_job_that_is_paused() -> None:
    simulation = Simulation()
    with_finalizers(simulation)
    simulation.cluster.edit(
        JOBS, NAMESPACE, NAME, lambda body: body["metadata"].update(annotations={PAUSED: "true"})
    )

    simulation.run_pass()

    assert simulation.cluster.writes == []


def test_a_job_that_is_let_go_is_gone_and_so_is_its_turn() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    delete(simulation)

    simulation.settle(lambda: simulation.cluster.find(JOBS, NAMESPACE, NAME) is None)

    assert simulation.requeue.released
    assert simulation.status["phase"] == "Deleting"


def test_what_others_have_put_on_stays_and_nothing_more_is_done() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    with_finalizers(simulation, FINALIZER, OTHERS)
    delete(simulation)
    simulation.settle(lambda: finalizers(simulation.job) == [OTHERS])
    writes = len(simulation.cluster.writes)

    assert simulation.run_pass().released

    assert len(simulation.cluster.writes) == writes


@pytest.mark.parametrize("error", [ConflictError("modified"), UnavailableError("busy")])
def test_a_job_that_could_not_be_let_go_is_let_go_later(error: ClusterError) -> None:
    simulation, errors = Simulation(), [error]
    simulation.settle(simulation.is_running)
    delete(simulation)
    simulation.cluster.refuse = lambda verb, what: (
        errors.pop() if verb == "patch" and errors else None
    )

    simulation.settle(lambda: simulation.cluster.find(JOBS, NAMESPACE, NAME) is None)

    assert errors == []
    assert simulation.requeue.released


def test_a_savepoint_is_guarded_and_let_go_alike() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    simulation.cluster.add(
        {
            "apiVersion": SAVEPOINTS.api_version,
            "kind": SAVEPOINTS.kind,
            "metadata": {"name": "mine", "namespace": NAMESPACE},
            "spec": {"jobRef": {"name": NAME}},
        }
    )
    simulation.settle(lambda: simulation.savepoint("mine")["status"].get("phase") == "Completed")
    guards = finalizers(simulation.savepoint("mine"))

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "mine")
    simulation.run_savepoints()

    assert guards == [FINALIZER]
    assert simulation.cluster.find(SAVEPOINTS, NAMESPACE, "mine") is None
