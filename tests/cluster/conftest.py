"""One real cluster for the whole run; a namespace of its own for every test."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.cluster.lifecycle import Cluster, lower_cluster, raise_cluster
from dev.image.load import load_images
from dev.operator import install_operator
from tests.cluster.namespace import Namespace

_CLUSTER = os.environ.get("TEST_CLUSTER", "test")
_S3 = Path(__file__).parent.parent.parent / "dev" / "s3" / "seaweedfs.yaml"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The cluster of the tests, with our images, ended with the run unless KEEP_CLUSTER is set.

    Its name differs from the demo's: tests must not kill what a person is looking at.
    """
    raised = raise_cluster(_CLUSTER, context=os.environ.get("CONTEXT") or None)
    load_images(raised)
    yield raised
    if raised.layout and "KEEP_CLUSTER" not in os.environ:
        lower_cluster(raised.layout)


@pytest.fixture(scope="session")
def operator(cluster: Cluster) -> Cluster:
    """The same cluster with the operator in it."""
    install_operator(cluster)
    return cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    """A fresh namespace with an S3 server in it."""
    made = Namespace(cluster, f"test-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", made.name)
    yield made
    cluster.kubectl("delete", "namespace", made.name, "--wait=false")


@pytest.fixture
def s3(namespace: Namespace) -> Namespace:
    """The same namespace once its S3 server answers, with a bucket called `data`."""
    namespace.kubectl("apply", "-f", str(_S3))
    namespace.kubectl("rollout", "status", "deployment/s3", "--timeout=120s", timeout=150)
    return namespace
