"""What the operator's command line makes of its options, and what is looked at before it serves."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner

from sparkpoint.controller import main
from sparkpoint.controller.cluster import JOBS, SAVEPOINTS, Kind, Object
from sparkpoint.controller.errors import NotFoundError, UnfitError
from sparkpoint.controller.main import Options
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


class Listed(FakeCluster):
    """Notes what was read of it."""

    def __init__(self) -> None:
        super().__init__(lambda: datetime(2026, 11, 16, 12, tzinfo=UTC))
        self.read: list[tuple[Kind, str, int]] = []

    async def list(
        self, kind: Kind, namespace: str, *, labels: Mapping[str, str]
    ) -> Sequence[Object]:
        found = await super().list(kind, namespace, labels=labels)
        self.read.append((kind, namespace, len(found)))
        return found


def test_that_there_are_resources_of_ours_is_found_out_without_reading_them() -> None:
    cluster = Listed()
    for kind in (JOBS, SAVEPOINTS):
        about = {"name": "visits", "namespace": "shop"}
        body: Object = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": about}
        cluster.add({**body, "spec": {}})

    asyncio.run(main._check_resources(cluster, ["shop"]))

    assert cluster.read == [(JOBS, "shop", 0), (SAVEPOINTS, "shop", 0)]


def test_an_api_server_without_our_definitions_is_told_of() -> None:
    cluster = Listed()
    cluster.refuse = lambda verb, what: NotFoundError("the server could not find the resource")

    with pytest.raises(UnfitError, match="kubectl apply"):
        asyncio.run(main._check_resources(cluster, []))
