"""One number of jobs, from the first `kubectl apply` to an operator that starts anew."""

import asyncio
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dev.console import Problem, say
from tests.scale.api import Api, Object, connected
from tests.scale.ground import JOBS, Ground, Operated, job, kept_savepoint
from tests.scale.watching import Watched, create_all, runs, watched

__all__ = ["Cost", "Keeping", "measure_jobs_at_scale"]

_SAVEPOINTS: Final = JOBS.replace("statefulsparkjobs", "sparksavepoints")
_CREATING: Final = 8
"""Requests at once of whoever applies the jobs."""
_IDLE: Final = 90.0
"""Seconds: every job is looked at twice in them."""
_SETTLING: Final = 15.0
_ASKED: Final = 5.0
"""Seconds between two looks at all savepoints."""
_LOOKS: Final = 20.0
"""In a second: see controller/pace.py."""
_CHANGES: Final = 100
_BETWEEN: Final = 1.0
"""Seconds between two changes of a spec: each is an upgrade, which keeps the API server busy."""
_PATIENCE: Final = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What so many jobs cost the operator."""

    jobs: int
    empty_memory: float
    """MB of an operator that has nothing to do."""
    starts_per_minute: float
    start_processor: float
    """Seconds for one start."""
    start_requests: float
    start_writes: float
    memory: float
    """MB, when all of them run."""
    peak_memory: float
    idle_processor: float
    """Share of a core."""
    idle_requests: float
    """Requests to the API server per second."""
    changes_per_second: float
    reaction_median: float
    reaction_p99: float
    """Seconds from the PATCH to the operation that is written down."""
    observed: float
    """Seconds from the start of an operator to a look at each job."""
    restarted_memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """What savepoints cost that are only kept, beside these jobs."""

    jobs: int
    savepoints: int
    memory: float
    """MB without them, of an operator that has just started."""
    memory_with: float
    idle_processor: float
    """Share of a core with them."""
    job_pass: float
    """Seconds that a pass over a job takes on average without them, while nothing happens."""
    job_pass_with: float
    judged_after: float | None = None
    """Seconds from the start of an operator until each says why it is kept."""
    judging_processor: float | None = None
    """Seconds for one of them, with all else that the operator does meanwhile."""
    observed: float
    """Seconds from the start of an operator to a look at each job."""
    judged: float
    """Share of the savepoints whose status says why they are kept."""


def measure_jobs_at_scale(
    ground: Ground, jobs: int, *, savepoints: int = 0
) -> tuple[Cost, Keeping | None]:
    """All figures of an operator with this many jobs, on a cluster that has none."""
    return asyncio.run(_measure(ground, jobs, savepoints))


async def _measure(ground: Ground, jobs: int, savepoints: int) -> tuple[Cost, Keeping | None]:
    figures: dict[str, float] = {}
    core = _last_core()
    async with connected(ground.layout) as api, watched(api) as seen:
        with ground.operator(core=core) as operator:
            await _answers(operator)
            figures["empty_memory"] = operator.memory()[0]
            figures |= await _start(api, seen, operator, jobs)
            idle, job_pass = await _idle(operator, jobs)
            figures |= idle
            figures |= await _react(api, seen, jobs)
        with ground.operator(core=core) as operator:
            figures["observed"] = await _observed(operator, jobs)
            await asyncio.sleep(_SETTLING)
            figures["restarted_memory"] = operator.memory()[0]
            await _all_run(seen, jobs)
        cost = Cost(jobs=jobs, **figures)
        keeping = None
        if savepoints:
            await _add_savepoints(api, jobs, savepoints)
            with ground.operator(core=core) as operator:
                keeping = await _keep(api, operator, cost, savepoints, job_pass)
        broken = [name for name, body in seen.jobs.items() if not runs(body)]
        if broken:
            raise Problem(f"{len(broken)} jobs do not run: {broken[:3]}", remedy="mend that first.")
    return cost, keeping


async def _keep(
    api: Api, operator: Operated, cost: Cost, savepoints: int, job_pass: float
) -> Keeping:
    """An operator that finds them: what it takes to judge them all, and then to do nothing."""
    begun = time.monotonic()
    observed = await _observed(operator, cost.jobs)
    judged = await _all_judged(api)
    after, spent = time.monotonic() - begun, operator.processor()
    say(f"    {judged:.0%} judged after {after:.0f} s; processor {spent:.0f} s")
    idle, job_pass_with = await _idle(operator, cost.jobs)
    return Keeping(
        jobs=cost.jobs,
        savepoints=savepoints,
        memory=cost.restarted_memory,
        memory_with=idle["memory"],
        idle_processor=idle["idle_processor"],
        job_pass=job_pass,
        job_pass_with=job_pass_with,
        judged_after=after,
        judging_processor=spent / savepoints,
        observed=observed,
        judged=judged,
    )


def _passes(operator: Operated) -> tuple[float, float]:
    """Over jobs so far: how many, and how many seconds they took together."""
    found, name = operator.metrics(), "sparkpoint_operator_pass_duration_seconds"
    return found[f"{name}_count", ("job",)], found[f"{name}_sum", ("job",)]


async def _all_judged(api: Api) -> float:
    """The share of them that is told of when all are, or when it takes too long."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        share = await _judged(api)
        if share == 1 or time.monotonic() > deadline:
            return share
        await asyncio.sleep(_ASKED)


async def _judged(api: Api) -> float:
    found, _ = await api.list(_SAVEPOINTS)
    return sum(1 for each in found if each["status"].get("keptBecause")) / len(found)


def _last_core() -> int | None:
    known = sorted(os.sched_getaffinity(0))
    return known[-1] if len(known) > 1 else None


async def _answers(operator: Operated) -> None:
    for _ in range(120):
        try:
            await asyncio.to_thread(operator.metrics)
        except OSError:
            await asyncio.sleep(0.25)
        else:
            # kopf's watches follow a moment later.
            await asyncio.sleep(2)
            return
    raise Problem("The operator does not answer.", remedy="look at its log.")


async def _start(api: Api, seen: Watched, operator: Operated, jobs: int) -> dict[str, float]:
    before, spent, begun = operator.requests(), operator.processor(), time.monotonic()
    await create_all(api, JOBS, (job(number) for number in range(jobs)), at_once=_CREATING)
    say(f"    {jobs} jobs applied after {time.monotonic() - begun:.0f} s")
    await _all_run(seen, jobs)
    seconds, after = time.monotonic() - begun, operator.requests()
    spent = operator.processor() - spent
    made = {name: after[name] - before.get(name, 0) for name in after}
    writes = sum(n for name, n in made.items() if name.split()[0] not in ("get", "list"))
    say(f"    {jobs} run after {seconds:.0f} s; processor {spent:.0f} s")
    for (name, labels), value in operator.metrics().items():
        if "passes_total" in name:
            say(f"      {name} {labels}: {value / jobs:.1f} per start")
    for name, number in sorted(made.items(), key=lambda each: -each[1]):
        say(f"      {name}: {number / jobs:.1f} per start")
    return {
        "starts_per_minute": 60 * jobs / seconds,
        "start_processor": spent / jobs,
        "start_requests": sum(made.values()) / jobs,
        "start_writes": writes / jobs,
    }


async def _all_run(seen: Watched, jobs: int) -> None:
    deadline, told = time.monotonic() + _PATIENCE, 0.0
    while (running := seen.count(runs)) < jobs:
        if time.monotonic() > deadline:
            raise Problem(
                f"{running} of {jobs} jobs run after {_PATIENCE:.0f} s: {_example(seen)}",
                remedy="look at the operator's log.",
            )
        if time.monotonic() - told > 30:
            told = time.monotonic()
            say(f"    {running} of {jobs} run")
        await asyncio.sleep(0.2)


def _example(seen: Watched) -> str:
    return next(
        (str(body.get("status"))[:2000] for body in seen.jobs.values() if not runs(body)), ""
    )


async def _idle(operator: Operated, jobs: int) -> tuple[dict[str, float], float]:
    """What it costs that nothing happens, and the seconds of a pass over a job meanwhile."""
    # What a start leaves is swept at the next look at each job.
    await asyncio.sleep(max(_SETTLING, jobs / _LOOKS))
    before, passes = operator.requests(), _passes(operator)
    spent, begun = operator.processor(), time.monotonic()
    await asyncio.sleep(_IDLE)
    seconds, after = time.monotonic() - begun, operator.requests()
    share = (operator.processor() - spent) / seconds
    number, took = _passes(operator)
    now, most = operator.memory()
    job_pass = (took - passes[1]) / (number - passes[0])
    say(f"    idle: {share:.1%} of a core, {now:.0f} MB, {job_pass * 1000:.1f} ms a pass")
    figures = {
        "memory": now,
        "peak_memory": most,
        "idle_processor": share,
        "idle_requests": (sum(after.values()) - sum(before.values())) / seconds,
    }
    return figures, job_pass


async def _react(api: Api, seen: Watched, jobs: int) -> dict[str, float]:
    names = [f"visits-{number:04d}" for number in range(jobs)]
    chosen = random.Random(jobs).choices(names, k=min(_CHANGES, 2 * jobs))
    times: list[float] = []

    async def change(name: str, number: int) -> None:
        body = await api.merge(f"{JOBS}/{name}", {"spec": {"args": [f"--change={number}"]}})
        wanted = body["metadata"]["generation"]
        begun = time.monotonic()
        times.append(await seen.when(name, _knows(wanted), _PATIENCE) - begun)

    async with asyncio.TaskGroup() as tasks:
        for number, name in enumerate(dict.fromkeys(chosen)):
            tasks.create_task(change(name, number))
            await asyncio.sleep(_BETWEEN)
    ranked = sorted(times)
    p99 = ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))]
    say(f"    reaction: median {statistics.median(ranked):.2f} s, p99 {p99:.2f} s of {len(ranked)}")
    return {
        "changes_per_second": 1 / _BETWEEN,
        "reaction_median": statistics.median(ranked),
        "reaction_p99": p99,
    }


def _knows(generation: int) -> Callable[[Object], bool]:
    """The operation that the spec leads to is written down together with its generation."""
    return lambda body: (body.get("status") or {}).get("observedGeneration", 0) >= generation


async def _observed(operator: Operated, jobs: int) -> float:
    begun = time.monotonic()
    while time.monotonic() - begun < _PATIENCE:
        try:
            found = await asyncio.to_thread(operator.observed)
        except OSError:
            found = 0
        if found >= jobs:
            seconds = time.monotonic() - begun
            say(f"    all observed after {seconds:.1f} s")
            return seconds
        await asyncio.sleep(0.25)
    raise Problem(f"Only {found} of {jobs} jobs were looked at.", remedy="look at its log.")


async def _add_savepoints(api: Api, jobs: int, savepoints: int) -> None:
    begun = time.monotonic()
    await create_all(api, _SAVEPOINTS, _savepoints(jobs, savepoints), at_once=_CREATING)
    rest = iter(list(_savepoints(jobs, savepoints)))

    async def some() -> None:
        for body in rest:
            path = f"{_SAVEPOINTS}/{body['metadata']['name']}"
            await api.merge(f"{path}/status", {"status": body["status"]})

    async with asyncio.TaskGroup() as tasks:
        for _ in range(_CREATING):
            tasks.create_task(some())
    say(f"    {savepoints} savepoints made in {time.monotonic() - begun:.0f} s")


def _savepoints(jobs: int, savepoints: int) -> Iterator[dict[str, Any]]:
    """So many of each job, one after another."""
    now = datetime.now(UTC).replace(microsecond=0)
    for number in range(savepoints):
        of, turn = number % jobs, number // jobs
        taken = now + timedelta(seconds=turn)
        yield kept_savepoint(f"visits-{of:04d}", turn, identity=f"{number:064x}", taken=taken)
