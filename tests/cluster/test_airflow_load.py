"""Many jobs in one run of the DAG of savepoints: bounded, and what it costs an Airflow.

A real API server, the operator and a whole Airflow; pods are played, and so are the agents in
them. The figures of `docs/airflow.md`: `pytest tests/cluster/test_airflow_load.py -m soak -s`
prints them as they are written there.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import pytest

from tests.airflow.stack import Load, Stack
from tests.cluster.airflow import SAVEPOINTS, airflow_for
from tests.cluster.namespace import Namespace
from tests.scale.api import Api, Object, connected
from tests.scale.ground import JOBS, NAMESPACE, Ground, Operated, job, scale_ground
from tests.scale.watching import create_all, meanwhile, runs, watched

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(4500)]

_JOBS, _SLOTS = 200, 16
_SAVEPOINT = 3.0
"""Seconds that each takes: Airflow may fail a task that is resumed so soon after it is deferred."""
_REST = 60
"""Seconds of an Airflow that has nothing to do, to compare with."""
_STARTING = 600.0
_LONGEST = 3000


@pytest.fixture
def ground() -> Iterator[Ground]:
    with scale_ground("test-load", taking=_SAVEPOINT) as made:
        yield made


@pytest.fixture
def stack(ground: Ground, tmp_path: Path) -> Iterator[Stack]:
    namespace = Namespace(ground.cluster, NAMESPACE)
    by_hand = {
        "SPARKPOINT_SAVEPOINTS_SCHEDULE": "0 0 29 2 *",
        "SPARKPOINT_SAVEPOINTS_EVERY": "6h",
    }
    made = airflow_for(ground.cluster, namespace, tmp_path, **by_hand)
    try:
        made.up()
        made.pool(_SLOTS)
        made.known(SAVEPOINTS)
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


@dataclass(frozen=True, slots=True)
class Run:
    """What came of it."""

    state: str
    seconds: float
    tasks: list[dict[str, Any]]
    costs: dict[str, Cost]


class UnderWay:
    """The savepoints of all jobs, as somebody sees them who watches."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        """Job -> its savepoints."""
        self.most = 0
        self._open: set[str] = set()

    async def follow(self, api: Api) -> None:
        """Until it is cancelled."""
        path = JOBS.replace("statefulsparkjobs", "sparksavepoints")
        async for kind, body in api.follow(path):
            self._learn(kind, body)

    def _learn(self, kind: str, body: Object) -> None:
        name = body["metadata"]["name"]
        if kind == "ADDED":
            self.made[body["spec"]["jobRef"]["name"]] += 1
        if kind == "DELETED" or (body.get("status") or {}).get("phase") == "Completed":
            self._open.discard(name)
        else:
            self._open.add(name)
        self.most = max(self.most, len(self._open))


def test_two_hundred_jobs_have_a_savepoint_each_and_no_more_than_the_pool_at_once(
    ground: Ground, stack: Stack
) -> None:
    with ground.operator() as operator:
        run, taken = asyncio.run(_measure(ground, stack, operator))
    assert run.state == "success", Counter(f"{t['task_id']} {t['state']}" for t in run.tasks)
    assert taken.made == {f"visits-{number:04d}": 1 for number in range(_JOBS)}
    tries = [(t["state"], t["try_number"]) for t in run.tasks if t["task_id"] == "job.take"]
    assert tries == [("success", 1)] * _JOBS
    assert taken.most <= _SLOTS


async def _measure(ground: Ground, stack: Stack, operator: Operated) -> tuple[Run, UnderWay]:
    async with connected(ground.layout) as api:
        await _begin(api)
        taken = UnderWay()
        async with meanwhile(taken.follow(api)):
            before = operator.processor()
            run = await asyncio.to_thread(_run, stack)
            spent = operator.processor() - before
    _tell(run, taken, spent)
    return run, taken


async def _begin(api: Api) -> None:
    """Until all jobs run."""
    bodies = (job(number) for number in range(_JOBS))
    async with watched(api) as seen, asyncio.timeout(_STARTING):
        await create_all(api, JOBS, bodies, at_once=4)
        while seen.count(runs) < _JOBS:
            await seen.changed()


def _run(stack: Stack) -> Run:
    idle = stack.load()
    time.sleep(_REST)
    before, began, peaks = stack.load(), time.monotonic(), Counter[str]()
    run = stack.run(SAVEPOINTS)

    def over() -> str:
        for name, load in stack.load().items():
            peaks[name] = max(peaks[name], load.memory)
        state = stack.state(SAVEPOINTS, run)
        return state if state in ("success", "failed") else ""

    state = stack.until(over, lambda: "the run has not ended", seconds=_LONGEST, pause=5)
    took, after = time.monotonic() - began, stack.load()
    return Run(state, took, stack.tasks(SAVEPOINTS, run), _costs(idle, before, after, peaks))


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


def _tell(run: Run, taken: UnderWay, spent: float) -> None:
    """In the words of the manual."""
    print(
        f"\n\n{_JOBS} jobs in one run, a pool of {_SLOTS}, {_SAVEPOINT:.0f} s for each savepoint:"
    )
    print("\n| | |\n|---|---|")
    print(f"| the run | {run.seconds:.0f} s |")
    print(f"| savepoints under way at once, at most | {taken.most} |")
    for task in ("job.take", "job.publish"):
        queued = _waits(each for each in run.tasks if each["task_id"] == task)
        if len(queued) > 1:
            late = quantiles(queued, n=20)[-1]
            told = f"{median(queued):.1f} s, {late:.1f} s"
            print(f"| `{task}` from queued to running: median, 95 % | {told} |")
    whole = sum(cost.busy for cost in run.costs.values())
    print(f"| seconds of a processor for each savepoint, all of Airflow | {whole / _JOBS:.1f} |")
    print(f"| the operator, with all else that it does | {spent / _JOBS:.2f} |")
    print("\n| | at rest, s of a processor per minute | the run, s of a processor | MiB at most |")
    print("|---|---|---|---|")
    for name, cost in run.costs.items():
        print(f"| {name} | {cost.at_rest:.1f} | {cost.busy:.0f} | {cost.peak / 2**20:.0f} |")


def _waits(tasks: Iterable[dict[str, Any]]) -> list[float]:
    """Seconds from queued to running."""
    times = [(each["queued_when"], each["start_date"]) for each in tasks]
    return [
        (datetime.fromisoformat(began) - datetime.fromisoformat(queued)).total_seconds()
        for queued, began in times
        if queued and began
    ]
