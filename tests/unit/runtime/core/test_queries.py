"""Stopping several queries: side by side, within a budget, and with an honest report."""

import pytest

from sparkpoint.runtime import queries
from sparkpoint.runtime.model import ErrorInfo, QueryEnd
from sparkpoint.runtime.options import STOP_BUDGET
from sparkpoint.runtime.queries import INTERRUPT_SECONDS, stop_queries
from tests.unit.runtime.core.fakes import FakeExecution, started


def test_all_stop_at_their_boundaries() -> None:
    report = stop_queries([started(name, FakeExecution(name)) for name in "abc"], budget=30)

    assert report.clean
    assert report.queries == {name: QueryEnd(batch=4, clean=True) for name in "abc"}


def test_one_that_exceeds_the_budget_is_interrupted_and_the_others_are_not() -> None:
    slow, quick = FakeExecution(stubborn=True), FakeExecution()

    report = stop_queries([started("slow", slow), started("quick", quick)], budget=2)

    assert not report.clean
    assert report.queries["slow"] == QueryEnd(batch=3, clean=False)
    assert report.queries["quick"] == QueryEnd(batch=4, clean=True)
    assert (slow.interrupted, quick.interrupted) == (True, False)


def test_one_that_does_not_even_end_when_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "INTERRUPT_SECONDS", 0.1)

    report = stop_queries([started("q", FakeExecution(stubborn=True, deaf=True))], budget=0)

    end = report.queries["q"]
    assert (end.batch, end.clean) == (3, False)
    assert end.error is not None
    assert end.error.type == "StillRunning"


def test_the_last_word_is_said_within_the_grace_period_of_a_pod() -> None:
    grace_period = 30
    """Kubernetes' own, of pods that say nothing: SIGKILL comes then."""
    to_say_it = 3

    longest = STOP_BUDGET + INTERRUPT_SECONDS

    assert longest + to_say_it <= grace_period


def test_one_that_had_died_before_is_reported_as_it_died() -> None:
    execution = FakeExecution()
    query = started("q", execution)
    error = ErrorInfo(type="ValueError", message="no")
    execution.die(error)
    query.await_end(10)

    report = stop_queries([query], budget=30)

    assert report.queries == {"q": QueryEnd(batch=3, clean=False, error=error)}
    assert not report.clean


def test_a_jvm_that_is_gone_is_reported_and_not_waited_for() -> None:
    execution = FakeExecution()
    query = started("q", execution)
    execution.lose()

    report = stop_queries([query], budget=30)

    end = query.await_end(10)
    assert end is not None
    assert end.error is not None
    assert end.error.type == "SparkLost"
    assert not report.clean
    assert report.seconds < 10


def test_no_query_is_a_clean_stop() -> None:
    report = stop_queries([], budget=30)

    assert (report.clean, report.queries) == (True, {})
