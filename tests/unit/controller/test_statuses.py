"""The fields of a job's status that people read."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sparkpoint.controller.keys import Key
from sparkpoint.controller.statuses import Sight, job_status, rate, without_progress
from sparkpoint.lifecycle.conditions import Aspect, Condition, Reason, Status
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Begin, Operation, Origin, Record, Revision, Run
from sparkpoint.lifecycle.world import DriverExit
from sparkpoint.runtime.model import GateInfo, Progress, QueryProgress

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
EMPTY = Origin(begin=Begin.EMPTY)
RUN = Run(epoch=2, attempt=3, revision=Revision(name="r", code="c"), origin=EMPTY, source=EMPTY)
READY = Condition(aspect=Aspect.READY, status=Status.TRUE, reason=Reason.COMMITTING)
SIGHT = Sight(
    key=Key("shop", "visits"),
    uid="u1",
    generation=4,
    record=Record(run=RUN),
    former={},
    conditions=(READY,),
    now=NOW,
)


def progress(*rates: float, batch: int | None = 7) -> Progress:
    queries = [
        QueryProgress(
            name=f"q{number}",
            id="i",
            run_id="r",
            active=True,
            batch=batch,
            processed_rows_per_second=each,
        )
        for number, each in enumerate(rates)
    ]
    gate = GateInfo(epoch=2, state="open")
    return Progress(job="shop/visits", epoch=2, phase="running", gate=gate, queries=queries)


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ((), "0/s"),
        ((12.4,), "12/s"),
        ((999.0,), "999/s"),
        ((6000.0, 6345.0), "12.3k/s"),
        ((2.5e6,), "2.5M/s"),
        ((7e12,), "7000.0G/s"),
    ],
)
def test_rates_are_short(rates: tuple[float, ...], words: str) -> None:
    assert rate(progress(*rates)) == words


def test_the_batch_is_the_lowest_of_all_queries() -> None:
    seen = progress(1, 1)
    queries = [seen.queries[0], seen.queries[1].model_copy(update={"batch": 3})]

    status = job_status(replace(SIGHT, progress=seen.model_copy(update={"queries": queries})))

    assert status["batch"] == 3


def test_a_driver_that_has_not_committed_yet_has_the_batch_of_the_one_before() -> None:
    former = job_status(replace(SIGHT, progress=progress(1)))

    status = job_status(replace(SIGHT, former=former, progress=progress(1, batch=None)))

    assert status["batch"] == 7


def test_the_batches_of_another_epoch_say_nothing() -> None:
    former = job_status(replace(SIGHT, progress=progress(1))) | {"epoch": 1}

    status = job_status(replace(SIGHT, former=former, progress=progress(1, batch=None)))

    assert "batch" not in status


def test_a_job_that_does_not_answer_keeps_what_was_known_of_its_queries() -> None:
    former = job_status(replace(SIGHT, progress=progress(5)))

    [query] = job_status(replace(SIGHT, former=former))["queries"]

    assert (query["active"], query["batch"]) == (False, 7)
    assert "processedRowsPerSecond" not in query


def test_the_same_sight_makes_the_same_status() -> None:
    former = job_status(SIGHT)

    later = job_status(replace(SIGHT, former=former, now=NOW + timedelta(hours=1)))

    assert later == former


def test_progress_alone_is_told_apart() -> None:
    one = job_status(replace(SIGHT, progress=progress(5)))
    other = job_status(replace(SIGHT, progress=progress(6, batch=8)))

    assert one != other
    assert without_progress(one) == without_progress(other)


def test_restarts_are_counted_once_per_recovery() -> None:
    operation = Operation(
        id="recover-2",
        kind=Kind.RECOVER,
        phase=Phase.STOP,
        generation=1,
        started=NOW,
        phase_started=NOW,
    )
    sight = replace(SIGHT, record=Record(run=RUN, operation=operation))

    first = job_status(sight)
    second = job_status(replace(sight, former=first))

    assert (first["driver"]["restarts"], second["driver"]["restarts"]) == (1, 1)


def test_how_the_last_driver_ended_stays_known() -> None:
    ended = DriverExit(code=1, reason="ScriptFailed", message="boom", clean=False)
    former = job_status(replace(SIGHT, exit=ended))

    driver = job_status(replace(SIGHT, former=former))["driver"]

    assert (driver["exitCode"], driver["reason"]) == (1, "ScriptFailed")
    assert driver["lastException"] == "boom"


def test_a_long_message_is_cut_to_what_the_api_server_takes() -> None:
    status = job_status(replace(SIGHT, conditions=(replace(READY, message="x" * 9999),)))

    assert len(status["conditions"][0]["message"]) == 4096


def test_a_status_of_another_version_is_no_reason_to_stop() -> None:
    former: dict[str, Any] = {"phase": "Dancing", "conditions": "none"}

    assert job_status(replace(SIGHT, former=former))["phase"] == "Running"
