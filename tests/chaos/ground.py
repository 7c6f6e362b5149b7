"""The cluster of the crash matrix, and stages on it."""

import contextlib
import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

from dev.cache import exclusive
from dev.cluster.lifecycle import Cluster, lower_cluster, raise_cluster
from dev.console import Problem, say
from dev.image.load import load_images
from dev.operator import NAMESPACE as OPERATOR
from tests.chaos.stage import Stage, remove
from tests.cluster.namespace import Namespace

__all__ = ["ground", "grounds", "stage_on"]

_PREFIX = "chaos-"
_CRDS = Path(__file__).parent.parent.parent / "crds"


@contextlib.contextmanager
def ground(suffix: str = "") -> Iterator[Cluster]:
    """The cluster of the tests without an operator, as every stage has its own; nobody else's
    meanwhile, and without what a run that was killed has left. With a suffix: another one."""
    name = os.environ.get("TEST_CLUSTER", "test") + suffix
    if os.environ.get("CONTEXT"):
        raise Problem("The crash matrix stops the programs of a node.", remedy="leave CONTEXT out.")
    with exclusive(f"chaos-on-{name}"):
        cluster = raise_cluster(name)
        load_images(cluster)
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(_CRDS))
        cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(_CRDS))
        away = ("delete", "deployment", "--all", "--ignore-not-found")
        cluster.kubectl("-n", OPERATOR, *away)
        active = ("get", "namespaces", "--field-selector=status.phase=Active", "-o", "name")
        for left in cluster.kubectl(*active).split():
            if left.startswith(f"namespace/{_PREFIX}"):
                remove(Namespace(cluster, left.partition("/")[2]))
        yield cluster


@contextlib.contextmanager
def grounds(first: Cluster, number: int) -> Iterator[list[Cluster]]:
    """So many clusters: this one, and others that are ended again; fewer if they cannot be had."""
    with contextlib.ExitStack() as stack:
        found = [first]
        try:
            # One by one: those that could be had are kept.
            found.extend(stack.enter_context(_lent(f"-{each}")) for each in range(2, number + 1))
        except Problem as problem:
            say(f"{len(found)} of {number} lanes: {problem}")
        yield found


@contextlib.contextmanager
def _lent(suffix: str) -> Iterator[Cluster]:
    with ground(suffix) as cluster:
        try:
            yield cluster
        finally:
            if cluster.layout is not None:
                lower_cluster(cluster.layout)


@contextlib.contextmanager
def stage_on(cluster: Cluster, *, on_s3: bool, in_turn: bool = False) -> Iterator[Stage]:
    """A stage, and its end. `in_turn`: its operator acts while it holds a Lease."""
    with tempfile.TemporaryDirectory(prefix="sparkpoint-chaos-") as folder:
        name = f"{_PREFIX}{uuid.uuid4().hex[:6]}"
        stage = Stage(cluster, name, Path(folder), on_s3=on_s3, in_turn=in_turn)
        try:
            stage.open()
            yield stage
        finally:
            stage.close()
