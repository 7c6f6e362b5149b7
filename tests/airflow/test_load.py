"""Many jobs in one run of the DAG of savepoints: bounded, and what it costs an Airflow.

The figures of `docs/airflow.md`: `pytest tests/airflow/test_load.py -m soak -s` prints them as they
are written there.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import pytest

from tests.airflow.conftest import Ground, write_kubeconfig
from tests.airflow.home import ROOT
from tests.airflow.operating import PlayedOperator
from tests.airflow.stack import Load, Stack
from tests.unit.airflow.world import job
from tests.unit.cli.jobs.apiserver import served

pytestmark = [pytest.mark.soak, pytest.mark.timeout(2400)]

_DAG = "sparkpoint_savepoints"
_JOBS, _SLOTS = 200, 16
_SAVEPOINT = 3.0
"""Seconds that each takes: Airflow may fail a task that is resumed so soon after it is deferred."""
_REST = 60
"""Seconds of an Airflow that has nothing to do, to compare with."""
_LONGEST = 1800


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


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one component of Airflow."""

    at_rest: float
    """Seconds of a processor in a minute."""
    busy: float
    """Seconds of a processor during the run."""
    peak: int
    """Bytes."""


def test_two_hundred_jobs_have_a_savepoint_each_and_no_more_than_the_pool_at_once(
    world: Ground, stack: Stack
) -> None:
    names = [f"job-{number:03}" for number in range(_JOBS)]
    for name in names:
        world.api.put(job(name))
    world.operator.delay = _SAVEPOINT
    idle = stack.load()
    time.sleep(_REST)
    before, began, peaks = stack.load(), time.monotonic(), Counter[str]()

    run = stack.run(_DAG)

    def over() -> str:
        for name, load in stack.load().items():
            peaks[name] = max(peaks[name], load.memory)
        state = stack.state(_DAG, run)
        return state if state in ("success", "failed") else ""

    state = stack.until(over, lambda: _states(stack, run), seconds=_LONGEST, pause=5)
    took, after = time.monotonic() - began, stack.load()
    tasks = stack.tasks(_DAG, run)
    _tell(world, took, tasks, _costs(idle, before, after, peaks))
    assert state == "success", _states(stack, run)
    assert {name: len(world.savepoints(name)) for name in names} == dict.fromkeys(names, 1)
    taken = [each for each in tasks if each["task_id"] == "job.take"]
    assert [(each["state"], each["try_number"]) for each in taken] == [("success", 1)] * _JOBS
    assert world.operator.most_at_once <= _SLOTS


def _states(stack: Stack, run: str) -> str:
    """Of all tasks, for whoever has to find out why it did not end well."""
    found = Counter(f"{each['task_id']} {each['state']}" for each in stack.tasks(_DAG, run))
    return f"the run has not ended well: {dict(found)}"


def _costs(
    idle: dict[str, Load], before: dict[str, Load], after: dict[str, Load], peaks: Counter[str]
) -> dict[str, Cost]:
    return {
        name: Cost(
            at_rest=before[name].seconds - idle[name].seconds,
            busy=after[name].seconds - before[name].seconds,
            peak=peaks[name],
        )
        for name in after
    }


def _tell(world: Ground, took: float, tasks: list[dict[str, Any]], costs: dict[str, Cost]) -> None:
    """In the words of the manual."""
    print(
        f"\n\n{_JOBS} jobs in one run, a pool of {_SLOTS}, {_SAVEPOINT:.0f} s for each savepoint:"
    )
    print("\n| | |\n|---|---|")
    print(f"| the run | {took:.0f} s |")
    print(f"| savepoints under way at once, at most | {world.operator.most_at_once} |")
    for task in ("job.take", "job.publish"):
        queued = _waits(each for each in tasks if each["task_id"] == task)
        if len(queued) > 1:
            late = quantiles(queued, n=20)[-1]
            told = f"{median(queued):.1f} s, {late:.1f} s"
            print(f"| `{task}` from queued to running: median, 95 % | {told} |")
    verbs = Counter(_verb(method, path) for method, path, _ in world.api.asked)
    each = ", ".join(f"{number / _JOBS:.1f} {verb}" for verb, number in verbs.most_common())
    print(f"| requests to the API server for each savepoint | {each} |")
    whole = sum(cost.busy for cost in costs.values())
    print(f"| seconds of a processor for each savepoint, all of Airflow | {whole / _JOBS:.1f} |")
    print("\n| | at rest, s of a processor per minute | the run, s of a processor | MiB at most |")
    print("|---|---|---|---|")
    for name, cost in costs.items():
        print(f"| {name} | {cost.at_rest:.1f} | {cost.busy:.0f} | {cost.peak / 2**20:.0f} |")


def _waits(tasks: Iterable[dict[str, Any]]) -> list[float]:
    """Seconds from queued to running."""
    times = [(each["queued_when"], each["start_date"]) for each in tasks]
    return [
        (datetime.fromisoformat(began) - datetime.fromisoformat(queued)).total_seconds()
        for queued, began in times
        if queued and began
    ]


def _verb(method: str, path: str) -> str:
    if method != "GET":
        return method
    if "watch=" in path:
        return "WATCH"
    return "LIST" if "limit=" in path else "GET"
