"""Airflow against the cluster of the tests: its own environment, its own account, a run at a time.

A run is `dag.test()` in a process of Airflow's environment, with the real hooks and the real
trigger. Its account has the rights that the chart gives it and no others.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from dev.cluster.lifecycle import Cluster
from sparkpoint.airflow.rights import RIGHTS
from sparkpoint.api.common import GROUP
from tests.airflow.home import ROOT, environment
from tests.cluster.namespace import Namespace

__all__ = ["Airflow"]

_PYTHON = ROOT / ".venv-airflow" / "bin" / "python"
_NAME = "airflow"


class Airflow:
    """In one namespace."""

    def __init__(self, cluster: Cluster, namespace: Namespace, folder: Path) -> None:
        assert _PYTHON.exists(), "Airflow is not installed: make airflow-setup"
        self._folder = folder
        namespace.apply(*_account(namespace.name))
        config = folder / "airflow.kubeconfig"
        config.write_text(json.dumps(_config(cluster, namespace)))
        self._environment = os.environ | environment(folder, config, namespace.name)

    def run(self, dag: str, *results: str, **params: Any) -> dict[str, Any]:
        """The run's `state`, those of its `tasks`, and the `results` of some."""
        told = self._folder / "told.json"
        told.unlink(missing_ok=True)
        done = subprocess.run(
            [_PYTHON, "-m", "tests.airflow.once", dag, json.dumps(params), told, *results],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert told.exists(), f"{done.stdout}{done.stderr}"
        found: dict[str, Any] = json.loads(told.read_text())
        assert found["state"] == "success", f"{found}\n{done.stdout[-8000:]}{done.stderr[-4000:]}"
        return found


def _account(namespace: str) -> list[dict[str, Any]]:
    rules = [
        {"apiGroups": [GROUP], "resources": [resource], "verbs": sorted(verbs)}
        for rights in RIGHTS.values()
        for resource, verbs in rights.items()
    ]
    about, group = {"name": _NAME}, "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "Role", "name": _NAME}
    subject = {"kind": "ServiceAccount", "name": _NAME, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": about, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": about,
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def _config(cluster: Cluster, namespace: Namespace) -> dict[str, Any]:
    """The way to the cluster, as that account."""
    view = ("config", "view", "--raw", "--minify", "--flatten", "--output=json")
    found: dict[str, Any] = json.loads(cluster.kubectl(*view))
    token = namespace.kubectl("create", "token", _NAME, "--duration=2h").strip()
    for user in found["users"]:
        user["user"] = {"token": token}
    return found
