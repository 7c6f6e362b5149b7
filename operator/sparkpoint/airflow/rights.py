"""What each DAG may ask of the API server: the chart's role for Airflow is made after this table.

The tests of the DAGs compare it with what a run has asked for.
"""

from collections.abc import Mapping
from typing import Final

__all__ = ["RIGHTS"]

_JOBS, _SAVEPOINTS = "statefulsparkjobs", "sparksavepoints"

RIGHTS: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    dag: {resource: frozenset(verbs.split()) for resource, verbs in verbs_of.items()}
    for dag, verbs_of in {
        "savepoints": {_JOBS: "get list", _SAVEPOINTS: "get list watch create"},
        "cleanup": {_JOBS: "get list", _SAVEPOINTS: "get list watch patch delete"},
        # Whoever may make a job may run pods in its namespace.
        "drills": {
            _JOBS: "get list watch create delete",
            _SAVEPOINTS: "get list watch create patch delete",
        },
        "campaigns": {_JOBS: "get list watch patch", _SAVEPOINTS: "list"},
    }.items()
}
"""DAG -> resource -> verbs."""
