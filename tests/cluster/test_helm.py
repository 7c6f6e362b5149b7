"""The chart on a real cluster: installed, upgraded from an older one, narrowed, removed, again.

In a cluster of its own, as definitions are shared by all of a cluster, and the other tests need
theirs whole. Both namespaces enforce the `restricted` level of pod security, so that the pods of
the operator, of `helm test`, and every driver, executor and worker are proven to meet it.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.cluster.layout import find_layout
from dev.cluster.lifecycle import Cluster, lower_cluster, raise_cluster
from dev.console import Problem
from dev.helm import CHART, helm
from dev.image.load import load_images
from dev.jobs import toolbox, volume_claim
from dev.operator import development_values
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, job_spec
from tests.cluster.replicas import Replicas

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

_CLUSTER = os.environ.get("TEST_CLUSTER", "test") + "-helm"
_SYSTEM = "sparkpoint-system"
_JOBS = "shop"
_COLUMN = "Restored-From"
"""What an older definition may well have lacked. No field: an operator refuses to act without."""
_TOLD = 35.0
_FOLLOWED = 20.0
"""Seconds after which another replica acts, at the latest."""
_RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


@pytest.fixture
def own() -> Iterator[Cluster]:
    """A cluster for this test alone, with our images and two restricted namespaces."""
    if left := find_layout(_CLUSTER):
        # By a run that was killed.
        lower_cluster(left)
    raised = raise_cluster(_CLUSTER)
    load_images(raised)
    for name in (_SYSTEM, _JOBS):
        raised.kubectl("create", "namespace", name)
        raised.kubectl("label", "namespace", name, _RESTRICTED)
    yield raised
    assert raised.layout is not None
    lower_cluster(raised.layout)


@dataclass(frozen=True, slots=True)
class Release:
    """The release `sparkpoint`, and what Helm does with it."""

    cluster: Cluster

    def put(self, chart: Path, **values: Any) -> str:
        """Install or upgrade, and wait until the operator is ready."""
        given = {**development_values(), "jobs": {"namespaces": [_JOBS]}, **values}
        arguments = ("upgrade", "--install", "sparkpoint", chart, "--values=-", "--reset-values")
        return self._helm(*arguments, "--wait", "--timeout=180s", text=json.dumps(given))

    def test(self) -> str:
        """What `helm test` says."""
        return self._helm("test", "sparkpoint", "--timeout=180s")

    def uninstall(self) -> str:
        """What Helm says that it leaves."""
        return self._helm("uninstall", "sparkpoint", "--wait", "--timeout=120s")

    def _helm(self, *arguments: str | Path, text: str | None = None) -> str:
        return helm(*arguments, f"--namespace={_SYSTEM}", on=self.cluster, text=text, timeout=240)


def test_jobs_run_on_through_every_change_of_the_release(own: Cluster, tmp_path: Path) -> None:
    release, namespace = Release(own), Namespace(own, _JOBS)
    release.put(_older_chart(tmp_path))
    assert not _shows_column(own)
    release.test()
    job = Job(namespace, job_spec())
    _begin(job)
    pods = _pods(job)

    # An upgrade brings what the definition lacked, and the job does not notice.
    release.put(CHART)
    assert _shows_column(own)
    assert "Succeeded" in release.test()
    job.feed(1)
    job.await_exact()
    assert _pods(job) == pods

    # One of two operators acts. Frozen, it is followed; when it wakes up, it changes nothing.
    release.put(CHART, replicas=2)
    _fail_over(job, Replicas(own, _SYSTEM))
    job.feed(1)
    job.await_exact()
    assert _pods(job) == pods

    # The same release without any right beyond its namespaces still stops, captures and starts.
    release.put(CHART, watch={"scope": "Namespaces", "namespaces": [_JOBS]})
    assert not _clusterwide(own)
    release.test()
    job.spec["suspend"] = True
    job.apply()
    job.await_phase("Suspended")
    job.ask_for_savepoint("mine")
    job.await_savepoint("mine")
    job.spec["suspend"] = False
    job.feed(1)
    job.apply()
    job.await_exact()
    job.await_phase("Running")

    # Values that contradict each other change nothing.
    with pytest.raises(Problem, match="two operators must not act at once"):
        release.put(CHART, replicas=2, leaderElection={"enabled": False})

    # Without the operator the job runs on, with all that is its own.
    pods = _pods(job)
    assert "statefulsparkjobs.sparkpoint.dev" in release.uninstall()
    assert own.kubectl("-n", _SYSTEM, "get", "deployments", "-o", "name") == ""
    assert _shows_column(own)
    assert job.savepoint("mine")["phase"] == "Completed"
    namespace.kubectl("get", "serviceaccount/spark", "role/sparkpoint-driver")
    job.feed(1)
    job.await_exact()
    assert _pods(job) == pods

    # It comes back, finds everything, and ends the job in order.
    release.put(CHART)
    job.await_phase("Running")
    assert _pods(job) == pods
    namespace.kubectl("delete", "ssj", job.name, "--timeout=180s", timeout=200)
    namespace.await_true(
        "the driver's pod to go",
        lambda: not namespace.pods("sparkpoint.dev/role=driver"),
        seconds=120,
    )


def _fail_over(job: Job, replicas: Replicas) -> None:
    """Freeze the operator that acts until the other one has, and let it look again."""
    job.namespace.await_true(
        "one of two operators to act, and those of before to be gone",
        lambda: len(pods := replicas.pods()) == 2 and replicas.acting() in pods,
        seconds=200,
    )
    first = replicas.acting()
    _await_idle(job.namespace, replicas, first)
    written = replicas.writes(first)

    with replicas.frozen(first) as since:
        job.namespace.await_true(
            "another operator to act",
            lambda: replicas.acting() in set(replicas.pods()) - {first},
            seconds=200,
        )
        taken = (replicas.acting_since() - since).total_seconds()
        # From the freeze to the Lease, as docs/operator.md promises; 18 s by its terms
        # (tests/unit/controller/test_leadership.py).
        print(f"followed after {taken:.1f} s")
        assert 0 < taken < _FOLLOWED
        job.ask_for_savepoint("meanwhile")
        job.await_savepoint("meanwhile")
        second = replicas.acting()

    assert {first, second} == set(replicas.pods())
    looks = replicas.looks(first)
    job.ask_for_savepoint("afterwards")
    job.await_savepoint("afterwards")
    job.namespace.await_true(
        "the first one to look", lambda: replicas.looks(first) > looks + 2, seconds=200
    )
    assert (replicas.leads(first), replicas.leads(second)) == (False, True)
    assert replicas.writes(first) == written
    assert replicas.acting() == second


def _await_idle(namespace: Namespace, replicas: Replicas, pod: str) -> None:
    """Until it has had nothing to write for longer than it waits to tell of progress."""
    since: dict[float, float] = {}

    def is_idle() -> bool:
        now = time.monotonic()
        return now - since.setdefault(replicas.writes(pod), now) > _TOLD

    namespace.await_true("an operator that has nothing to do", is_idle, seconds=400)


def _older_chart(folder: Path) -> Path:
    """This chart with a lower version and a definition that shows less."""
    chart = folder / "older"
    shutil.copytree(CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "0.0.1"}))
    file = chart / "files" / "crds" / "statefulsparkjobs.yaml"
    definition = yaml.safe_load(file.read_text())
    [version] = definition["spec"]["versions"]
    version["additionalPrinterColumns"].remove(_column(version))
    file.write_text(yaml.safe_dump(definition))
    return chart


def _column(version: dict[str, Any]) -> dict[str, Any]:
    """As the definition has it; empty if it has not."""
    columns = version["additionalPrinterColumns"]
    return next((column for column in columns if column["name"] == _COLUMN), {})


def _shows_column(cluster: Cluster) -> bool:
    text = cluster.kubectl("get", "crd", "statefulsparkjobs.sparkpoint.dev", "-o", "json")
    [version] = json.loads(text)["spec"]["versions"]
    return bool(_column(version))


def _clusterwide(cluster: Cluster) -> list[str]:
    """What the release has beyond namespaces, but for the definitions."""
    kinds, ours = "clusterroles,clusterrolebindings", "app.kubernetes.io/instance=sparkpoint"
    return cluster.kubectl("get", kinds, "-l", ours, "-o", "name").split()


def _begin(job: Job) -> None:
    """As `Job.begin`, but with the account and the role that the chart makes."""
    job.namespace.apply(volume_claim("data"), toolbox("data"))
    job.namespace.kubectl("wait", "--for=condition=Ready", "pod/toolbox", "--timeout=90s")
    job.put_script()
    job.feed(2)
    job.apply()
    job.await_exact()
    job.await_phase("Running")


def _pods(job: Job) -> tuple[set[str], int]:
    """Driver and executors that run, and the epoch: the same pods, none started again."""
    listed = job.namespace.pods(f"sparkpoint.dev/job={job.name}")
    running = [pod for pod in listed if pod["status"].get("phase") == "Running"]
    assert not [pod for pod in running if pod["status"]["containerStatuses"][0]["restartCount"]]
    assert {pod["metadata"]["labels"]["sparkpoint.dev/role"] for pod in running} == {
        "driver",
        "executor",
    }
    return {pod["metadata"]["uid"] for pod in running}, job.status()["epoch"]
