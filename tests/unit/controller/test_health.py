"""When the operator counts as stuck, and how it says so."""

import asyncio
from typing import Any

import aiohttp
import pytest

from sparkpoint.controller.errors import UnfitError
from sparkpoint.controller.health import serve_health
from sparkpoint.controller.keys import Key
from sparkpoint.controller.metrics import JobFigures, Metrics
from sparkpoint.controller.pulse import Activity, Pulse, stall

NOW = 10_000.0
KEY = Key("shop", "visits")


def seen(**facts: Any) -> Activity:
    return Activity(**{"acts": True, **facts})


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        # Nothing to do, or nothing done yet.
        (seen(), ""),
        (seen(jobs=3), ""),
        (seen(ended=NOW - 9_000), ""),
        # Jobs, and passes that end.
        (seen(jobs=3, ended=NOW - 299), ""),
        (seen(jobs=3, ended=NOW - 301), "No pass has ended for 301 s, with 3 jobs to look after."),
        # Somebody waits: from then on passes must end, whatever was before.
        (seen(waiting=2, waiting_since=NOW - 10, ended=NOW - 9_000), ""),
        (seen(waiting=2, waiting_since=NOW - 400, ended=NOW - 5), ""),
        (
            seen(waiting=2, waiting_since=NOW - 400, ended=NOW - 350),
            "No pass has ended for 350 s, and 2 wait.",
        ),
        (
            seen(waiting=1, waiting_since=NOW - 400),
            "No pass has ended for 400 s, and 1 wait.",
        ),
        # Nothing is known of what there is.
        (seen(unlisted=2, unlisted_since=NOW - 299), ""),
        (
            seen(unlisted=2, unlisted_since=NOW - 301, ended=NOW - 1),
            "2 kinds of resources could not be listed once for 301 s.",
        ),
        # One pass that does not end, though others do.
        (seen(jobs=3, running_since=NOW - 899, ended=NOW - 1), ""),
        (
            seen(jobs=3, running_since=NOW - 901, ended=NOW - 1),
            "A pass has been running for 901 s.",
        ),
        # A standby replica is well, whatever it did when it acted.
        (
            Activity(
                acts=False,
                jobs=3,
                unlisted=1,
                unlisted_since=NOW - 9_000,
                waiting=2,
                waiting_since=NOW - 9_000,
                running_since=NOW - 9_000,
                ended=NOW - 9_000,
            ),
            "",
        ),
    ],
)
def test_a_stall_is_told_in_a_sentence(facts: Activity, problem: str) -> None:
    assert stall(NOW, facts) == problem


def test_the_pulse_knows_the_oldest_of_those_that_wait_and_work() -> None:
    clock = iter(range(100))
    pulse = Pulse(monotonic=lambda: float(next(clock)), wall=lambda: 5.0)

    with pulse.wait() as begin_first, pulse.wait():
        assert pulse.activity(acts=True, jobs=0).waiting_since == 0.0
        begin_first()
        busy = pulse.activity(acts=True, jobs=0)
        assert (busy.waiting, busy.waiting_since, busy.running_since) == (1, 1.0, 2.0)

    calm = pulse.activity(acts=True, jobs=0)
    assert (calm.waiting, calm.waiting_since, calm.running_since) == (0, None, None)
    assert (calm.ended, pulse.ended_at) == (3.0, 5.0)


def test_a_pass_that_never_had_its_turn_is_no_sign_of_life() -> None:
    pulse = Pulse()

    with pytest.raises(ValueError, match="cancelled"), pulse.wait():
        raise ValueError("cancelled")

    assert pulse.activity(acts=True, jobs=0) == Activity(acts=True)


def test_the_pulse_knows_which_lists_have_not_ended() -> None:
    clock = iter((5.0,))
    pulse = Pulse(monotonic=lambda: next(clock))
    assert pulse.activity(acts=True, jobs=0).unlisted_since is None

    pulse.expect(2)
    for path in ("/api/v1/pods", "/api/v1/pods"):
        pulse.listed(path)

    seen = pulse.activity(acts=True, jobs=0)
    assert (seen.unlisted, seen.unlisted_since) == (1, 5.0)
    pulse.listed("/apis/sparkpoint.dev/v1alpha1/statefulsparkjobs")
    assert pulse.activity(acts=True, jobs=0) == Activity(acts=True)


async def ask(port: int, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}") as response,
    ):
        return response.status, await response.text()


@pytest.mark.parametrize(("acts", "status"), [(True, 503), (False, 200)])
def test_the_page_fails_with_the_sentence(
    acts: bool, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Metrics()
    metrics.acts = lambda: acts
    metrics.figures(KEY, JobFigures())
    metrics.pulse = Pulse(monotonic=lambda: 0.0)
    metrics.pulse.beat()
    monkeypatch.setattr("sparkpoint.controller.health.time.monotonic", lambda: 1000.0)

    async def story() -> tuple[int, str]:
        async with serve_health(0, metrics=metrics) as port:
            assert (await ask(port, "/metrics"))[0] == 200
            return await ask(port, "/healthz")

    found, text = asyncio.run(story())
    assert found == status
    assert ("No pass has ended for 1000 s" in text) is acts


def test_a_port_that_is_taken_is_told_in_a_sentence() -> None:
    async def story() -> None:
        async with serve_health(0, metrics=Metrics()) as port:
            with pytest.raises(UnfitError, match=f"port {port}: .* --health-port"):
                async with serve_health(port, metrics=Metrics()):
                    pytest.fail("two servers on one port")

    asyncio.run(story())
