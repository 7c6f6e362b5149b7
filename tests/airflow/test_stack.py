"""The DAGs in a whole Airflow, from a ConfigMap: deferral, kills, clears, the pool, assets.

What may happen to a savepoint (`docs/airflow.md`, "When things fail"), and where it is tried:

    worker dies after asking        b, in `test_one_savepoint_per_job_…`, which is `one` below
    triggerer, scheduler die        a, in `one`
    savepoint fails                 broken and shaky, in `one`
    savepoint deleted meanwhile     lost, in `one`
    job deleted meanwhile           leaving, in `one`
    task marked as failed           marked, in `one`
    task cleared                    all of them, in `one`
    same run twice                  `test_runs_at_once…`, here
    operator down                   `one` begins so; to the end of patience in test_trigger.py
    API server does not answer      test_trigger.py
    Airflow down for three ticks    test_dags.py, and for real in test_ticks.py
    two Airflows, two DAGs          test_operators.py
    cleanup twice at once           tests/unit/airflow/test_retention.py
    bad input                       test_operators.py and test_dags.py, with the sentences
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.airflow.conftest import Ground, aged, mount, write_kubeconfig
from tests.airflow.home import ROOT
from tests.airflow.operating import PlayedOperator
from tests.airflow.stack import Stack
from tests.unit.airflow.world import job
from tests.unit.cli.jobs.apiserver import served

pytestmark = pytest.mark.timeout(900)

_DAG, _CLEANUP = "sparkpoint_savepoints", "sparkpoint_cleanup"
_SLOTS = 3
_MANY = (8, pytest.param(64, marks=pytest.mark.soak))
"""Two hundred are in test_airflow_load.py."""
_DYING = ("triggerer", "scheduler")


@pytest.fixture(scope="module")
def world() -> Iterator[Ground]:
    with served() as (api, address):
        write_kubeconfig(address, api.token)
        yield Ground(api, PlayedOperator(api))


@pytest.fixture(scope="module")
def stack(
    world: Ground, database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    home: Path = tmp_path_factory.mktemp("airflow")
    # Ticks would come in between.
    clocks = {f"SPARKPOINT_{name}_SCHEDULE": "0 0 29 2 *" for name in ("SAVEPOINTS", "CLEANUP")}
    bell = {
        "PYTHONPATH": str(ROOT),
        "SPARKPOINT_NOTIFIER": "tests.airflow.bell.Bell",
        "SPARKPOINT_NOTIFIER_ARGUMENTS": json.dumps({"path": str(home / "bell")}),
    }
    # Beside the folder of somebody else, as the manual says for the chart's ConfigMap.
    local = "airflow.dag_processing.bundles.local.LocalDagBundle"
    ours = {"name": "sparkpoint", "classpath": local, "kwargs": {"path": str(mount(home / "ours"))}}
    bundles = [{"name": "dags-folder", "classpath": local, "kwargs": {}}, ours]
    bundled = {"AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles)}
    made = Stack(home, tmp_path_factory.mktemp("dags"), {**clocks, **bell, **bundled})
    try:
        made.up(database)
        made.pool(_SLOTS)
        for dag in (_DAG, _CLEANUP):
            made.known(dag)
        yield made
    finally:
        made.down()


def _taking(stack: Stack, run: str) -> dict[str, dict[str, Any]]:
    """Job -> its task."""
    tasks = [each for each in stack.tasks(_DAG, run) if each["task_id"] == "job.take"]
    return {each["rendered_map_index"] or f"[{each['map_index']}]": each for each in tasks}


def _await_deferred(stack: Stack, run: str, *jobs: str) -> None:
    def states() -> dict[str, str]:
        return {name: each["state"] for name, each in _taking(stack, run).items()}

    stack.until(
        lambda: all(states().get(name) == "deferred" for name in jobs),
        lambda: f"{jobs} are not waited for: {states()}",
    )


def _watched(world: Ground) -> set[str]:
    """Names of what was watched."""
    paths = [unquote(path) for _, path, _ in world.api.asked if "watch=" in path]
    return {path.partition("metadata.name=")[2].partition("&")[0] for path in paths}


def _phases(world: Ground, name: str) -> list[str]:
    return [body["status"]["phase"] for body in world.savepoints(name)]


@contextmanager
def _unanswered(world: Ground, name: str) -> Iterator[None]:
    """Whoever asks for a savepoint of the job is not told that it was made."""
    over = threading.Event()

    def hold(verb: str, answer: dict[str, Any]) -> None:
        if verb == "POST" and answer["spec"]["jobRef"]["name"] == name:
            over.wait()

    world.api.before_answer = hold
    try:
        yield
    finally:
        world.api.before_answer = lambda _verb, _answer: None
        over.set()


def test_one_savepoint_per_job_whatever_happens(world: Ground, stack: Stack) -> None:
    names = ("a", "b", "broken", "leaving", "lost", "marked", "shaky")
    for name in names:
        world.api.put(job(name))
    world.operator.failing = {"broken": 4, "shaky": 1}
    world.operator.neglected = {"leaving", "lost", "marked"}
    world.operator.down, world.operator.delay = True, 0.5

    with _unanswered(world, "b"):
        run = stack.run(_DAG)
        # No worker is held while they are waited for, and the pool lets no others in.
        _await_deferred(stack, run, "a", "broken")
        stack.until(lambda: world.savepoints("b"), lambda: "b was not asked for")
        assert len(world.savepoints()) == _SLOTS
        for name in _DYING:
            stack.kill(name)
    for name in _DYING:
        stack.start(name)
    world.api.dropped += 1
    world.operator.wake()
    _await_deferred(stack, run, "leaving", "lost", "marked")
    _strike(world, stack, run)

    assert stack.ended(_DAG, run) == "failed"
    taken = {name: each["state"] for name, each in _taking(stack, run).items()}
    failed = ("broken", "leaving", "marked")
    assert taken == {name: "failed" if name in failed else "success" for name in names}
    assert {name: _phases(world, name) for name in names} == {
        **{name: ["Completed"] for name in names},
        "broken": ["Failed"] * 4,
        "leaving": ["Failed"],
        "shaky": ["Failed", "Completed"],
    }
    assert world.operator.most_at_once == _SLOTS
    # Who waits does not notice that processes die; a worker that dies is followed by another one.
    tries = {name: each["try_number"] for name, each in _taking(stack, run).items()}
    assert tries == {
        "a": 1, "b": 2, "broken": 4, "leaving": 2, "lost": 2, "marked": 1, "shaky": 2
    }  # fmt: skip
    index = _taking(stack, run)["leaving"]["map_index"]
    assert "No job leaving in namespace shop." in stack.log(_DAG, run, "job.take", index, 2)
    stack.until(
        lambda: run in stack.read("bell").splitlines(), lambda: "nobody was told of the failure"
    )
    assert set(stack.links(_DAG, run, "job.take")) == {"Job", "Savepoint"}
    assert _told(stack) == _complete(world, "a", "b", "lost", "shaky")

    # Cleared, each finds what it has; only who has none makes the next attempt.
    stack.clear(_DAG, run, "job.take")
    assert stack.ended(_DAG, run) == "failed"
    taken = {name: each["state"] for name, each in _taking(stack, run).items()}
    assert taken == {name: "failed" if name == "leaving" else "success" for name in names}
    assert {name: _phases(world, name) for name in names} == {
        **{name: ["Completed"] for name in names},
        "broken": [*["Failed"] * 4, "Completed"],
        "leaving": ["Failed"],
        "shaky": ["Failed", "Completed"],
    }
    assert _told(stack) == _complete(world, *(name for name in names if name != "leaving"))


def _strike(world: Ground, stack: Stack, run: str) -> None:
    """One is deleted, one loses its job, and of one somebody does not want to hear any more."""
    [lost], [left] = world.savepoints("lost"), world.savepoints("leaving")
    index = _taking(stack, run)["marked"]["map_index"]
    stack.mark_failed(_DAG, run, "job.take", index)
    world.api.delete("StatefulSparkJob", "leaving")
    gone = {"phase": "Failed", "message": "Its job is gone."}
    world.api.put_status("SparkSavepoint", left["metadata"]["name"], gone)
    world.operator.neglected = set()
    world.api.delete("SparkSavepoint", lost["metadata"]["name"])
    # It is completed all the same.
    world.operator.wake()


def _told(stack: Stack) -> dict[str, str]:
    """Job -> savepoint, of the events of assets."""
    events = stack.ask("GET", "/api/v2/assets/events")["asset_events"]
    # Else a DAG is not started that has `schedule=Asset("sparkpoint://shop/visits")`.
    assert [each["name"] for each in events] == [each["uri"] for each in events]
    return {each["extra"]["job"]: each["extra"]["savepoint"] for each in events}


def _complete(world: Ground, *names: str) -> dict[str, str]:
    return {
        name: body["metadata"]["name"]
        for name in names
        for body in world.savepoints(name)
        if body["status"]["phase"] == "Completed"
    }


@pytest.mark.parametrize("many", _MANY)
def test_runs_at_once_make_one_savepoint_of_each_job_at_the_first_try(
    world: Ground, stack: Stack, many: int
) -> None:
    names = [f"of-{many}-{number}" for number in range(many)]
    for name in names:
        world.api.put(job(name, labels={"many": str(many)}))
    stack.pool(8)
    # So soon after its task was deferred, Airflow may fail one that a worker is to resume.
    world.operator.delay = 3.0

    runs = [stack.run(_DAG, selector=f"many={many}") for _ in range(2)]

    assert [stack.ended(_DAG, run, seconds=900) for run in runs] == ["success"] * 2
    assert {name: len(world.savepoints(name)) for name in names} == dict.fromkeys(names, 1)
    # The trigger ends them instead: each of them waited there, and none was tried again.
    first = _taking(stack, runs[0]).values()
    assert [(each["state"], each["try_number"]) for each in first] == [("success", 1)] * many
    assert stack.deferred(_DAG, runs[0], "job.take") == many
    assert [each["state"] for each in _taking(stack, runs[1]).values()] == ["skipped"]


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
