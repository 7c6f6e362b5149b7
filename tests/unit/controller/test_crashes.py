"""The operator dies at the calls that it makes, before and after the effect; another takes over.

Whatever the moment: the same end, the same savepoints, nothing told twice, and never two drivers
that write into one directory (the simulation checks that at every step).
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

from sparkpoint.controller.cluster import JOBS, PODS, SAVEPOINTS, metadata
from tests.unit.controller.simulation import NAME, NAMESPACE, SPEC, Simulation, is_released
from tests.unit.controller.test_adoption import CAPTURED
from tests.unit.controller.test_repartition import FITS, FOUR, Workers, has_moved
from tests.unit.controller.test_savepoints import SUMMARY, ask

NEW_CODE = {"application": {"script": {"path": "/opt/job/better.py"}}}
Story = Callable[[Simulation], None]
_SHARE = 4
"""Deaths per story and moment in an ordinary run; `make soak` dies everywhere."""


def start(simulation: Simulation) -> None:
    simulation.settle(simulation.is_running)


def adopt(simulation: Simulation) -> None:
    simulation.world.answers = lambda pod: CAPTURED
    start(simulation)


def upgrade(simulation: Simulation) -> None:
    start(simulation)
    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)


def hasty_upgrade(simulation: Simulation) -> None:
    start(simulation)
    for driver in simulation.world.drivers.values():
        driver.hasty = True
    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)


def roll_back(simulation: Simulation) -> None:
    start(simulation)
    simulation.world.broken = lambda pod: "better.py" in str(pod["spec"]["containers"][0]["args"])
    simulation.edit(**NEW_CODE)
    simulation.settle(
        lambda: simulation.is_running() and simulation.status["epoch"] == 3, passes=400
    )


def repartition(simulation: Simulation) -> None:
    simulation.world.answers = Workers(FITS)
    start(simulation)
    simulation.edit(state={"partitions": 8})
    simulation.settle(lambda: has_moved(simulation))


def suspend_and_resume(simulation: Simulation) -> None:
    start(simulation)
    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status.get("phase") == "Suspended")
    simulation.edit(suspend=False)
    simulation.settle(simulation.is_running)


def delete(simulation: Simulation) -> None:
    start(simulation)
    simulation.cluster.remove(JOBS, NAMESPACE, NAME)
    simulation.settle(lambda: is_released(simulation))


def live_savepoint(simulation: Simulation) -> None:
    start(simulation)
    ask(simulation)
    simulation.settle(lambda: simulation.status.get("lastSavepoint", {}).get("name") == "mine")


def still_savepoint(simulation: Simulation) -> None:
    """By a worker, then checked, and deleted with its data."""
    answers = {"capture": {"answer": "Captured", "savepoint": SUMMARY}}
    simulation.world.answers = lambda pod: answers.get(
        pod["spec"]["containers"][0]["args"][3], {"answer": "Verified"}
    )
    start(simulation)
    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")
    ask(simulation, verify="Content", onDelete="Delete")
    simulation.settle(lambda: "verified" in simulation.savepoint("mine").get("status", {}))
    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "mine")
    simulation.settle(lambda: simulation.cluster.find(SAVEPOINTS, NAMESPACE, "mine") is None)


STORIES: dict[str, tuple[Story, dict[str, Any]]] = {
    "start": (start, {}),
    "adopt": (
        adopt,
        {"checkpoint": {"location": "s3://data/checkpoints", "adopt": "s3://old/visits"}},
    ),
    "upgrade": (upgrade, {}),
    "hasty upgrade": (hasty_upgrade, {}),
    "roll back": (roll_back, {}),
    "repartition": (repartition, {"state": FOUR["state"]}),
    "suspend and resume": (suspend_and_resume, {}),
    "live savepoint": (live_savepoint, {}),
    "still savepoint": (still_savepoint, {}),
    "delete": (
        delete,
        {
            "checkpoint": {"location": "s3://data/checkpoints", "onDelete": "Delete"},
            "savepoints": {"repository": "s3://data/savepoints", "finalOnDelete": True},
        },
    ),
}


def tell(name: str, crash: tuple[int, bool] | None) -> Simulation:
    story, changes = STORIES[name]
    simulation = Simulation({**SPEC, **changes})
    simulation.cluster.crash = crash
    story(simulation)
    return simulation


def ending(simulation: Simulation) -> dict[str, Any]:
    """What must not depend on when the operator died."""
    status = simulation.status
    return {
        "phase": status["phase"],
        "run": {key: status["record"]["run"][key] for key in ("epoch", "attempt", "origin")},
        "revisions": status["revisions"],
        "sequence": status["record"]["sequence"],
        "last": {key: status["lastOperation"][key] for key in ("id", "kind", "result")},
        "savepoints": {
            metadata(body)["name"]: body["status"]["phase"]
            for body in simulation.cluster.all(SAVEPOINTS, NAMESPACE)
        },
        "alive": sorted(
            metadata(pod)["name"]
            for pod in simulation.cluster.all(PODS, NAMESPACE)
            if pod["status"]["phase"] == "Running"
        ),
        "events": simulation.events(),
    }


def effects_of(undisturbed: Simulation) -> list[int]:
    """Numbers of calls that change something: to die at a read is to die after the one before."""
    calls, writes = undisturbed.cluster.calls, undisturbed.cluster.writes
    return [number for number, call in enumerate(calls) if call in writes]


def check(name: str, after: bool, choose: Callable[[list[int]], list[int]]) -> None:
    undisturbed = tell(name, None)
    expected, effects = ending(undisturbed), effects_of(undisturbed)
    assert len(effects) > _SHARE

    for number in choose(effects):
        disturbed = tell(name, (number, after))

        assert disturbed.crashes == 1, number
        assert ending(disturbed) == expected, f"died at call {number}"


MOMENTS = pytest.mark.parametrize("after", [False, True], ids=["before it", "after it"])
NAMES = pytest.mark.parametrize("name", STORIES)


@NAMES
def test_the_end_does_not_depend_on_where_the_operator_died(name: str) -> None:
    chance = random.Random(name)
    after = chance.random() < 0.5

    check(name, after, lambda effects: sorted(chance.sample(effects, _SHARE)))


@pytest.mark.soak
@MOMENTS
@NAMES
def test_the_end_does_not_depend_on_any_death_of_the_operator(name: str, after: bool) -> None:
    check(name, after, lambda effects: effects)
