"""A whole Airflow against the cluster of the tests: its own environment, its own account.

Its processes are those of any Airflow, with the real hooks and the real trigger. Its account has
the rights that the chart gives it and no others.
"""

import json
from pathlib import Path
from typing import Any, Final

from dev.cluster.lifecycle import Cluster
from sparkpoint.airflow.rights import RIGHTS
from sparkpoint.api.common import GROUP
from tests.airflow.home import ROOT, environment
from tests.airflow.stack import Stack
from tests.cluster.namespace import Namespace

__all__ = ["CLEANUP", "DRILL", "SAVEPOINTS", "airflow_for"]

SAVEPOINTS: Final = "sparkpoint_savepoints"
CLEANUP: Final = "sparkpoint_cleanup"
DRILL: Final = "sparkpoint_restore_drill"
_PYTHON: Final = ROOT / ".venv-airflow" / "bin" / "python"
_NAME: Final = "airflow"
_SETTINGS: Final = {
    # A tick every minute, and a savepoint at every other one: of both jobs in the same run, however
    # long their captures take. A job that a run leaves out as fresh while it waits for the other
    # one's would be too old by its end, which is an alarm.
    "SPARKPOINT_SAVEPOINTS_SCHEDULE": "* * * * *",
    "SPARKPOINT_SAVEPOINTS_EVERY": "70s",
    "SPARKPOINT_CLEANUP_SCHEDULE": "0 0 29 2 *",
    "SPARKPOINT_DRILL_SCHEDULE": "0 0 29 2 *",
}


def airflow_for(cluster: Cluster, namespace: Namespace, folder: Path, **others: str) -> Stack:
    """Not yet up; its connection leads to this namespace. Other settings come before ours."""
    assert _PYTHON.exists(), "Airflow is not installed: make airflow-setup"
    namespace.apply(*_account(namespace.name))
    config = folder / "airflow.kubeconfig"
    config.write_text(json.dumps(_config(cluster, namespace)))
    settings = environment(folder, config, namespace.name) | _SETTINGS | others
    # All else the stack knows better.
    own = ("AIRFLOW_CONN_", "SPARKPOINT_")
    given = {name: value for name, value in settings.items() if name.startswith(own)}
    del given["SPARKPOINT_POOL"]
    return Stack(folder, ROOT / "dags", given, python=str(_PYTHON))


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
