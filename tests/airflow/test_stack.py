"""The DAG of savepoints in a whole Airflow: deferral, kills, clears, the pool, events of assets."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.airflow.conftest import Ground, aged, write_kubeconfig
from tests.airflow.home import ROOT
from tests.airflow.operating import PlayedOperator
from tests.airflow.stack import Stack
from tests.unit.airflow.world import job
from tests.unit.cli.jobs.apiserver import served

pytestmark = pytest.mark.timeout(900)

_DAG, _CLEANUP = "sparkpoint_savepoints", "sparkpoint_cleanup"
_SLOTS = 2


@pytest.fixture(scope="module")
def world() -> Iterator[Ground]:
    with served() as (api, address):
        write_kubeconfig(address, api.token)
        yield Ground(api, PlayedOperator(api))


@pytest.fixture(scope="module")
def stack(world: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    home: Path = tmp_path_factory.mktemp("airflow")
    # Ticks would come in between.
    clocks = {f"SPARKPOINT_{name}_SCHEDULE": "0 0 29 2 *" for name in ("SAVEPOINTS", "CLEANUP")}
    bell = {
        "PYTHONPATH": str(ROOT),
        "SPARKPOINT_NOTIFIER": "tests.airflow.bell.Bell",
        "SPARKPOINT_NOTIFIER_ARGUMENTS": json.dumps({"path": str(home / "bell")}),
    }
    made = Stack(home, ROOT / "dags", {"SPARKPOINT_POOL": "sparkpoint", **clocks, **bell})
    try:
        made.up()
        pool = {"name": "sparkpoint", "slots": _SLOTS, "include_deferred": True}
        made.ask("POST", "/api/v2/pools", pool)
        for dag in (_DAG, _CLEANUP):
            made.known(dag)
        yield made
    finally:
        made.down()


def _taking(stack: Stack, run: str) -> list[dict[str, Any]]:
    return [each for each in stack.tasks(_DAG, run) if each["task_id"] == "job.take"]


def _taken(stack: Stack, run: str) -> dict[str, str]:
    return {each["rendered_map_index"]: each["state"] for each in _taking(stack, run)}


def _watched(world: Ground) -> set[str]:
    """Names of what was watched."""
    paths = [unquote(path) for _, path, _ in world.api.asked if "watch=" in path]
    return {path.partition("metadata.name=")[2].partition("&")[0] for path in paths}


def _await_deferred(stack: Stack, run: str, count: int) -> None:
    def states() -> list[str]:
        return [each["state"] for each in _taking(stack, run)]

    stack.until(
        lambda: states().count("deferred") == count,
        lambda: f"not {count} tasks are deferred: {states()}",
    )


def test_one_savepoint_per_job_whatever_happens(world: Ground, stack: Stack) -> None:
    names = ("a", "b", "broken", "shaky")
    for name in names:
        world.api.put(job(name))
    world.operator.failing = {"broken": 99, "shaky": 1}
    world.operator.down, world.operator.delay = True, 0.5

    run = stack.run(_DAG)
    # No worker is held while the first two are waited for, and the pool lets no others in.
    _await_deferred(stack, run, _SLOTS)
    for name in ("triggerer", "scheduler"):
        stack.kill(name)
    for name in ("triggerer", "scheduler"):
        stack.start(name)
    world.api.dropped += 1
    assert len(world.savepoints()) == _SLOTS
    world.operator.wake()
    state = stack.ended(_DAG, run)

    assert state == "failed"
    taken = {"a": "success", "b": "success", "broken": "failed", "shaky": "success"}
    assert _taken(stack, run) == taken
    made = {name: [b["status"]["phase"] for b in world.savepoints(name)] for name in names}
    assert made == {
        "a": ["Completed"],
        "b": ["Completed"],
        "broken": ["Failed"] * 4,
        "shaky": ["Failed", "Completed"],
    }
    assert world.operator.most_at_once == _SLOTS
    # Nobody had to try again because a process died.
    tries = {each["rendered_map_index"]: each["try_number"] for each in _taking(stack, run)}
    assert tries == {"a": 1, "b": 1, "broken": 4, "shaky": 2}
    stack.until(
        lambda: run in stack.read("bell").splitlines(), lambda: "nobody was told of the failure"
    )
    assert set(stack.links(_DAG, run, "job.take")) == {"Job", "Savepoint"}
    assert _told(stack) == {
        name: body["metadata"]["name"]
        for name in ("a", "b", "shaky")
        for body in world.savepoints(name)
        if body["status"]["phase"] == "Completed"
    }


def _told(stack: Stack) -> dict[str, str]:
    """Job -> savepoint, of the events of assets."""
    events = stack.ask("GET", "/api/v2/assets/events")["asset_events"]
    return {each["extra"]["job"]: each["extra"]["savepoint"] for each in events}


@pytest.mark.soak
def test_two_runs_at_once_and_a_clear_make_no_second_savepoint(world: Ground, stack: Stack) -> None:
    world.api.put(job("once"))
    world.operator.failing, world.operator.delay = {}, 0.5

    runs = [stack.run(_DAG, jobs=["once"]) for _ in range(2)]
    assert [stack.ended(_DAG, run) for run in runs] == ["success"] * 2
    stack.clear(_DAG, runs[0], "job.take")
    assert stack.ended(_DAG, runs[0]) == "success"

    assert len(world.savepoints("once")) == 1
    assert [each["try_number"] for each in _taking(stack, runs[0])] == [2]


@pytest.mark.soak
def test_a_task_that_is_marked_as_failed_is_adopted_when_it_is_cleared(
    world: Ground, stack: Stack
) -> None:
    world.api.put(job("marked"))
    world.operator.down = True
    run = stack.run(_DAG, jobs=["marked"])
    _await_deferred(stack, run, 1)

    stack.mark_failed(_DAG, run, "job.take")
    assert stack.ended(_DAG, run) == "failed"
    world.operator.wake()
    stack.clear(_DAG, run, "job.take")

    assert stack.ended(_DAG, run) == "success"
    assert [body["status"]["phase"] for body in world.savepoints("marked")] == ["Completed"]


def test_a_cleanup_tells_what_the_operator_has_freed(world: Ground, stack: Stack) -> None:
    world.api.put(job("old", creationTimestamp="2025-01-01T00:00:00Z"))
    for number in range(2, 6):
        world.api.put(aged(number, of="old"))
    world.api.holds_deleted, world.operator.down = True, True

    run = stack.run(_CLEANUP, jobs=["old"], last=2)
    stack.until(lambda: _watched(world) >= {"old-4", "old-5"}, lambda: "they are not watched")
    world.operator.wake()

    assert stack.ended(_CLEANUP, run) == "success"
    left = {body["metadata"]["name"] for body in world.savepoints("old")}
    assert left == {"old-2", "old-3"}
    told = stack.result(_CLEANUP, run, "report")
    assert told["removed"] == ["shop/old-4", "shop/old-5"]
    assert (told["freed_bytes"], told["unknown"]) == (2 * world.operator.freed, [])


@pytest.mark.soak
def test_many_jobs_at_once_each_have_one_savepoint_at_the_first_try(
    world: Ground, stack: Stack
) -> None:
    names = [f"many-{number}" for number in range(64)]
    for name in names:
        world.api.put(job(name, labels={"many": "yes"}))
    stack.ask("PATCH", "/api/v2/pools/sparkpoint?update_mask=slots", {"slots": 8})
    world.operator.failing, world.operator.delay, world.operator.most_at_once = {}, 3.0, 0

    run = stack.run(_DAG, selector="many=yes")

    assert stack.ended(_DAG, run) == "success"
    assert {name: len(world.savepoints(name)) for name in names} == dict.fromkeys(names, 1)
    # Airflow may fail a task that is resumed soon after it was deferred: none was tried again.
    assert {each["try_number"] for each in _taking(stack, run)} == {1}
    assert world.operator.most_at_once <= 8
