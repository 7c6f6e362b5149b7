"""What the operator's command line makes of its options."""

from typing import Any

import pytest
from click.testing import CliRunner

from sparkpoint.controller import main
from sparkpoint.controller.main import Options


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
