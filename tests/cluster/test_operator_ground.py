"""An operator that was put where it cannot work says so in one sentence, and does nothing.

On a cluster of its own without images: definitions are shared by all of a cluster, and no pod is
started here. The operator runs as a process of this machine.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.cluster.layout import find_layout
from dev.cluster.lifecycle import Cluster, lower_cluster, raise_cluster
from tests.cluster.operated import job_spec

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

_CLUSTER = os.environ.get("TEST_CLUSTER", "test") + "-bare"
_CRDS = Path(__file__).parents[2] / "crds"
_JOBS = "statefulsparkjobs"


@pytest.fixture
def bare() -> Iterator[Cluster]:
    """A cluster for this test alone, with nothing in it."""
    if left := find_layout(_CLUSTER):
        # By a run that was killed.
        lower_cluster(left)
    raised = raise_cluster(_CLUSTER)
    yield raised
    assert raised.layout is not None
    lower_cluster(raised.layout)


def test_an_operator_on_wrong_ground_ends_with_a_sentence(bare: Cluster, tmp_path: Path) -> None:
    config = tmp_path / "admin"
    config.write_text(bare.kubectl("config", "view", "--raw", "--minify", "--flatten"))

    assert "knows no StatefulSparkJob: kubectl apply" in _ends(config)

    older = _definition(_JOBS)
    del _spec_fields(older)["restartNonce"]
    bare.kubectl("apply", "--server-side", "-f", str(_CRDS / "sparksavepoints.yaml"))
    _apply(bare, older)
    assert "StatefulSparkJob is older than this operator: it lacks spec.restartNonce" in _ends(
        config
    )

    newer = _definition(_JOBS)
    _spec_fields(newer)["colour"] = {"type": "string"}
    _apply(bare, newer)
    with _operating(config) as said:
        assert any("does not act upon spec.colour" in line for line in said)

        # It serves every namespace with jobs; another release was told to serve this one.
        bare.kubectl("apply", "-f", "-", text=json.dumps(_job()))
        bare.kubectl("wait", "ssj/visits", "--for=condition=Accepted=False", "--timeout=60s")
        other = ("--namespace=default", "--lease-namespace=default", "--lease-name=other")
        with _operating(config, *other, until="Namespace default is served by") as refusal:
            assert "not by this operator (default/other)" in refusal[-1]

    stranger = _stranger(bare, config, tmp_path)
    told = _ends(stranger, "--namespace=default")
    assert "This operator lacks rights, in default: get/list/patch/watch statefulsparkjobs" in told
    assert "rbac.create" in told
    assert "Traceback" not in told


def _definition(plural: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((_CRDS / f"{plural}.yaml").read_text())
    return found


def _spec_fields(definition: dict[str, Any]) -> dict[str, Any]:
    [version] = definition["spec"]["versions"]
    fields: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "properties"
    ]
    return fields


def _apply(cluster: Cluster, definition: dict[str, Any]) -> None:
    forced = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    cluster.kubectl(*forced, text=json.dumps(definition))
    name = f"crd/{definition['metadata']['name']}"
    cluster.kubectl("wait", "--for=condition=Established", name, "--timeout=60s")


def _job() -> dict[str, Any]:
    """Whose script is not there: nothing is started."""
    return {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "StatefulSparkJob",
        "metadata": {"name": "visits"},
        "spec": job_spec(),
    }


def _stranger(cluster: Cluster, config: Path, folder: Path) -> Path:
    """A kubeconfig of somebody who may do nothing."""
    cluster.kubectl("create", "serviceaccount", "stranger")
    token = cluster.kubectl("create", "token", "stranger").strip()
    known = yaml.safe_load(config.read_text())
    known["users"][0]["user"] = {"token": token}
    path = folder / "stranger"
    path.write_text(yaml.safe_dump(known))
    return path


def _operator(config: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sparkpoint.controller", "--health-port=0", *options]
    # The node's addresses are on this machine; a proxy knows nothing of them.
    environment = os.environ | {"KUBECONFIG": str(config), "NO_PROXY": "*", "no_proxy": "*"}
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def _ends(config: Path, *options: str) -> str:
    """What an operator says that ends by itself, as one that failed."""
    operator = _operator(config, *options)
    said, _ = operator.communicate(timeout=120)
    assert operator.returncode == 1, said
    return said


@contextmanager
def _operating(
    config: Path, *options: str, until: str = "Serving all namespaces"
) -> Iterator[list[str]]:
    """An operator that runs, and what it has said up to a line with these words."""
    operator = _operator(config, *options)
    assert operator.stdout is not None
    said: list[str] = []
    try:
        while not said or until not in said[-1]:
            line = operator.stdout.readline()
            assert line, "".join(said)
            said.append(line)
        yield said
    finally:
        operator.terminate()
        operator.communicate(timeout=60)
