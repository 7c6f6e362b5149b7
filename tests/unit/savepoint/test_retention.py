"""Retention as tables of (savepoints, policy) -> what stays, and its laws."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkpoint.savepoint import Savepoint
from sparkpoint.savepoint.manifest import parse_manifest
from sparkpoint.savepoint.retention import RetentionPolicy, plan_retention
from tests.unit.savepoint.test_documents import GOLDEN

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
MANIFEST = parse_manifest((GOLDEN / "manifest-1.json").read_bytes(), "golden")


def savepoint(hours: float, *, tags: tuple[str, ...] = (), job: str = "visits") -> Savepoint:
    created = NOW - timedelta(hours=hours)
    name = f"h{hours}".replace(".", "-")
    manifest = MANIFEST.model_copy(update={"created": created, "name": name, "job": job})
    return Savepoint(f"{job}-{hours}", f"{job}/{name}", created.timestamp(), manifest, tags)


def test_a_clock_that_is_ahead_keeps_nothing_longer() -> None:
    ahead = NOW + timedelta(days=700)
    manifest = MANIFEST.model_copy(update={"created": ahead, "name": "ahead", "job": "visits"})
    written = (NOW - timedelta(hours=3)).timestamp()
    fast = Savepoint("fast", "visits/ahead", written, manifest, ())
    policy = RetentionPolicy(last=1, grace=timedelta(hours=1))

    plan = plan_retention([fast, savepoint(2), savepoint(1)], policy, now=NOW)

    assert [each.savepoint.manifest.name for each in plan.keep] == ["h1"]
    assert {each.manifest.name for each in plan.remove} == {"ahead", "h2"}


def kept(savepoints: list[Savepoint], policy: RetentionPolicy) -> list[str]:
    plan = plan_retention(savepoints, policy, now=NOW)
    return [each.savepoint.manifest.name for each in plan.keep]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (RetentionPolicy(last=2), ["h0", "h1"]),
        (RetentionPolicy(hourly=3), ["h0", "h1", "h2"]),
        (RetentionPolicy(daily=2), ["h0", "h20"]),
        (RetentionPolicy(weekly=3), ["h0", "h20", "h200"]),
        (RetentionPolicy(monthly=2), ["h0", "h800"]),
        (RetentionPolicy(tagged=True), ["h0", "h2"]),
        (RetentionPolicy(tags=frozenset({"silver"})), ["h0"]),
        (RetentionPolicy(max_age=timedelta(hours=3)), ["h0", "h1", "h2"]),
        (RetentionPolicy(last=9, max_age=timedelta(hours=1)), ["h0", "h1"]),
        (RetentionPolicy(last=1, grace=timedelta(hours=1.5)), ["h0", "h1"]),
    ],
    ids=str,
)
def test_each_rule_keeps_what_it_names(policy: RetentionPolicy, expected: list[str]) -> None:
    history = [savepoint(0), savepoint(1), savepoint(2, tags=("gold",)), savepoint(20)]
    history += [savepoint(200), savepoint(800)]

    assert kept(history, policy) == expected


def test_every_job_keeps_its_own() -> None:
    history = [savepoint(0), savepoint(5), savepoint(7, job="other"), savepoint(9, job="other")]

    plan = plan_retention(history, RetentionPolicy(last=1), now=NOW)

    assert [each.savepoint.manifest.name for each in plan.keep] == ["h0", "h7"]


def test_what_is_in_use_stays_and_says_by_whom() -> None:
    history = [savepoint(0), savepoint(5)]

    plan = plan_retention(
        history, RetentionPolicy(last=1), now=NOW, protected={"visits-5": "job visits"}
    )

    assert plan.keep[1].reasons == ("used by job visits",)


def test_a_policy_without_rules_is_refused() -> None:
    with pytest.raises(ValueError, match="remove everything"):
        RetentionPolicy()
    with pytest.raises(ValueError, match="less than nothing"):
        RetentionPolicy(last=-1)


POLICIES = st.builds(
    RetentionPolicy,
    last=st.integers(1, 5),
    hourly=st.integers(0, 5),
    daily=st.integers(0, 5),
    weekly=st.integers(0, 3),
    monthly=st.integers(0, 3),
    tagged=st.booleans(),
    max_age=st.none() | st.timedeltas(timedelta(0), timedelta(days=90)),
)
HISTORIES = st.lists(
    st.builds(
        savepoint,
        st.floats(0, 3000, allow_nan=False).map(lambda hours: round(hours, 2)),
        tags=st.sampled_from([(), ("gold",)]),
        job=st.sampled_from(["visits", "other"]),
    ),
    max_size=30,
    unique_by=lambda each: each.id,
)


@given(history=HISTORIES, policy=POLICIES)
@settings(max_examples=60, deadline=None)
def test_laws_of_retention(history: list[Savepoint], policy: RetentionPolicy) -> None:
    plan = plan_retention(history, policy, now=NOW)
    stays = {each.savepoint.id for each in plan.keep}
    goes = {each.id for each in plan.remove}

    assert stays | goes == {each.id for each in history}
    assert not stays & goes
    assert all(each.reasons for each in plan.keep)
    for job in {each.manifest.job for each in history}:
        of_job = [each for each in history if each.manifest.job == job]
        newest = max(of_job, key=lambda each: (each.manifest.created, each.published, each.path))
        assert newest.id in stays
    if policy.tagged:
        assert all(each.id in stays for each in history if each.tags)
    # Doing it again changes nothing more.
    again = plan_retention([each.savepoint for each in plan.keep], policy, now=NOW)
    assert not again.remove
