"""Runs of the schedule in a whole Airflow, which is away for some of its ticks."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.airflow.conftest import Ground, write_kubeconfig
from tests.airflow.home import ROOT
from tests.airflow.operating import PlayedOperator
from tests.airflow.stack import Stack
from tests.unit.airflow.world import job
from tests.unit.cli.jobs.apiserver import served

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

_DAG = "sparkpoint_savepoints"
_TICK = 10
"""Seconds between two."""


@pytest.fixture
def world() -> Iterator[Ground]:
    with served() as (api, address):
        write_kubeconfig(address, api.token)
        yield Ground(api, PlayedOperator(api))


@pytest.fixture
def stack(world: Ground, database: Path, tmp_path: Path) -> Iterator[Stack]:
    settings = {"SPARKPOINT_SAVEPOINTS_SCHEDULE": f"* * * * * */{_TICK}"}
    made = Stack(tmp_path, ROOT / "dags", settings)
    try:
        made.up(database)
        yield made
    finally:
        made.down()


def _ended(stack: Stack) -> list[datetime]:
    """The ticks whose runs have ended well."""
    return [
        datetime.fromisoformat(run["logical_date"])
        for run in stack.runs(_DAG)
        if run["state"] == "success"
    ]


def test_after_ticks_that_were_missed_there_is_one_late_run(world: Ground, stack: Stack) -> None:
    world.api.put(job())
    stack.known(_DAG)
    stack.until(lambda: _ended(stack), lambda: "no run has ended")
    for name in ("scheduler", "triggerer"):
        stack.kill(name)

    gone = datetime.now(UTC)
    time.sleep(4 * _TICK)
    back = datetime.now(UTC)
    for name in ("scheduler", "triggerer"):
        stack.start(name)
    stack.until(
        lambda: any(tick > back for tick in _ended(stack)), lambda: "no tick after the pause"
    )
    stack.pause(_DAG)

    missed = [tick for tick in _ended(stack) if gone < tick <= back]
    assert len(missed) <= 1, missed
    # The first run took it; for all others it is fresh.
    assert [body["status"]["phase"] for body in world.savepoints()] == ["Completed"]
