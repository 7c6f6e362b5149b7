"""The cluster of the tests, as the crash matrix needs it."""

import os
from collections.abc import Iterator

import pytest

from dev.cluster.layout import find_layout
from dev.cluster.lifecycle import Cluster, lower_cluster
from tests.chaos.ground import ground, stage_on
from tests.chaos.play import Player


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Without an operator; ended with the run, unless KEEP_CLUSTER is set."""
    with ground() as raised:
        yield raised
    if "KEEP_CLUSTER" not in os.environ and raised.layout is not None:
        found = find_layout(raised.layout.name)
        if found is not None:
            lower_cluster(found)


@pytest.fixture
def player(cluster: Cluster) -> Iterator[Player]:
    """On a stage of its own."""
    with stage_on(cluster, on_s3=False) as stage:
        yield Player(stage)
