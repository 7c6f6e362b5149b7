"""The chart on a real cluster: installed, upgraded from an older one, narrowed, removed, again.

In a cluster of its own, as definitions are shared by all of a cluster, and the other tests need
theirs whole. Both namespaces enforce the `restricted` level of pod security, so that the pods of
the operator, of `helm test`, and every driver, executor and worker are proven to meet it.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.cache import exclusive
from dev.cluster.layout import find_layout
from dev.cluster.lifecycle import Cluster, lower_cluster, raise_cluster
from dev.console import Problem
from dev.helm import CHART, helm
from dev.image.load import load_images
from dev.jobs import toolbox, volume_claim
from dev.operator import development_values
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, job_spec

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

_CLUSTER = os.environ.get("TEST_CLUSTER", "test") + "-helm"
_SYSTEM = "sparkpoint-system"
_JOBS = "shop"
_FIELD = "restartNonce"
"""Optional, and named by no rule: an older definition may well have lacked it."""
_RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


@pytest.fixture
def own() -> Iterator[Cluster]:
    """A cluster for this test alone, with our images and two restricted namespaces."""
    with exclusive("tests-of-other-clusters"):
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
    with exclusive("tests-of-other-clusters"):
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
    assert not _knows_field(own)
    release.test()
    job = Job(namespace, job_spec())
    _begin(job)
    driver = _driver(job)

    # An upgrade brings what the definition lacked, and the job does not notice.
    release.put(CHART)
    assert _knows_field(own)
    assert "Succeeded" in release.test()
    job.feed(1)
    job.await_exact()
    assert _driver(job) == driver

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
    driver = _driver(job)
    assert "statefulsparkjobs.sparkpoint.dev" in release.uninstall()
    assert own.kubectl("-n", _SYSTEM, "get", "deployments", "-o", "name") == ""
    assert _knows_field(own)
    assert job.savepoint("mine")["phase"] == "Completed"
    namespace.kubectl("get", "serviceaccount/spark", "role/sparkpoint-driver")
    job.feed(1)
    job.await_exact()
    assert _driver(job) == driver

    # It comes back, finds everything, and ends the job in order.
    release.put(CHART)
    job.await_phase("Running")
    assert _driver(job) == driver
    namespace.kubectl("delete", "ssj", job.name, "--timeout=180s", timeout=200)
    namespace.await_true(
        "the driver's pod to go",
        lambda: not namespace.pods("sparkpoint.dev/role=driver"),
        seconds=120,
    )


def _older_chart(folder: Path) -> Path:
    """This chart with a lower version and a definition that lacks a field."""
    chart = folder / "older"
    shutil.copytree(CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "0.0.1"}))
    file = chart / "files" / "crds" / "statefulsparkjobs.yaml"
    definition = yaml.safe_load(file.read_text())
    del _spec_fields(definition)[_FIELD]
    file.write_text(yaml.safe_dump(definition))
    return chart


def _spec_fields(definition: dict[str, Any]) -> dict[str, Any]:
    [version] = definition["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    fields: dict[str, Any] = spec["properties"]
    return fields


def _knows_field(cluster: Cluster) -> bool:
    text = cluster.kubectl("get", "crd", "statefulsparkjobs.sparkpoint.dev", "-o", "json")
    return _FIELD in _spec_fields(json.loads(text))


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


def _driver(job: Job) -> tuple[str, int]:
    """The driver that runs, and its epoch."""
    return job.driver_pods()[-1]["metadata"]["uid"], job.status()["epoch"]
