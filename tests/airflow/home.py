"""An Airflow of one process: a home of its own, SQLite, and a connection to a cluster."""

import json
from pathlib import Path

__all__ = ["ROOT", "environment"]

ROOT = Path(__file__).parents[2]


def environment(home: Path, kubeconfig: Path, namespace: str) -> dict[str, str]:
    """To be set before anything of Airflow is imported: it reads it once."""
    extra = {"kube_config_path": str(kubeconfig), "namespace": namespace}
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "AIRFLOW_CONN_KUBERNETES_DEFAULT": json.dumps({"conn_type": "kubernetes", "extra": extra}),
        "SPARKPOINT_POOL": "default_pool",
        "SPARKPOINT_RETRY_SECONDS": "1",
    }
