"""Which operation a wish needs, as a table."""

from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.lifecycle.changes import change
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Held, Record
from sparkpoint.lifecycle.world import Policy, Wish
from tests.unit.lifecycle.worlds import (
    NOW,
    A,
    B,
    empty,
    from_savepoint,
    restore,
    revision,
    steady,
    wish,
    world,
)

RUN = steady(empty(A))
SUSPENDED = steady(empty(A), suspended=True)
HELD = Held(revision=B.name, restore=None, reason="RolledBack", message="")
HELD_RESTORE = Held(revision=A.name, restore="s1#1", reason="Incompatible", message="")
LATER = Held(
    revision=B.name, restore=None, reason="SavepointFailed", message="", until=NOW + timedelta(1)
)
TRIED = Held(revision=B.name, reason="Incompatible", message="", policy=Policy().decisive)
AGAIN = Held(
    revision=B.name, restore=None, reason="SavepointFailed", message="", until=NOW - timedelta(1)
)


@pytest.mark.parametrize(
    ("record", "wished", "expected"),
    [
        pytest.param(Record(), wish(A), Kind.START, id="nothing yet"),
        pytest.param(Record(), wish(A, suspend=True), None, id="not to be started"),
        pytest.param(RUN, wish(A), None, id="as wished"),
        pytest.param(RUN, wish(A, generation=9, deadline=timedelta(1)), None, id="policy only"),
        pytest.param(RUN, wish(B), Kind.UPGRADE, id="other code"),
        pytest.param(RUN, wish(revision("a", size="9")), Kind.RESCALE, id="other size"),
        pytest.param(RUN, wish(revision("b", size="9")), Kind.UPGRADE, id="other code and size"),
        pytest.param(RUN, wish(revision("a", nonce="1")), Kind.RESTART, id="other nonce"),
        pytest.param(RUN, wish(B, suspend=True), Kind.SUSPEND, id="suspend goes first"),
        pytest.param(RUN, wish(B, restore=restore("s1")), Kind.RESTORE, id="restore with new code"),
        pytest.param(SUSPENDED, wish(B, suspend=True), None, id="suspended stays so"),
        pytest.param(SUSPENDED, wish(A), Kind.RESUME, id="resume"),
        pytest.param(SUSPENDED, wish(B), Kind.UPGRADE, id="resume with new code"),
        pytest.param(
            steady(empty(A), restored="s1#1"), wish(A, restore=restore("s1")), None, id="restored"
        ),
        pytest.param(steady(empty(A), held=HELD), wish(B), None, id="held"),
        pytest.param(steady(empty(A), held=HELD), wish(revision("c")), Kind.UPGRADE, id="other"),
        pytest.param(steady(empty(A), held=LATER), wish(B), None, id="held for a time"),
        pytest.param(steady(empty(A), held=AGAIN), wish(B), Kind.UPGRADE, id="time is over"),
        pytest.param(steady(empty(A), held=TRIED), wish(B, generation=9), None, id="said again"),
        pytest.param(
            steady(empty(A), held=TRIED),
            wish(B, max_failures=3, final_savepoint=True, rollback_to="Latest"),
            None,
            id="held, and a policy that decides nothing",
        ),
        pytest.param(
            steady(empty(A), held=HELD, suspended=True), wish(B), Kind.RESUME, id="resume what was"
        ),
        pytest.param(
            steady(empty(A), held=HELD_RESTORE, suspended=True),
            wish(A, restore=restore("s1")),
            Kind.RESUME,
            id="resume what was not restored",
        ),
        pytest.param(
            steady(empty(A, opened=False)),
            wish(revision("a", state="p8")),
            Kind.UPGRADE,
            id="other partitions before anything was written",
        ),
        pytest.param(RUN, wish(revision("a", partitions=8)), Kind.REPARTITION, id="partitions"),
        pytest.param(
            RUN,
            wish(revision("b", size="9", partitions=8)),
            Kind.REPARTITION,
            id="other partitions, code and size at once",
        ),
        pytest.param(
            SUSPENDED,
            wish(revision("a", partitions=8)),
            Kind.REPARTITION,
            id="resume in other partitions",
        ),
        pytest.param(
            SUSPENDED,
            wish(revision("a", partitions=8), suspend=True),
            None,
            id="other partitions have time until it is resumed",
        ),
        pytest.param(
            steady(from_savepoint("s1", A, opened=False)),
            wish(revision("a", partitions=8)),
            Kind.REPARTITION,
            id="other partitions than the savepoint's",
        ),
        pytest.param(
            RUN,
            wish(revision("a", state="p8"), mode="Stateless"),
            Kind.UPGRADE,
            id="other partitions without state",
        ),
    ],
)
def test_a_wish_needs_an_operation(record: Record, wished: Wish, expected: Kind | None) -> None:
    found = change(world(record, wish=wished))

    assert (found.kind if found else None) is expected
    assert found is None or not found.refusal


@pytest.mark.parametrize(
    ("record", "wished", "words"),
    [
        pytest.param(
            steady(empty(revision("a", fixed="hdfs", partitions=4))),
            wish(revision("a", fixed="rocksdb", partitions=8)),
            "sparkpoint state migrate",
            id="another provider",
        ),
        pytest.param(
            steady(empty(revision("a", partitions=4))),
            wish(revision("a", state="left out")),
            "Set it back to 4",
            id="partitions left out",
        ),
        pytest.param(
            steady(empty(revision("a", partitions=4))),
            wish(revision("a", partitions=8), repository=False),
            "Set spec.savepoints.repository, or the number back to 4.",
            id="other partitions without a repository",
        ),
        pytest.param(
            steady(from_savepoint("shop/other/s1", A, opened=False)),
            wish(revision("a", partitions=8)),
            "Let it begin",
            id="other partitions than another job's savepoint has",
        ),
        pytest.param(
            RUN,
            wish(A, restore=restore("s1", ready=False, problem="s1 is corrupt.")),
            "s1 is corrupt.",
            id="cannot be restored",
        ),
        pytest.param(
            Record(),
            wish(A, restore=restore("s1", ready=False)),
            "s1 is not complete",
            id="not there yet",
        ),
    ],
)
def test_what_cannot_be_had_is_refused_with_the_reason(
    record: Record, wished: Wish, words: str
) -> None:
    found = change(world(record, wish=wished))

    assert found is not None
    assert words in found.refusal


@pytest.mark.parametrize(
    "policy",
    [
        {"compatibility": "Warn"},
        {"mode": "Stateless"},
        {"rollback": False},
        {"deadline": timedelta(hours=1)},
        {"stable_after": 1},
    ],
)
def test_a_policy_that_may_let_it_pass_ends_what_is_held(policy: dict[str, Any]) -> None:
    found = change(world(steady(empty(A), held=TRIED), wish=wish(B, **policy)))

    assert found is not None
    assert found.kind is Kind.UPGRADE


def test_what_was_held_before_policies_were_written_down_stays_held() -> None:
    wished = wish(B, compatibility="Warn")

    assert change(world(steady(empty(A), held=HELD), wish=wished)) is None
