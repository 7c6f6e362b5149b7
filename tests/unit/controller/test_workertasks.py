"""The command lines of workers: the worker itself must be able to read every one of them."""

from typing import Any

import pytest

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.objects import Owner, Repository
from sparkpoint.controller.workertasks import arguments
from sparkpoint.lifecycle.actions import (
    Adopt,
    Capture,
    Examine,
    Rehearse,
    RemoveData,
    Repartition,
    Task,
)
from sparkpoint.lifecycle.record import Adoption, Begin, Origin, Revision, Run
from sparkpoint.worker.tasks import parse
from tests.unit.controller.simulation import SPEC

OWNER = Owner("shop", "visits", "u1")
REVISION = Revision(name="r1", code="c1")
ORIGIN = Origin(begin=Begin.EMPTY)
RUN = Run(
    epoch=3,
    attempt=5,
    revision=REVISION,
    origin=ORIGIN,
    source=ORIGIN,
    directory="epoch-3-3f9a2c7b",
)
TASKS: list[Task] = [
    Capture(run=RUN, savepoint="visits-upgrade-2", revision=REVISION),
    Rehearse(run=RUN, savepoint="visits-upgrade-2"),
    Rehearse(run=RUN, savepoint="shop/other/old", strict=True),
    Rehearse(run=RUN, savepoint="visits-upgrade-2-trial", captured_from=RUN),
    Examine(run=RUN, savepoint="visits-upgrade-2", partitions=8),
    Examine(run=RUN, savepoint="visits-trial", partitions=8, captured_from=RUN),
    Repartition(
        run=RUN, savepoint="visits-repartition-7", made="visits-repartition-7-p8", partitions=8
    ),
    RemoveData(run=RUN, life="3f9a2c7b", revision=REVISION),
    RemoveData(run=RUN, life="", revision=REVISION),
    Adopt(run=RUN, adoption=Adoption(location="s3://old/visits"), savepoint="visits-start-1"),
    Adopt(
        run=RUN,
        adoption=Adoption(location="/old/visits", query="--a query's name"),
        savepoint="visits-start-1",
    ),
]


def spec(**changes: Any) -> JobSpec:
    return JobSpec.model_validate({**SPEC, **changes})


@pytest.mark.parametrize("endpoint", [None, "http://s3:8333"])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_the_worker_reads_what_it_is_told(task: Task, endpoint: str | None) -> None:
    storage = {"storage": {"endpointUrl": endpoint}} if endpoint is not None else {}
    repository = Repository("s3://data/savepoints", endpoint)

    line = arguments(OWNER, spec(**storage), task, repository=repository, trigger="Upgrade")

    assert parse(line, {})[0] == line[0]


def test_a_trial_gets_the_script_with_its_arguments() -> None:
    line = arguments(
        OWNER,
        spec(args=["--input", "$(INPUT)"]),
        TASKS[1],
        repository=Repository("/data/savepoints"),
        trigger="Upgrade",
    )

    assert line[line.index("--") :] == ["--", "/opt/job/visits.py", "--input", "$(INPUT)"]
    assert line[line.index("--deadline") + 1] == "480"


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_trial_that_is_strict_does_the_last_batch_again_in_the_same_time(is_strict: bool) -> None:
    """As its operation says: the spec that is at hand may be an older one, stored."""
    wanted = spec(upgrade={"compatibility": "Enforce" if is_strict else "Strict"})
    task = Rehearse(run=RUN, savepoint="visits-upgrade-2", strict=is_strict)

    line = arguments(OWNER, wanted, task, repository=Repository("/data/sp"), trigger="Upgrade")

    assert ("--replay" in line[: line.index("--")]) is is_strict
    assert line[line.index("--deadline") + 1] == ("240" if is_strict else "480")


def test_the_directory_of_a_run_is_the_one_that_is_written_down() -> None:
    line = arguments(OWNER, spec(), TASKS[0], repository=None, trigger="Upgrade")

    assert line[line.index("--epoch-dir") + 1] == (
        "s3a://data/checkpoints/shop/visits/epoch-3-3f9a2c7b"
    )


def test_kubernetes_replaces_nothing_in_our_own_places() -> None:
    checkpoint = {"location": "s3://data/$(HOME)/checkpoints"}

    task = RemoveData(run=RUN, life="3f9a2c7b", revision=REVISION)
    line = arguments(OWNER, spec(checkpoint=checkpoint), task, repository=None, trigger="Upgrade")

    assert line[line.index("--root") + 1] == "s3://data/$$(HOME)/checkpoints"
