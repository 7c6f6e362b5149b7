"""The tables and the diagram of docs/lifecycle.md are what the phases say."""

import pytest

from dev.lifecycle_page import PAGE, generated_page
from sparkpoint.lifecycle.phases import (
    AGAIN,
    INTERRUPTIONS,
    MEANINGS,
    PLANS,
    PURPOSES,
    Kind,
    Phase,
    following,
)


def test_the_page_is_what_would_be_generated() -> None:
    page = PAGE.read_text()

    assert generated_page(page) == page, "the phases have changed: python -m dev.lifecycle_page"


def test_a_page_without_a_place_for_a_part_is_refused() -> None:
    with pytest.raises(ValueError, match="generated: operations"):
        generated_page("# Nothing")


def test_every_operation_and_every_phase_is_explained() -> None:
    assert set(PLANS) == set(PURPOSES) == set(Kind)
    assert set(MEANINGS) == set(INTERRUPTIONS) == set(Phase)
    assert {phase for plan in PLANS.values() for phase in plan} == set(Phase)


@pytest.mark.parametrize("kind", Kind)
def test_phases_follow_one_another_in_the_same_order_everywhere(kind: Kind) -> None:
    order = list(Phase)
    plan = PLANS[kind]

    assert list(plan) == sorted(plan, key=order.index)
    assert [following(kind, phase) for phase in plan] == [*plan[1:], None]


def test_what_is_launched_again_is_stopped_first() -> None:
    launching = [kind for kind in Kind if Phase.LAUNCH in PLANS[kind]]

    assert set(AGAIN.values()) == {Phase.STOP}
    # A first start is never on trial, so it is the only one that need not have a way to stop.
    assert [kind for kind in launching if Phase.STOP not in PLANS[kind]] == [Kind.START]
