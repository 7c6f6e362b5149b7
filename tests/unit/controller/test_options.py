"""What the operator's command line makes of its options, and how the operator begins and ends."""

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any

import aiohttp
import kopf
import pytest
from click.testing import CliRunner

from sparkpoint.controller import main
from sparkpoint.controller.apiserver import ApiServer
from sparkpoint.controller.errors import ForbiddenError, UnfitError
from sparkpoint.controller.main import Options
from sparkpoint.controller.wiring import utc_now
from tests.unit.controller.fakecluster import FakeCluster


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """The options that the operator was run with."""
    seen: list[Options] = []

    async def run(options: Options) -> None:
        seen.append(options)

    monkeypatch.setattr(main, "run", run)
    monkeypatch.setattr(main, "configure_logs", lambda *_, **__: None)
    return seen


def invoke(*arguments: str, **environment: Any) -> None:
    done = CliRunner().invoke(main.main, arguments, env=environment, catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("arguments", "namespace"),
    [((), None), (("--lease-namespace=",), None), (("--lease-namespace=system",), "system")],
)
def test_an_operator_without_a_namespace_for_its_lease_is_the_only_one(
    given: list[Options], arguments: tuple[str, ...], namespace: str | None
) -> None:
    invoke(*arguments)

    assert given[0].lease_namespace == namespace


def test_the_lease_has_a_name_of_its_own_where_two_operators_share_a_namespace(
    given: list[Options],
) -> None:
    invoke()
    invoke("--lease-name=other")

    assert [options.lease_name for options in given] == ["sparkpoint-operator", "other"]


def test_namespaces_may_be_repeated(given: list[Options]) -> None:
    invoke("--namespace=shop", "--namespace=lab")

    assert given[0].namespaces == ("shop", "lab")


def ended_by(error: Exception, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    async def run(options: Options) -> None:
        raise error

    monkeypatch.setattr(main, "run", run)
    done = CliRunner().invoke(main.main, (), catch_exceptions=False)
    return done.exit_code, done.output


@pytest.mark.parametrize(
    "error",
    [
        UnfitError("The port is taken."),
        ExceptionGroup("", [UnfitError("The port is taken.")]),
        ExceptionGroup("", [ExceptionGroup("", [UnfitError("The port is taken.")])]),
    ],
)
def test_an_operator_that_must_not_begin_ends_with_a_sentence(
    given: list[Options], error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ended_by(error, monkeypatch) == (1, "Error: The port is taken.\n")


def test_what_there_is_no_sentence_for_is_shown_whole(
    given: list[Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = ExceptionGroup("", [ForbiddenError("403"), ZeroDivisionError()])

    with pytest.raises(ExceptionGroup):
        ended_by(both, monkeypatch)


class _Server(FakeCluster):
    """An API server whose clock stands in the past."""

    def __init__(self, hear: Callable[[str | None, float], None]) -> None:
        super().__init__(utc_now)
        hear("Tue, 17 Nov 2020 12:00:00 GMT", 0.1)

    async def close(self) -> None:
        """There is nothing to close."""


@pytest.mark.parametrize("lease_namespace", [None, "system"])
def test_a_clock_that_differs_is_on_the_page_of_an_operator_that_acts(
    lease_namespace: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pages: list[str] = []

    async def connect(context: str | None, *, asked: Any, hear: Any) -> _Server:
        return _Server(hear)

    async def check(*_: object) -> None:
        """The ground is good."""

    async def operate(**_: object) -> None:
        [port] = re.findall(r"pages on port (\d+)", caplog.text)
        url = f"http://127.0.0.1:{port}/healthz"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            pages.append(await answer.text())

    caplog.set_level(logging.INFO)
    monkeypatch.setattr(ApiServer, "connect", connect)
    monkeypatch.setattr(main, "_check_ground", check)
    monkeypatch.setattr(kopf, "operator", operate)
    options = Options(
        namespaces=(),
        context=None,
        concurrency=1,
        health_port=0,
        lease_namespace=lease_namespace,
        lease_name="sparkpoint-operator",
    )

    asyncio.run(main.run(options))

    [page] = pages
    assert page.startswith("ok\nThis operator's clock is ")
    assert "s ahead of the API server's" in page
