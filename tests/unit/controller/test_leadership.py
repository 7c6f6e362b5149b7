"""Of several operators one acts; another takes over when it stops."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn
from unittest.mock import AsyncMock

import pytest

from sparkpoint.controller import leadership
from sparkpoint.controller.agents import Agent
from sparkpoint.controller.cluster import JOBS, LEASES, PODS, Kind, Object
from sparkpoint.controller.errors import ConflictError, ForbiddenError, UnavailableError
from sparkpoint.controller.finalizers import let_go
from sparkpoint.controller.keys import FINALIZER
from sparkpoint.controller.leadership import (
    FencedCluster,
    Leadership,
    NotLeaderError,
    fenced,
    identity_on,
)
from sparkpoint.runtime.model import SavepointRequest, StopRequest
from tests.unit.controller.fakecluster import FakeCluster

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}}


@dataclass
class Time:
    """Goes by as the test says."""

    seconds: float = 1000.0

    def now(self) -> datetime:
        return datetime(2026, 11, 16, tzinfo=UTC) + timedelta(seconds=self.seconds)


@dataclass
class Replicas:
    """Two operators of one cluster; their clocks differ by an hour."""

    time: Time = field(default_factory=Time)

    def __post_init__(self) -> None:
        self.cluster = FakeCluster(self.time.now)
        self.one = self._operator("one", timedelta(0))
        self.other = self._operator("other", timedelta(hours=1))

    def _operator(self, identity: str, skew: timedelta) -> Leadership:
        return Leadership(
            self.cluster,
            namespace="system",
            identity=identity,
            monotonic=lambda: self.time.seconds,
            now=lambda: self.time.now() + skew,
        )

    def renew(self, *operators: Leadership, after: float = 0) -> tuple[bool, bool]:
        self.time.seconds += after
        for operator in operators:
            asyncio.run(operator.renew())
        return self.one.holds(), self.other.holds()


def test_the_first_one_acts() -> None:
    replicas = Replicas()

    assert replicas.renew(replicas.one, replicas.other) == (True, False)


def test_the_other_one_waits_as_long_as_the_lease_is_renewed() -> None:
    replicas = Replicas()
    for _ in range(20):
        assert replicas.renew(replicas.one, replicas.other, after=3) == (True, False)

    lease = replicas.cluster.find(LEASES, "system", "sparkpoint-operator")
    assert lease is not None
    assert lease["spec"]["leaseTransitions"] == 1


def test_the_holder_stops_acting_before_the_other_one_begins() -> None:
    replicas = Replicas()
    replicas.renew(replicas.one, replicas.other)

    held = [replicas.renew(replicas.other, after=1) for _ in range(20)]

    assert (True, True) not in held
    assert held[6] == (True, False)
    assert held[8] == (False, False)
    assert held[12] == (False, True)
    assert held[-1] == (False, True)


def test_one_that_hangs_is_followed_within_twenty_seconds() -> None:
    seen_late = looks_late = leadership._RENEWAL

    assert seen_late + leadership._TERMS.others + looks_late < 20


def test_one_that_comes_back_finds_the_other_one_acting() -> None:
    replicas = Replicas()
    replicas.renew(replicas.one, replicas.other)
    for _ in range(20):
        replicas.renew(replicas.other, after=1)

    assert replicas.renew(replicas.one) == (False, True)


async def _end(operator: Leadership, just_before: Callable[[], None] = lambda: None) -> None:
    task = asyncio.create_task(operator.keep())
    await asyncio.sleep(0)
    just_before()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_lease_that_is_given_back_is_taken_at_once() -> None:
    replicas = Replicas()

    asyncio.run(_end(replicas.one))

    assert replicas.renew(replicas.other, after=1) == (False, True)


def test_nobody_gives_back_what_another_one_holds_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server answered so late that the other one took over meanwhile."""
    replicas = Replicas()
    replicas.renew(replicas.one, replicas.other)
    answers = replicas.cluster.get

    async def late(kind: Kind, namespace: str | None, name: str) -> Object:
        monkeypatch.setattr(replicas.cluster, "get", answers)
        for _ in range(14):
            replicas.time.seconds += 1
            await replicas.other.renew()
        return await answers(kind, namespace, name)

    asyncio.run(_end(replicas.one, lambda: monkeypatch.setattr(replicas.cluster, "get", late)))

    lease = replicas.cluster.find(LEASES, "system", "sparkpoint-operator")
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == "other"
    assert replicas.other.holds()


def test_whoever_ends_does_not_wait_for_an_api_server_that_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    replicas = Replicas()
    replicas.renew(replicas.one)
    monkeypatch.setattr(leadership, "_PATIENCE", 0.01)

    async def never(*_: object) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError

    asyncio.run(_end(replicas.one, lambda: monkeypatch.setattr(replicas.cluster, "get", never)))

    assert "could not be given back: no answer within" in caplog.text


def test_an_api_server_that_is_away_ends_the_lease_in_time() -> None:
    replicas = Replicas()
    replicas.renew(replicas.one)
    replicas.cluster.refuse = lambda verb, what: UnavailableError("down")

    held = [replicas.renew(replicas.one, after=2)[0] for _ in range(4)]

    assert held == [True, True, True, False]


def test_an_api_server_that_hangs_ends_the_lease_in_time_and_the_next_try_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replicas = Replicas()
    replicas.renew(replicas.one)
    monkeypatch.setattr(leadership, "_PATIENCE", 0.01)
    answers = replicas.cluster.get

    async def never(*_: object) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(replicas.cluster, "get", never)
    assert replicas.renew(replicas.one, after=9) == (False, False)

    monkeypatch.setattr(replicas.cluster, "get", answers)
    assert replicas.renew(replicas.one) == (True, False)


def test_a_reason_that_stays_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    replicas = Replicas()
    replicas.cluster.refuse = lambda verb, what: ForbiddenError("403: no right on leases")
    replicas.renew(replicas.one, replicas.one, replicas.one)
    replicas.cluster.refuse = lambda verb, what: UnavailableError("down")
    replicas.renew(replicas.one)

    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "nobody acts without it: 403: no right on leases" in told[0]


def test_a_frozen_operator_that_wakes_up_writes_nothing_before_it_has_looked() -> None:
    replicas = Replicas()
    replicas.renew(replicas.one, replicas.other)
    frozen = FencedCluster(replicas.cluster, replicas.one)
    for _ in range(20):
        replicas.renew(replicas.other, after=1)

    with pytest.raises(NotLeaderError):
        asyncio.run(frozen.create(POD))
    assert not replicas.cluster.find(PODS, "shop", "p")


def test_a_frozen_operator_that_wakes_up_lets_nothing_go() -> None:
    replicas = Replicas()
    replicas.renew(replicas.one, replicas.other)
    guard = {"name": "j", "namespace": "shop", "finalizers": [FINALIZER]}
    made = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": guard}
    job = replicas.cluster.add(made)
    replicas.cluster.remove(JOBS, "shop", "j")
    frozen = FencedCluster(replicas.cluster, replicas.one)
    for _ in range(20):
        replicas.renew(replicas.other, after=1)

    with pytest.raises(NotLeaderError):
        asyncio.run(let_go(frozen, job))

    assert replicas.cluster.find(JOBS, "shop", "j") is not None


EFFECTS: dict[str, Callable[[Agent], Coroutine[Any, Any, object]]] = {
    "stop": lambda agent: agent.stop("upgrade-1", StopRequest()),
    "savepoint": lambda agent: agent.savepoint("mine", SavepointRequest(repository="/r")),
    "open_gate": lambda agent: agent.open_gate(2),
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_frozen_operator_that_wakes_up_asks_no_agent_that_it_dialled_before(effect: str) -> None:
    replicas, asked = Replicas(), AsyncMock()
    replicas.renew(replicas.one, replicas.other)
    agent = fenced(lambda url, token: asked, replicas.one)("http://a", "t")
    asyncio.run(EFFECTS[effect](agent))
    before = len(asked.method_calls)
    for _ in range(20):
        replicas.renew(replicas.other, after=1)

    with pytest.raises(NotLeaderError):
        asyncio.run(EFFECTS[effect](agent))

    assert (before, len(asked.method_calls)) == (1, 1)


def test_whoever_waits_may_look_at_what_an_agent_does() -> None:
    replicas, asked = Replicas(), AsyncMock()
    replicas.renew(replicas.one, replicas.other)
    agent = fenced(lambda url, token: asked, replicas.one)("http://a", "t")
    replicas.renew(replicas.other, after=20)

    asyncio.run(_look(agent))

    assert [call[0] for call in asked.method_calls] == ["progress", "get_stop", "get_savepoint"]


async def _look(agent: Agent) -> None:
    await agent.progress()
    await agent.get_stop("upgrade-1", wait=1)
    await agent.get_savepoint("mine")


def test_two_operators_of_one_host_are_two() -> None:
    one, other = identity_on("node-1"), identity_on("node-1")

    assert one != other
    assert one.startswith("node-1_")


def test_a_race_for_the_lease_has_one_winner() -> None:
    replicas = Replicas()
    replicas.renew(replicas.one, replicas.other)
    replicas.cluster.refuse = lambda verb, what: (
        ConflictError("modified") if verb == "replace" else None
    )

    assert replicas.renew(replicas.other, after=20) == (False, False)


def test_only_the_one_that_acts_writes() -> None:
    replicas = Replicas()
    replicas.renew(replicas.one, replicas.other)

    asyncio.run(FencedCluster(replicas.cluster, replicas.one).create(POD))
    with pytest.raises(NotLeaderError):
        asyncio.run(FencedCluster(replicas.cluster, replicas.other).create(POD))
    with pytest.raises(NotLeaderError):
        fenced(lambda url, token: pytest.fail("asked"), replicas.other)("http://a", "t")

    found = asyncio.run(FencedCluster(replicas.cluster, replicas.other).get(PODS, "shop", "p"))
    assert found["metadata"]["name"] == "p"
