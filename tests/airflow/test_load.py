"""Many jobs in one run of the DAG of savepoints: bounded, and what it costs an Airflow.

The figures of `docs/airflow.md`: `pytest tests/airflow/test_load.py -m soak -s`.
"""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airflow.conftest import Ground, write_kubeconfig
from tests.airflow.home import ROOT
from tests.airflow.operating import PlayedOperator
from tests.airflow.stack import Load, Stack
from tests.unit.airflow.world import job
from tests.unit.cli.jobs.apiserver import served

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

_DAG = "sparkpoint_savepoints"
_JOBS, _SLOTS = 200, 16
_SAVEPOINT = 3.0
"""Seconds that each takes: Airflow may fail a task that is resumed so soon after it is deferred."""


@pytest.fixture
def world() -> Iterator[Ground]:
    with served() as (api, address):
        write_kubeconfig(address, api.token)
        # As real ones do.
        api.page = 500
        yield Ground(api, PlayedOperator(api))


@pytest.fixture
def stack(world: Ground, database: Path, tmp_path: Path) -> Iterator[Stack]:
    made = Stack(tmp_path, ROOT / "dags", {"SPARKPOINT_SAVEPOINTS_SCHEDULE": "0 0 29 2 *"})
    try:
        made.up(database)
        made.pool(_SLOTS)
        made.known(_DAG)
        yield made
    finally:
        made.down()


def test_two_hundred_jobs_have_a_savepoint_each_and_no_more_than_the_pool_at_once(
    world: Ground, stack: Stack
) -> None:
    names = [f"job-{number:03}" for number in range(_JOBS)]
    for name in names:
        world.api.put(job(name))
    world.operator.delay = _SAVEPOINT
    before, began, peaks = stack.load(), time.monotonic(), Counter[str]()

    run = stack.run(_DAG)
    deadline = began + 1500
    while (state := stack.state(_DAG, run)) in ("queued", "running"):
        assert time.monotonic() < deadline, state
        for name, load in stack.load().items():
            peaks[name] = max(peaks[name], load.memory)
        time.sleep(5)

    took, after = time.monotonic() - began, stack.load()
    assert state == "success"
    assert {name: len(world.savepoints(name)) for name in names} == dict.fromkeys(names, 1)
    taken = [each for each in stack.tasks(_DAG, run) if each["task_id"] == "job.take"]
    assert [(each["state"], each["try_number"]) for each in taken] == [("success", 1)] * _JOBS
    assert world.operator.most_at_once <= _SLOTS
    _tell(world, took, before, after, peaks)


def _tell(
    world: Ground,
    took: float,
    before: dict[str, Load],
    after: dict[str, Load],
    peaks: Counter[str],
) -> None:
    print(f"\n{_JOBS} jobs, pool of {_SLOTS}, {_SAVEPOINT:.0f} s each: {took:.0f} s")
    print(f"at once: {world.operator.most_at_once}")
    for name in after:
        seconds = after[name].seconds - before[name].seconds
        print(f"{name}: {seconds:.0f} s of a processor, {peaks[name] / 2**20:.0f} MiB at most")
    print("requests:", dict(Counter(_verb(method, path) for method, path, _ in world.api.asked)))


def _verb(method: str, path: str) -> str:
    if method != "GET":
        return method
    if "watch=" in path:
        return "WATCH"
    return "LIST" if "limit=" in path else "GET"
