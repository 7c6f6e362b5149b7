"""What a record needs to be kept for it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Operation, Record
from tests.unit.lifecycle.worlds import (
    NOW,
    A,
    B,
    C,
    continuing,
    during,
    empty,
    from_savepoint,
    stable,
    steady,
)

RUN = from_savepoint("s1", A)


@pytest.mark.parametrize(
    ("record", "names"),
    [
        pytest.param(Record(), set(), id="nothing"),
        pytest.param(steady(empty(A)), set(), id="empty"),
        pytest.param(steady(RUN), {"s1"}, id="begun with"),
        pytest.param(steady(continuing(RUN)), {"s1"}, id="begun with, attempts ago"),
        pytest.param(steady(RUN, stable=stable(A, "s0")), {"s0", "s1"}, id="the way back"),
        pytest.param(
            during(Kind.SUSPEND, Phase.STOP, empty(A), savepoint="s2"), {"s2"}, id="to be captured"
        ),
        pytest.param(
            during(Kind.RESTORE, Phase.STOP, empty(A), target=RUN), {"s1"}, id="to begin with"
        ),
        pytest.param(steady(replace(empty(A), left="s3")), {"s3"}, id="given up for it"),
        pytest.param(
            steady(replace(RUN, given_up=from_savepoint("s4", B))), {"s1", "s4"}, id="rolled back"
        ),
    ],
)
def test_savepoints_that_are_needed_are_referred_to(record: Record, names: set[str]) -> None:
    assert record.references() == names


def test_revisions_that_may_run_again_are_named() -> None:
    record = during(
        Kind.UPGRADE, Phase.STOP, empty(B), target=continuing(empty(B), C), stable=stable(A)
    )

    assert record.revisions() == {A.name, B.name, C.name}


def test_the_image_that_proved_itself_is_trusted_most_then_the_newest() -> None:
    record = during(
        Kind.UPGRADE, Phase.STOP, empty(B), target=continuing(empty(B), C), stable=stable(A)
    )

    assert record.able() == (A, C, B)
    assert steady(empty(A)).able() == (A,)


def test_a_phase_that_is_gone_through_again_has_the_sum_of_both_times() -> None:
    operation = Operation(
        id="upgrade-2",
        kind=Kind.UPGRADE,
        phase=Phase.STOP,
        generation=2,
        started=NOW,
        phase_started=NOW,
        spent=((Phase.STOP, 2.0), (Phase.LAUNCH, 5.0)),
    )

    assert operation.spent_until(NOW) == operation.spent
    assert operation.spent_until(NOW + timedelta(seconds=3)) == (
        (Phase.STOP, 5.0),
        (Phase.LAUNCH, 5.0),
    )
