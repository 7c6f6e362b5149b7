"""The command line: everything wrong with it is said at once."""

from pathlib import Path

import pytest

from sparkpoint.runtime.errors import RefusedError
from sparkpoint.runtime.options import (
    AgentOptions,
    Options,
    RehearsalOptions,
    parse_options,
    termination_log_of,
)

LEAST = ["--epoch-dir", "/e", "--epoch", "3", "--job", "shop/visits"]


def refused(*arguments: str) -> str:
    with pytest.raises(RefusedError) as error:
        parse_options(arguments)
    return str(error.value)


def test_the_least() -> None:
    assert parse_options([*LEAST, "--", "job.py"]) == Options(
        epoch_dir="/e", epoch=3, job="shop/visits", script="job.py"
    )


def test_everything() -> None:
    given = ["--gated", "--gate-deadline", "600", "--stop-budget", "5.5"]
    given += ["--on-query-failure", "ignore", "--expect", "empty", "--termination-log", "/t"]
    given += ["--agent-host", "10.0.0.1", "--agent-port", "7077", "--token-file", "/token"]
    given += ["--agent-url-file", "/url", "--endpoint-url", "http://s3:9000", "--revision", "r7"]
    given += ["--rehearse", "nightly", "--repository", "s3://lake/savepoints"]
    given += ["--rehearsal-deadline", "90", "--rehearse-functions"]
    given += ["--trigger-interval", "0.5", "--guarantee", "exactly-once"]

    options = parse_options([*LEAST, *given, "--", "job.py", "--gated", "-x", "--", "y"])

    assert options == Options(
        epoch_dir="/e",
        epoch=3,
        job="shop/visits",
        script="job.py",
        arguments=("--gated", "-x", "--", "y"),
        gated=True,
        gate_deadline=600,
        stop_budget=5.5,
        on_query_failure="ignore",
        trigger_interval=0.5,
        guarantee="exactly-once",
        expect="empty",
        termination_log=Path("/t"),
        agent=AgentOptions("10.0.0.1", 7077, Path("/token"), Path("/url")),
        endpoint_url="http://s3:9000",
        revision="r7",
        rehearsal=RehearsalOptions(
            savepoint="nightly", repository="s3://lake/savepoints", deadline=90, functions=True
        ),
    )


def test_all_mistakes_are_told_at_once() -> None:
    given = ["--epoch", "-1x", "--job", "Shop", "--gate-deadline", "soon", "--stop-budget", "nan"]
    given += ["--on-query-failure", "cry", "--expect", "much", "--agent-port", "70000", "--colour"]
    given += ["--endpoint-url", "s3.local", "--revision", "", "--rehearse", "a"]
    given += ["--rehearsal-deadline", "later", "--trigger-interval", "10s", "--guarantee", "most"]

    message = refused(*given)

    for part in (
        "--epoch-dir is missing",
        "--epoch is '-1x'",
        "--job is 'Shop'",
        "--gate-deadline is 'soon'",
        "--stop-budget is 'nan'",
        "--on-query-failure is 'cry'",
        "--expect is 'much'",
        "--agent-port is '70000'",
        "--token-file is missing",
        "--endpoint-url is 's3.local'",
        "--revision is ''",
        "--repository is missing",
        "--rehearsal-deadline is 'later'",
        "--trigger-interval is '10s': give a number of seconds",
        "--guarantee is 'most': give exactly-once or at-least-once",
        "'--colour' is not an option",
        "there is no script",
        "Usage: python -m sparkpoint.runtime",
    ):
        assert part in message, message


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([*LEAST], "there is no script"),
        ([*LEAST, "--"], "there is no script"),
        ([*LEAST, "job.py"], "'job.py' is not an option"),
        ([*LEAST, "--gate-deadline", "5", "--", "job.py"], "nothing without --gated"),
        ([*LEAST, "--token-file", "/t", "--", "job.py"], "--agent-port is missing"),
        ([*LEAST, "--rehearse", "s", "--", "job.py"], "--repository is missing"),
        ([*LEAST, "--rehearse", " ", "--repository", "/r", "--", "j"], "--rehearse is missing"),
        ([*LEAST, "--repository", "/r", "--", "job.py"], "--repository does nothing without"),
        ([*LEAST, "--rehearse-functions", "--", "job.py"], "nothing without --rehearse"),
        ([*LEAST, "--agent-url-file", "/u", "--", "job.py"], "--agent-port is missing"),
        (["--epoch", "--", "job.py"], "--epoch"),
        ([*LEAST, "--ep", "3", "--", "job.py"], "'--ep' is not an option"),
        ([*LEAST, "--stop-budget", "-1", "--", "job.py"], "--stop-budget"),
        (["--epoch-dir", " ", *LEAST[2:], "--", "job.py"], "--epoch-dir is missing"),
    ],
)
def test_mistakes(arguments: list[str], part: str) -> None:
    assert part in refused(*arguments)


@pytest.mark.parametrize(
    ("arguments", "log"),
    [
        (["--colour", "--termination-log", "/t"], Path("/t")),
        (["--termination-log=/t", "--colour", "--", "job.py"], Path("/t")),
        (["--termination-log=/t"], Path("/t")),
        (["--termination-log", "--", "job.py"], None),
        (["--colour", "--", "job.py", "--termination-log=/t"], None),
        ([], None),
    ],
)
def test_the_termination_log_is_found_on_a_bad_command_line(
    arguments: list[str], log: Path | None
) -> None:
    assert termination_log_of(arguments) == log
