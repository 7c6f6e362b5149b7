"""Two releases that were told to serve one namespace: one acts, the other says so."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from sparkpoint.controller import claims
from sparkpoint.controller.claims import CLAIM_NAME, Claims
from sparkpoint.controller.cluster import LEASES, Kind, Object
from sparkpoint.controller.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnavailableError,
)
from sparkpoint.controller.keys import Key
from sparkpoint.controller.metrics import JobFigures, Metrics
from sparkpoint.controller.passes import Gate, Passes, Requeue
from tests.unit.controller.fakecluster import FakeCluster


@dataclass
class Releases:
    """Two of them in one cluster; their clocks differ by an hour."""

    seconds: float = 1000.0
    cluster: FakeCluster = field(init=False)

    def __post_init__(self) -> None:
        self.cluster = FakeCluster(self._now)
        self.one = self.release("team-a/sparkpoint-operator")
        self.other = self.release("team-b/sparkpoint-operator", timedelta(hours=1))

    def _now(self) -> datetime:
        return datetime(2026, 11, 17, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def release(self, claimant: str, skew: timedelta = timedelta(0)) -> Claims:
        return Claims(
            self.cluster,
            claimant=claimant,
            monotonic=lambda: self.seconds,
            now=lambda: self._now() + skew,
        )

    def serve(self, *claims: Claims, namespace: str = "shop", after: float = 0) -> list[bool]:
        self.seconds += after

        async def ask() -> list[bool]:
            return [await each.serves(namespace) for each in claims]

        return asyncio.run(ask())


def test_the_first_release_serves_and_the_other_one_says_which(
    caplog: pytest.LogCaptureFixture,
) -> None:
    releases = Releases()

    for _ in range(20):
        assert releases.serve(releases.one, releases.other, after=31) == [True, False]

    [told] = releases.other.notes()
    assert "shop is served by team-a/sparkpoint-operator" in told
    assert "team-b/sparkpoint-operator" in told
    assert [record.getMessage() for record in caplog.records] == [told]
    assert not releases.one.notes()


def test_each_namespace_is_claimed_on_its_own() -> None:
    releases = Releases()
    releases.serve(releases.one, namespace="shop")

    assert releases.serve(releases.other, releases.one, namespace="lab") == [True, False]
    assert releases.serve(releases.one, releases.other, namespace="shop") == [True, False]


def test_a_release_that_has_gone_is_followed() -> None:
    releases = Releases()
    releases.serve(releases.one, releases.other)

    held = [releases.serve(releases.other, after=31)[0] for _ in range(8)]

    assert held == [False] * 5 + [True] * 3
    assert not releases.other.notes()
    assert releases.serve(releases.one, after=1) == [False]


def test_a_release_stops_serving_before_it_can_be_followed() -> None:
    releases = Releases()
    releases.serve(releases.one)
    releases.cluster.refuse = lambda verb, what: UnavailableError("down")

    with pytest.raises(UnavailableError):
        releases.serve(releases.one, after=121)


def test_a_claim_that_somebody_touched_meanwhile_is_still_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    releases = Releases()
    releases.serve(releases.one)
    refusals = [ConflictError("modified")]
    releases.cluster.refuse = lambda verb, what: (
        refusals.pop() if verb == "replace" and refusals else None
    )

    assert releases.serve(releases.one, after=31) == [True]
    assert not refusals
    assert not releases.one.notes()
    assert not caplog.records


def test_a_lease_that_a_person_wrote_may_lack_anything() -> None:
    releases = Releases()
    spec = {"holderIdentity": "team-a/sparkpoint-operator"}
    about = {"name": CLAIM_NAME, "namespace": "shop"}
    releases.cluster.add(
        {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": about,
            "spec": spec,
        }
    )

    assert releases.serve(releases.one) == [True]


def test_the_next_replica_of_a_release_goes_on_at_once() -> None:
    releases = Releases()
    releases.serve(releases.one)

    assert releases.serve(releases.release("team-a/sparkpoint-operator"), after=1) == [True]


def test_passes_cost_a_request_now_and_then_and_not_each_time() -> None:
    releases = Releases()
    for _ in range(100):
        releases.serve(releases.one, after=1)

    renewals = [call for call in releases.cluster.writes if call[1] == "Lease"]
    assert len(renewals) == 4
    lease = releases.cluster.find(LEASES, "shop", CLAIM_NAME)
    assert lease is not None
    assert lease["spec"]["leaseTransitions"] == 1


def test_a_namespace_that_has_gone_is_forgotten() -> None:
    releases = Releases()
    releases.serve(releases.one, namespace="gone")
    releases.serve(releases.one, namespace="shop")

    releases.cluster.refuse = lambda verb, what: UnavailableError("down")
    releases.seconds += 31
    asyncio.run(releases.one.renew_all())
    releases.cluster.refuse = lambda verb, what: NotFoundError("no such namespace")
    asyncio.run(releases.one.renew_all())
    releases.cluster.refuse = lambda verb, what: None
    before = len(releases.cluster.writes)
    asyncio.run(releases.one.renew_all())

    assert len(releases.cluster.writes) == before
    assert releases.serve(releases.one) == [True]


def test_what_is_in_an_ending_namespace_can_go() -> None:
    releases = Releases()
    releases.cluster.refuse = lambda verb, what: (
        ForbiddenError("403: because it is being terminated") if verb == "create" else None
    )

    assert releases.serve(releases.one) == [True]


def test_a_right_that_is_missing_is_told_and_nothing_is_done() -> None:
    releases = Releases()
    releases.cluster.refuse = lambda verb, what: ForbiddenError("403: no right on leases")

    with pytest.raises(ForbiddenError):
        releases.serve(releases.one)


def test_a_pass_over_a_job_that_is_served_elsewhere_does_nothing() -> None:
    releases, metrics, key = Releases(), Metrics(), Key("shop", "visits")
    releases.serve(releases.one)
    # As it was when it was ours.
    metrics.seen("job", key, "Running")
    metrics.figures(key, JobFigures(savepoint_at=1.0))
    passes = Passes("job", Gate(1), metrics, serves=releases.other.serves)

    async def work(_: Key) -> Requeue:
        pytest.fail("another release looks after it")

    assert asyncio.run(passes.run(key, work)).seconds == 30
    assert "visits" not in metrics.render()
    assert 'sparkpoint_operator_resources{kind="job"' not in metrics.render()


def test_what_was_given_back_is_the_next_ones_at_once_and_never_another_s() -> None:
    releases = Releases()
    assert releases.serve(releases.one, releases.other) == [True, False]

    asyncio.run(releases.other.give_back())
    assert releases.serve(releases.one, releases.other, after=40) == [True, False]
    asyncio.run(releases.one.give_back())

    assert releases.serve(releases.other, after=40) == [True]


def test_all_are_given_back_at_once_and_an_api_server_that_hangs_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claims, "_PATIENCE", 0.05)
    releases, namespaces = Releases(), [f"shop-{number}" for number in range(20)]
    for namespace in namespaces:
        releases.serve(releases.one, namespace=namespace)
    asked: list[str] = []

    async def hang(_: Kind, namespace: str, __: str) -> Object:
        asked.append(namespace)
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(releases.cluster, "get", hang)

    async def give_back() -> None:
        await asyncio.wait_for(releases.one.give_back(), 10)

    asyncio.run(give_back())

    assert asked == namespaces
