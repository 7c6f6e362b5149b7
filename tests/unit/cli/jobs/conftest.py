"""A cluster with one job, `visits` in the namespace `shop`, and a kubeconfig that leads to it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.jobs.apiserver import ApiServer, served
from tests.unit.cli.jobs.resources import config_map, job, pods, revision, savepoint


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """Empty, and the current context of the kubeconfig."""
    with served() as (api, address):
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [
                {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "shop"}},
                {"name": "bare", "context": {"cluster": "c", "user": "u"}},
            ],
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {"token": api.token}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(kubeconfig))
        monkeypatch.setenv("KUBECONFIG", str(path))
        yield api


@pytest.fixture
def shop(cluster: ApiServer) -> ApiServer:
    """With the job running, two savepoints of it, two revisions, its script and its pods."""
    cluster.put(job())
    cluster.put(savepoint("before-sale", batch=38, completed="2026-07-30T10:00:00Z"))
    cluster.put(savepoint("nightly", batch=41, completed="2026-07-30T11:00:00Z", revision="bbb"))
    cluster.put(revision("aaa", 1, args=["--input=/in", "--output=/out"]))
    cluster.put(revision("bbb", 2))
    cluster.put(config_map())
    for pod in pods():
        cluster.put(pod)
    cluster.logs = {"visits-e1-a2": "Zählt.\n".encode(), "visits-e1-a1": b"before\n"}
    cluster.logs["visits-e1-a2-exec-1"] = b"executor\n"
    return cluster
