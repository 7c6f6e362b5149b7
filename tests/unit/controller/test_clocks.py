"""Clocks that differ: of the operator and the API server, of the nodes of drivers."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from sparkpoint.controller.agents import ask_agent
from sparkpoint.controller.clocks import OwnClock
from sparkpoint.controller.cluster import SAVEPOINTS
from sparkpoint.controller.podfacts import parse_time
from sparkpoint.controller.savepointfacts import take_stock
from tests.unit.controller.fakedrivers import FakeAgent, FakeDriver
from tests.unit.controller.simulation import KEY, NAME, NAMESPACE, SPEC, Simulation
from tests.unit.controller.test_savepoints import ask, phase

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
SKEWS = [timedelta(hours=-1), timedelta(hours=1)]
NEW_CODE = {"application": {"script": {"path": "/opt/job/better.py"}}}


def simulated(skew: timedelta) -> Simulation:
    """A job whose drivers are on nodes with another clock than the operator's."""
    simulation = Simulation(SPEC)
    simulation.world.skew = skew
    simulation.settle(simulation.is_running)
    return simulation


@pytest.mark.parametrize("skew", SKEWS)
def test_a_driver_that_commits_is_ready_whatever_its_clock_says(skew: timedelta) -> None:
    simulation = simulated(skew)

    simulation.run_pass()

    assert simulation.condition("Ready")["reason"] == "Committing"
    [query] = simulation.status["queries"]
    assert parse_time(query["lastCommitTime"]) == simulation.world.now


@pytest.mark.parametrize("skew", SKEWS)
def test_a_savepoint_belongs_to_its_job_and_is_not_of_the_future(skew: timedelta) -> None:
    simulation = simulated(skew)

    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)

    [savepoint] = simulation.cluster.all(SAVEPOINTS, NAMESPACE)
    done = parse_time(savepoint["status"]["completedAt"])
    assert done is not None
    assert done <= simulation.world.now
    assert simulation.status["lastSavepoint"]["name"] == savepoint["metadata"]["name"]
    assert simulation.condition("SavepointHealthy")["reason"] == "Taken"


def test_the_newest_savepoint_is_the_last_one_also_of_a_driver_whose_clock_is_behind() -> None:
    """The driver has come to a node with another clock: retention must not take the last one."""
    rules = {"last": 1, "overrides": {"manual": {"last": 1}}}
    simulation = Simulation({**SPEC, "savepoints": {**SPEC["savepoints"], "retention": rules}})
    simulation.settle(simulation.is_running)
    _take(simulation, "first")
    simulation.world.now += timedelta(minutes=5)
    simulation.world.skew = timedelta(hours=-1)

    _take(simulation, "second")
    for _ in range(5):
        simulation.run_pass()
        simulation.run_savepoints()
        simulation.world.now += timedelta(seconds=61)

    assert simulation.status["lastSavepoint"]["name"] == "second"
    kept = simulation.cluster.all(SAVEPOINTS, NAMESPACE)
    assert "second" in {
        body["metadata"]["name"]
        for body in kept
        if body["metadata"].get("deletionTimestamp") is None
    }


@pytest.mark.parametrize(
    ("made", "complete", "own"),
    [
        (0, -240, True),
        (1, -240, True),
        (0, 0, True),
        (-5, 3, True),
        (-5, 0, False),
        (-5, -3, False),
    ],
)
def test_what_was_asked_for_of_a_job_is_its_own_whatever_the_time(
    made: int, complete: int, own: bool
) -> None:
    """In seconds after the job was made; what is complete before it is an earlier job's."""
    savepoint = {
        "metadata": {"name": "a", "namespace": NAMESPACE, "creationTimestamp": _text(made)},
        "spec": {"jobRef": {"name": NAME}},
        "status": {"phase": "Completed", "completedAt": _text(complete)},
    }

    assert bool(take_stock(KEY, NOW, (savepoint,)).own) == own


def _text(seconds: int) -> str:
    return (NOW + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def _take(simulation: Simulation, name: str) -> None:
    ask(simulation, name)
    simulation.settle(lambda: phase(simulation, name) == "Completed")


def test_an_idle_query_looks_the_same_at_every_look() -> None:
    """However long the answer of an agent takes whose clock differs."""
    driver = FakeDriver(job=str(KEY), epoch=1, token="t", batch=4, phase="running")
    agent = FakeAgent(driver, "t", NOW, lambda verb, kind, name, do: do())

    def look(latency: float) -> datetime | None:
        clock = NOW + timedelta(seconds=5 + latency)
        asked = ask_agent(agent, job=str(KEY), epoch=1, stops=(), clock=lambda: clock)
        found = asyncio.run(asked)
        assert found is not None
        return found.progress.queries[0].last_commit

    assert look(0.008) == look(0.023)


@pytest.mark.parametrize("skew", SKEWS)
def test_downtime_is_that_of_one_clock(skew: timedelta) -> None:
    """The driver after the upgrade is on a node with the right time."""
    simulation = simulated(skew)
    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: (simulation.status.get("operation") or {}).get("phase") == "Launch")

    simulation.world.skew = timedelta(0)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)

    assert 0 <= simulation.status["lastOperation"]["downtimeSeconds"] < 300


def test_an_agent_that_does_not_tell_its_time_is_believed() -> None:
    """One of an older version."""
    driver = FakeDriver(job=str(KEY), epoch=1, token="t", batch=4, phase="running")
    agent = FakeAgent(driver, "t", NOW - timedelta(hours=1), lambda verb, kind, name, do: do())
    driver.tells_time = False

    asked = ask_agent(agent, job=str(KEY), epoch=1, stops=(), clock=lambda: NOW)

    found = asyncio.run(asked)
    assert found is not None
    assert found.progress.queries[0].last_commit == NOW - timedelta(hours=1)


@pytest.mark.parametrize(
    ("ahead", "words"),
    [(3600, "is 3600 s ahead of the API server's"), (-40, "is 40 s behind the API server's")],
)
def test_a_clock_that_differs_is_told_once_in_a_sentence(
    ahead: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = OwnClock(lambda: NOW + timedelta(seconds=ahead))

    for _ in range(3):
        clock.hear(format_datetime(NOW, usegmt=True), 0.1)

    [told] = clock.notes()
    assert words in told
    assert [record.getMessage() for record in caplog.records] == [told]


def test_a_clock_that_was_set_right_is_no_news_any_more() -> None:
    ahead = [60.0]
    clock = OwnClock(lambda: NOW + timedelta(seconds=ahead[0]))
    clock.hear(format_datetime(NOW, usegmt=True), 0.1)
    assert clock.notes()

    ahead[0] = 3.0
    clock.hear(format_datetime(NOW, usegmt=True), 0.1)

    assert not clock.notes()


@pytest.mark.parametrize("date", [None, "", "yesterday", "Tue, 99 Nov 2026 12:00:00 GMT"])
def test_what_is_no_time_says_nothing(date: str | None) -> None:
    clock = OwnClock(lambda: NOW)

    clock.hear(date, 0.1)

    assert not clock.notes()


@pytest.mark.parametrize(("ahead", "told"), [(29, []), (0, []), (-10, []), (60, [True])])
def test_an_answer_that_took_long_is_no_wrong_clock(ahead: int, told: list[bool]) -> None:
    clock = OwnClock(lambda: NOW + timedelta(seconds=ahead))

    clock.hear(format_datetime(NOW, usegmt=True), 29.0)

    assert ["31 s ahead" in note for note in clock.notes()] == told
