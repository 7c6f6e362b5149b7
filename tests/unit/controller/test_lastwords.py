"""Drivers whose pods are gone before anybody looks: what follows is decided by how they went."""

from datetime import timedelta

import pytest

from sparkpoint.controller.cluster import PODS, Object, metadata
from tests.unit.controller.simulation import KEY, NAMESPACE, Simulation


def running() -> Simulation:
    simulation = Simulation()
    simulation.world.answers = lambda pod: {"answer": "Captured", "batches": {"visits": 9}}
    simulation.settle(simulation.is_running)
    return simulation


def now(simulation: Simulation, pod: Object) -> Object:
    found = simulation.cluster.find(PODS, NAMESPACE, metadata(pod)["name"])
    assert found is not None
    return found


def go(simulation: Simulation, pod: Object) -> None:
    """The object is gone, and the watch shows how it was at last."""
    last = now(simulation, pod)
    simulation.cluster.erase(PODS, NAMESPACE, metadata(pod)["name"])
    simulation.operator.last_words.hear(KEY, last)


def run(simulation: Simulation) -> tuple[int, int]:
    return simulation.status["epoch"], simulation.status["attempt"]


def test_a_driver_that_ended_and_went_between_two_looks_leaves_its_directory() -> None:
    simulation = running()
    [driver] = simulation.pods("driver")

    simulation.world.end_driver(driver)
    go(simulation, driver)
    simulation.settle(lambda: simulation.is_running() and run(simulation) == (1, 2))


@pytest.mark.parametrize("restarted", [False, True])
def test_a_driver_that_was_deleted_by_force_keeps_its_directory(restarted: bool) -> None:
    simulation = running()
    [driver] = simulation.pods("driver")

    go(simulation, driver)
    if restarted:
        simulation.run_pass()
        simulation.restart()
    for _ in range(4):
        simulation.run_pass()
        simulation.world.step()
        simulation.world.now += timedelta(seconds=1)
    simulation.world.drivers.pop(metadata(driver)["uid"])
    simulation.settle(lambda: simulation.is_running() and run(simulation) == (2, 2))

    assert "LeftBehind" in simulation.events()


def test_an_operator_that_was_not_there_has_not_seen_the_end() -> None:
    simulation = running()
    [driver] = simulation.pods("driver")

    simulation.world.end_driver(driver)
    go(simulation, driver)
    simulation.restart()
    simulation.settle(lambda: simulation.is_running() and run(simulation) == (2, 2))


def test_pods_of_an_earlier_job_and_older_attempts_are_not_kept() -> None:
    simulation = running()
    [driver] = simulation.pods("driver")
    simulation.world.end_driver(driver)
    first = now(simulation, driver)
    words, uid = simulation.operator.last_words, metadata(simulation.job)["uid"]
    labels = {**metadata(first)["labels"], "sparkpoint.dev/attempt": "2"}
    second = {**first, "metadata": {**metadata(first), "labels": labels}}
    owner = {**metadata(first)["ownerReferences"][0], "uid": "another"}
    foreign = {**second, "metadata": {**metadata(second), "ownerReferences": [owner]}}

    for pod in (second, first, foreign):
        words.hear(KEY, pod)
    assert words.of(uid) == (second,)
    words.forget(uid)

    assert words.of(uid) == ()
