"""What Airflow is told about this provider: the entry point `apache_airflow_provider`."""

from importlib.metadata import version
from typing import Any

__all__ = ["get_provider_info"]


def get_provider_info() -> dict[str, Any]:
    """Name, version, and where links are found."""
    return {
        "package-name": "sparkpoint",
        "name": "Sparkpoint",
        "description": "Savepoints, cleanup, restore drills and campaigns of stateful Spark jobs.",
        "versions": [version("sparkpoint")],
        "extra-links": [
            "sparkpoint.airflow.links.JobLink",
            "sparkpoint.airflow.links.SavepointLink",
        ],
    }
