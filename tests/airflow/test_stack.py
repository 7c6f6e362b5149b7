"""The DAG of savepoints in a whole Airflow: deferral, kills, clears, the pool, events of assets."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.conftest import ROOT, Ground, write_kubeconfig
from tests.airflow.operating import PlayedOperator
from tests.airflow.stack import Stack
from tests.unit.airflow.world import job
from tests.unit.cli.jobs.apiserver import served

pytestmark = pytest.mark.timeout(900)

_DAG = "sparkpoint_savepoints"


@pytest.fixture(scope="module")
def world() -> Iterator[Ground]:
    with served() as (api, address):
        write_kubeconfig(address, api.token)
        yield Ground(api, PlayedOperator(api))


@pytest.fixture(scope="module")
def stack(world: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    home: Path = tmp_path_factory.mktemp("airflow")
    # Ticks would come in between.
    settings = {"SPARKPOINT_POOL": "sparkpoint", "SPARKPOINT_SAVEPOINTS_SCHEDULE": "0 0 29 2 *"}
    made = Stack(home, ROOT / "dags", settings)
    try:
        made.up()
        pool = {"name": "sparkpoint", "slots": 2, "include_deferred": True}
        made.ask("POST", "/api/v2/pools", pool)
        made.known(_DAG)
        yield made
    finally:
        made.down()


def _taken(tasks: list[dict[str, Any]]) -> dict[str, str]:
    return {
        each["rendered_map_index"]: each["state"] for each in tasks if each["task_id"] == "job.take"
    }


def test_one_savepoint_per_job_whatever_happens(world: Ground, stack: Stack) -> None:
    names = ("a", "b", "broken", "shaky")
    for name in names:
        world.api.put(job(name))
    world.operator.failing = {"broken": 99, "shaky": 1}
    world.operator.delay = 8.0

    run = stack.run(_DAG)
    # No worker is held while the first two are waited for, and the pool lets no others in.
    stack.until(
        lambda: list(_taken(stack.tasks(_DAG, run)).values()).count("deferred") == 2, "not deferred"
    )
    stack.kill("triggerer")
    stack.start("triggerer")
    state = stack.ended(_DAG, run)

    assert state == "failed"
    tasks = stack.tasks(_DAG, run)
    assert _taken(tasks) == {"a": "success", "b": "success", "broken": "failed", "shaky": "success"}
    made = {name: [b["status"]["phase"] for b in world.savepoints(name)] for name in names}
    assert made == {
        "a": ["Completed"],
        "b": ["Completed"],
        "broken": ["Failed"] * 4,
        "shaky": ["Failed", "Completed"],
    }
    assert world.operator.most_at_once == 2
    events = stack.ask("GET", "/api/v2/assets/events")["asset_events"]
    told = {each["extra"]["job"]: each["extra"]["savepoint"] for each in events}
    complete = {
        name: body["metadata"]["name"]
        for name in ("a", "b", "shaky")
        for body in world.savepoints(name)
        if body["status"]["phase"] == "Completed"
    }
    assert told == complete


def test_clearing_a_finished_run_makes_no_second_savepoint(world: Ground, stack: Stack) -> None:
    world.api.put(job("cleared"))
    world.operator.failing, world.operator.delay = {}, 1.0
    run = stack.run(_DAG, jobs=["cleared"])
    assert stack.ended(_DAG, run) == "success"

    stack.clear(_DAG, run, "job.take")
    assert stack.ended(_DAG, run) == "success"

    assert len(world.savepoints("cleared")) == 1
    taken = [each for each in stack.tasks(_DAG, run) if each["task_id"] == "job.take"]
    assert [each["try_number"] for each in taken] == [2]


def test_an_operator_that_is_down_is_waited_for(world: Ground, stack: Stack) -> None:
    world.api.put(job("patient"))
    world.operator.down, world.operator.delay = True, 0.5

    run = stack.run(_DAG, jobs=["patient"])
    stack.until(lambda: "deferred" in _taken(stack.tasks(_DAG, run)).values(), "not deferred")
    world.api.dropped += 1
    time.sleep(3)
    world.operator.wake()

    assert stack.ended(_DAG, run) == "success"
    assert len(world.savepoints("patient")) == 1
