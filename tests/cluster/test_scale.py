"""Fifty jobs at once on a real API server, with pods that are played: `make bench-scale` in small.

What is counted here is counted, and not timed: requests, jobs, pods.
"""

import asyncio
import os
from collections.abc import Callable, Iterator

import pytest

from tests.scale.api import Api, ApiError, Object, connected
from tests.scale.ground import JOBS, NAMESPACE, Ground, Operated, job, scale_ground
from tests.scale.watching import Watched, create_all, runs, watched

_CLUSTER = f"{os.environ.get('TEST_CLUSTER', 'test')}-scale"
_JOBS = 50
_REQUESTS = 26
"""Of the operator for one start, with eleven that make something or write it down."""
_PATIENCE = 180.0
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    """A control plane of its own: no node has room for so many pods, nor could it run them."""
    with scale_ground(_CLUSTER) as made:
        yield made


@pytest.mark.timeout(400)
def test_many_jobs_start_with_few_requests_and_none_is_forgotten(ground: Ground) -> None:
    asyncio.run(_story(ground))


async def _story(ground: Ground) -> None:
    async with connected(ground.layout) as api, watched(api) as seen:
        with ground.operator() as operator:
            await create_all(api, JOBS, (job(number) for number in range(_JOBS)), at_once=8)
            await _until("all run", lambda: seen.count(runs) == _JOBS, operator, seen)
            requests = operator.requests()
        assert sum(requests.values()) / _JOBS < _REQUESTS, requests
        drivers = await _drivers(api)
        assert len(drivers) == _JOBS

        # While nobody looks, some are changed, one is deleted, and one loses its driver.
        changed = [f"visits-{number:04d}" for number in range(5)]
        for name in changed:
            await api.merge(f"{JOBS}/{name}", {"spec": {"args": ["--changed"]}})
        await api.delete(f"{JOBS}/visits-0010")
        await api.delete(f"{_PODS}/{drivers['visits-0011'][0]}")
        with ground.operator() as operator:
            await _until("one is gone", lambda: len(seen.jobs) == _JOBS - 1, operator, seen)
            await _until("all run", lambda: seen.count(runs) == _JOBS - 1, operator, seen)
            assert operator.observed() == _JOBS - 1
        await _check(api, seen, changed, drivers)


async def _check(
    api: Api, seen: Watched, changed: list[str], before: dict[str, tuple[str, str]]
) -> None:
    after = await _drivers(api)
    touched = {name for name in before if after.get(name) != before[name]}
    assert touched == {*changed, "visits-0010", "visits-0011"}
    kinds = {name: seen.jobs[name]["status"]["lastOperation"] for name in seen.jobs}
    assert {kinds[name]["kind"] for name in changed} == {"Upgrade"}
    assert kinds["visits-0011"]["kind"] == "Recover"
    assert {each["result"] for each in kinds.values()} == {"Succeeded"}
    for name in changed:
        # With the savepoint of its stop, which is known to be complete.
        taken = seen.jobs[name]["status"]["lastSavepoint"]["name"]
        path = f"{JOBS.replace('statefulsparkjobs', 'sparksavepoints')}/{taken}"
        assert (await api.get(path))["status"]["phase"] == "Completed"
    with pytest.raises(ApiError, match="404"):
        await api.get(f"{JOBS}/visits-0010")


async def _drivers(api: Api) -> dict[str, tuple[str, str]]:
    """Job -> name and uid of the driver that runs."""
    found, _ = await api.list(_PODS, "labelSelector=sparkpoint.dev/role=driver")
    running = [pod for pod in found if pod["status"].get("phase") == "Running"]
    return {_job(pod): (pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in running}


def _job(pod: Object) -> str:
    return str(pod["metadata"]["labels"]["sparkpoint.dev/job"])


async def _until(
    what: str, condition: Callable[[], bool], operator: Operated, seen: Watched
) -> None:
    try:
        async with asyncio.timeout(_PATIENCE):
            while not condition():
                assert operator.process.poll() is None, "the operator has ended"
                await seen.changed()
    except TimeoutError:
        odd = next((each.get("status") for each in seen.jobs.values() if not runs(each)), None)
        raise AssertionError(f"waited {_PATIENCE:.0f} s until {what}; one is so: {odd}") from None
