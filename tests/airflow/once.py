"""Run a DAG once, to its end: `python -m tests.airflow.once DAG PARAMS FILE [TASK…]`.

Writes JSON to the file: the run's state, those of its tasks, and what these tasks returned. For
tests that run in another environment than Airflow's; the variables are those of `home.py`.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.airflow.home import ROOT

__all__: list[str] = []


def _run(name: str, params: dict[str, Any], wanted: list[str]) -> dict[str, Any]:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.utils.db import initdb

    initdb()
    dags = DagBag(str(ROOT / "dags"))
    assert not dags.import_errors, dags.import_errors
    run = dags.dags[name].test(run_conf=params, logical_date=datetime.now(UTC))
    tasks = {f"{each.task_id}[{each.map_index}]": each for each in run.get_task_instances()}
    return {
        "state": run.state,
        "tasks": {name: each.state for name, each in tasks.items()},
        "results": {
            name: run.get_task_instance(name).xcom_pull(task_ids=name, map_indexes=-1)
            for name in wanted
        },
    }


def main() -> None:
    """As the command line says."""
    name, params, place, *wanted = sys.argv[1:]
    Path(place).write_text(json.dumps(_run(name, json.loads(params), wanted)))


if __name__ == "__main__":
    main()
