"""The DAGs on a real job: a savepoint per run, exact counts after a restore, a cleanup, a drill."""

import json
from pathlib import Path
from typing import Any

import pytest

from dev.cluster.lifecycle import Cluster
from tests.cluster.airflow import Airflow
from tests.cluster.cli import Cli
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, job_spec

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(1200)]

_DRILL = "airflow.sparkpoint.dev/drill=args[1]=--output=/data/drill"
_RESULT = "airflow.sparkpoint.dev/drilled"


def test_the_dags_take_savepoints_clean_up_and_prove_one_restorable(
    operator: Cluster, namespace: Namespace, tmp_path: Path
) -> None:
    job = Job(namespace, job_spec())
    airflow = Airflow(operator, namespace, tmp_path)
    job.begin()

    # One for each run, whether the job is due or it is forced; none of a job that is fresh.
    airflow.run("sparkpoint_savepoints")
    [first] = _savepoints(namespace)
    job.feed(1)
    job.await_exact()
    airflow.run("sparkpoint_savepoints")
    assert _savepoints(namespace) == [first]
    airflow.run("sparkpoint_savepoints", force=True)
    [second] = set(_savepoints(namespace)) - {first}
    batches = [job.savepoint(name)["batch"] for name in (first, second)]
    assert batches[0] < batches[1], batches

    # What came after the second is computed again.
    job.feed(1)
    job.await_exact()
    sparkpoint = Cli(operator, namespace, tmp_path)
    sparkpoint.run("restore", "visits", "--savepoint", second, "--sink", "rewind")
    assert job.status()["restoredFrom"]["name"] == second
    job.feed(1)
    job.await_exact()

    # The newest stays, and what the job began from; the first goes, with its data.
    airflow.run("sparkpoint_savepoints", force=True)
    before = set(_savepoints(namespace))
    rules = {"last": 1, "grace": "1s", "max_fraction": 1, "jobs": ["visits"]}
    shown = airflow.run("sparkpoint_cleanup", "plan", **rules, dry_run=True)
    [plan] = shown["results"]["plan"]
    going = {each["name"] for each in plan["remove"]}
    assert first in going, plan
    assert second not in going, plan
    assert set(_savepoints(namespace)) == before
    done = airflow.run("sparkpoint_cleanup", "report", **rules)
    assert set(_savepoints(namespace)) == before - going
    assert {name.split("/")[1] for name in done["results"]["report"]["removed"]} == going
    stored = job.files("/data/savepoints/savepoints", "*/visits/*.json")
    assert {Path(name).stem for name in stored} == before - going

    # The newest can be restored: a copy of the job has gone on from it, and has left nothing.
    job.feed(1)
    job.await_exact()
    namespace.kubectl("annotate", "ssj", "visits", _DRILL)
    airflow.run("sparkpoint_restore_drill", level="Content")
    [result] = _drilled(namespace)
    assert (result["good"], result["restored"], result["problems"]) == (True, True, [])
    assert set(_savepoints(namespace)) == before - going
    namespace.await_true("the copy is gone", lambda: _jobs(namespace) == ["visits"], seconds=180)
    job.await_exact()


def _bodies(namespace: Namespace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(namespace.kubectl("get", "ssp", "-o", "json"))["items"]
    return found


def _savepoints(namespace: Namespace) -> list[str]:
    """Names of those that hold a capture, and do not make another one known."""
    return [
        str(body["metadata"]["name"])
        for body in _bodies(namespace)
        if "existing" not in body["spec"] and "deletionTimestamp" not in body["metadata"]
    ]


def _drilled(namespace: Namespace) -> list[dict[str, Any]]:
    """What came of drills."""
    notes = [body["metadata"].get("annotations") or {} for body in _bodies(namespace)]
    return [json.loads(each[_RESULT]) for each in notes if _RESULT in each]


def _jobs(namespace: Namespace) -> list[str]:
    listed = json.loads(namespace.kubectl("get", "ssj", "-o", "json"))["items"]
    return [str(body["metadata"]["name"]) for body in listed]
