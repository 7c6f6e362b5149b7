"""One real cluster for the whole run and all its workers; a namespace of its own for every test."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.cache import exclusive
from dev.cluster.layout import find_layout
from dev.cluster.lifecycle import Cluster, lower_cluster, raise_cluster
from dev.image.load import load_images
from dev.operator import install_operator
from tests.cluster.grounds import Ground
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, job_spec

_HERE = Path(__file__).parent
_CLUSTER = os.environ.get("TEST_CLUSTER", "test")
_CONTEXT = os.environ.get("CONTEXT") or None
_S3 = _HERE.parent.parent / "dev" / "s3" / "seaweedfs.yaml"


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The cluster of the tests, with our images.

    Its name differs from the demo's: tests must not kill what a person is looking at.
    """
    with exclusive(f"tests-of-{_CLUSTER}"):  # the first worker raises it
        raised = raise_cluster(_CLUSTER, context=_CONTEXT)
        load_images(raised)
    return raised


@pytest.fixture(scope="session")
def operator(cluster: Cluster) -> Cluster:
    """The same cluster with the operator in it."""
    with exclusive(f"tests-of-{_CLUSTER}"):
        install_operator(cluster)
    return cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What may take longest comes first, so that no worker ends alone with a long story."""
    ours = [item for item in items if item.path.is_relative_to(_HERE)]
    others = [item for item in items if item not in ours]
    items[:] = others + sorted(ours, key=_longest, reverse=True)


def _longest(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the cluster with the run, unless KEEP_CLUSTER is set: after the last of all workers."""
    is_worker = hasattr(session.config, "workerinput")
    if is_worker or session.config.option.collectonly or _CONTEXT or "KEEP_CLUSTER" in os.environ:
        return
    if layout := find_layout(_CLUSTER):
        lower_cluster(layout)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    """A fresh namespace."""
    made = Namespace(cluster, f"test-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", made.name)
    yield made
    cluster.kubectl("delete", "namespace", made.name, "--wait=false")
    # Drivers would take their time to stop at a boundary, beside the tests that come next.
    made.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")


@pytest.fixture
def s3(namespace: Namespace) -> Namespace:
    """The same namespace once its S3 server answers."""
    _start_s3(namespace)
    return namespace


@pytest.fixture
def job(request: pytest.FixtureRequest, operator: Cluster, namespace: Namespace) -> Job:
    """The URL visits job under the operator, on the ground that the test names."""
    ground: Ground = request.param
    if ground.on_s3:
        _start_s3(namespace)
    return Job(namespace, job_spec(on_s3=ground.on_s3, provider=ground.provider))


def _start_s3(namespace: Namespace) -> None:
    namespace.kubectl("apply", "-f", str(_S3))
    namespace.kubectl("rollout", "status", "deployment/s3", "--timeout=120s", timeout=150)
