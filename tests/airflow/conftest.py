"""Airflow on this machine: a home of its own, SQLite, and a connection to a played cluster.

The environment is set before anything of Airflow is imported: it reads it once.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.operating import PlayedOperator
from tests.unit.cli.jobs.apiserver import ApiServer, served

ROOT = Path(__file__).parents[2]
HOME = Path(tempfile.mkdtemp(prefix="sparkpoint-airflow-"))
KUBECONFIG = HOME / "kubeconfig"
_CONNECTION = {
    "conn_type": "kubernetes",
    "extra": {"kube_config_path": str(KUBECONFIG), "namespace": "shop"},
}

os.environ |= {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
    "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
    "AIRFLOW_CONN_KUBERNETES_DEFAULT": json.dumps(_CONNECTION),
    "SPARKPOINT_POOL": "default_pool",
    "SPARKPOINT_RETRY_SECONDS": "1",
}


def pytest_configure(config: pytest.Config) -> None:
    """What Airflow warns of is not ours to mend."""
    config.addinivalue_line("filterwarnings", "default")


@dataclass
class Ground:
    """A cluster, and who operates it."""

    api: ApiServer
    operator: PlayedOperator

    def savepoints(self, job: str | None = None) -> list[dict[str, Any]]:
        """All of them, or those of a job."""
        return [
            body
            for (plural, _, _), body in sorted(self.api.objects.items())
            if plural == "sparksavepoints"
            and job in (None, body["spec"]["jobRef"]["name"])
            and not body["spec"].get("existing")
        ]


def write_kubeconfig(address: str, token: str, path: Path = KUBECONFIG) -> None:
    """The way to the cluster: the only thing that another one would need."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    path.write_text(json.dumps(content))


@pytest.fixture
def ground() -> Iterator[Ground]:
    """Empty."""
    with served() as (api, address):
        write_kubeconfig(address, api.token)
        yield Ground(api, PlayedOperator(api))


@pytest.fixture(scope="session")
def database() -> None:
    """`dag.test()` does not make it."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture(scope="session")
def dagbag(database: None) -> Any:
    """All DAGs of this repository."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(str(ROOT / "dags"))
