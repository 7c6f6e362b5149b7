"""A share of the crash matrix for every run of the tests; `make chaos` runs all of it."""

import pytest

from sparkpoint.lifecycle.phases import Kind, Phase
from tests.chaos.matrix import Fault, Run
from tests.chaos.play import Player

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_an_operator_that_dies_in_every_phase_of_an_upgrade_leaves_it_exact(
    player: Player,
) -> None:
    phases = (Phase.STOP, Phase.LAUNCH, Phase.OBSERVE)

    played = player.play(Run(Kind.UPGRADE, phases, Fault.OPERATOR))

    assert (tuple(played.struck), played.ended) == (phases, "Upgrade Succeeded")
