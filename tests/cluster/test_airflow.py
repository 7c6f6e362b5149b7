"""A whole Airflow, the operator and two real jobs: runs of the schedule, a cleanup, a drill.

Three runs of the schedule take a savepoint of each job. During the second one the operator is away
for a minute, and the triggerer and the scheduler are killed while the tasks wait.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dev.cluster.lifecycle import Cluster
from dev.operator import NAMESPACE
from tests.airflow.stack import Stack
from tests.cluster.airflow import CLEANUP, DRILL, SAVEPOINTS, airflow_for
from tests.cluster.cli import Cli
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, job_spec

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(3000)]

_RUN = "airflow.sparkpoint.dev/run"
_RESULT = "airflow.sparkpoint.dev/drilled"
_NEVER = "airflow.sparkpoint.dev/savepoints=never"
_AWAY = 60.0
"""Seconds that tasks wait while there is no operator."""
_LONG = 900.0
"""Seconds for a run by hand: a drill starts six Sparks, on two cores."""
_MINUTE = 60


@pytest.fixture
def airflow(operator: Cluster, namespace: Namespace, tmp_path: Path) -> Iterator[Stack]:
    made = airflow_for(operator, namespace, tmp_path)
    try:
        made.up()
        made.pool(4)
        yield made
    finally:
        made.down()


def test_three_ticks_a_cleanup_and_a_drill_of_two_jobs(
    operator: Cluster, namespace: Namespace, airflow: Stack, tmp_path: Path
) -> None:
    jobs = _begin(namespace)
    names = [job.name for job in jobs]
    [visits, _] = jobs

    _ticks(operator, airflow, jobs)

    # One savepoint for each job and each run of the schedule, and none of them was tried again.
    runs = airflow.runs(SAVEPOINTS)
    assert {(run["run_type"], run["state"]) for run in runs} == {("scheduled", "success")}
    told = Counter((_job_of(body), _run_of(body)) for body in _bodies(namespace))
    assert set(told.values()) == {1}
    assert {run for _, run in told} <= {_moment(run) for run in runs}
    tries = [task["try_number"] for run in runs for task in _taking(airflow, run["dag_run_id"])]
    assert set(tries) == {1}
    for name in names:
        assert _stored(visits, name) == set(_savepoints(namespace, name))

    # What came after the second is computed again.
    second = _savepoints(namespace, visits.name)[1]
    Cli(operator, namespace, tmp_path).run(
        "restore", visits.name, "--savepoint", second, "--sink", "rewind"
    )
    assert visits.status()["restoredFrom"]["name"] == second
    _feed(jobs)

    # The newest stays, and what a job began from; others go, with their data.
    rules = {"last": 1, "grace": "1s", "max_fraction": 1}
    before = {name: _savepoints(namespace, name) for name in names}
    plan = {each["job"]: each for each in _run(airflow, CLEANUP, "plan", **rules, dry_run=True)}
    going = {name: {each["name"] for each in plan[name]["remove"]} for name in names}
    assert {name: _savepoints(namespace, name) for name in names} == before
    assert second not in going[visits.name]
    for name in names:
        assert before[name][0] in going[name]
        assert before[name][-1] not in going[name]
    done = _run(airflow, CLEANUP, "report", **rules)
    asked = {f"{namespace.name}/{each}" for name in names for each in going[name]}
    assert set(done["removed"]) == asked
    # The operator said what went with each, however soon it was gone.
    assert done["unknown"] == []
    left = {name: set(before[name]) - going[name] for name in names}
    for name in names:
        assert set(_savepoints(namespace, name)) == left[name]
        assert _stored(visits, name) == left[name]

    # Copies of the jobs have gone on from the newest ones, and have left nothing.
    for name in names:
        drill = f"airflow.sparkpoint.dev/drill=args[1]=--output=/data/drill-{name}"
        namespace.kubectl("annotate", "ssj", name, drill)
    _run(airflow, DRILL)
    results = _drilled(namespace)
    good = [(each["good"], each["restored"], each["problems"]) for each in results]
    assert good == [(True, True, [])] * 2
    namespace.await_true(
        "the copies are gone", lambda: _jobs(namespace) == sorted(names), seconds=400
    )
    for name in names:
        assert _stored(visits, name) == left[name]
    _feed(jobs)
    assert all(each["rows"] for each in results), results


def _begin(namespace: Namespace) -> list[Job]:
    """Two jobs that read the same and write apart."""
    first, other = Job(namespace, job_spec()), Job(namespace, job_spec(), name="others")
    other.spec["args"][1] = "--output=/data/others"
    first.lay_ground()
    first.put_script()
    for job in (first, other):
        job.apply()
    _feed([first, other])
    for job in (first, other):
        job.await_phase("Running")
        namespace.kubectl("wait", "--for=condition=Ready", f"ssj/{job.name}", "--timeout=60s")
    return [first, other]


def _feed(jobs: list[Job]) -> None:
    """More input, until both have counted it."""
    jobs[0].feed(1)
    for job in jobs:
        job.fed = jobs[0].fed
        job.await_exact()


def _ticks(cluster: Cluster, airflow: Stack, jobs: list[Job]) -> None:
    """Until runs of the schedule have taken three savepoints of each job."""
    # The first run comes at once, for the tick before. All others come with theirs.
    time.sleep(_MINUTE - time.time() % _MINUTE)
    airflow.known(SAVEPOINTS)
    _await_savepoints(airflow, jobs, 1)
    with _operator_away(cluster):
        airflow.until(lambda: _waiting(airflow, jobs), lambda: "nobody waits")
        for name in ("triggerer", "scheduler"):
            airflow.kill(name)
        for name in ("triggerer", "scheduler"):
            airflow.start(name)
        time.sleep(_AWAY)
    _await_savepoints(airflow, jobs, 2)
    _feed(jobs)
    _await_savepoints(airflow, jobs, 3)
    # From here on runs find nothing to do, and are short.
    for job in jobs:
        job.namespace.kubectl("annotate", "ssj", job.name, _NEVER)
    airflow.until(lambda: _is_paused(airflow), lambda: "there is no time between two runs")


def _is_paused(airflow: Stack) -> bool:
    """Between two runs: one that is under way goes no further in a DAG that is paused."""
    if _under_way(airflow):
        return False
    airflow.pause(SAVEPOINTS)
    # The scheduler may be about to make one, and does not look again.
    time.sleep(5)
    if not _under_way(airflow):
        return True
    airflow.known(SAVEPOINTS)
    return False


@contextmanager
def _operator_away(cluster: Cluster) -> Iterator[None]:
    place = ("-n", NAMESPACE, "deployment/sparkpoint-operator")
    cluster.kubectl("scale", *place, "--replicas=0")
    cluster.kubectl("-n", NAMESPACE, "delete", "pods", "--all", "--timeout=90s")
    try:
        yield
    finally:
        cluster.kubectl("scale", *place, "--replicas=1")
        cluster.kubectl("rollout", "status", *place, "--timeout=120s", timeout=150)


def _await_savepoints(airflow: Stack, jobs: list[Job], count: int) -> None:
    """So many of each job, by runs that have ended well."""

    def there() -> bool:
        runs = airflow.runs(SAVEPOINTS)
        failed = [run["dag_run_id"] for run in runs if run["state"] == "failed"]
        assert not failed, [airflow.log(SAVEPOINTS, run, "report", -1)[-3000:] for run in failed]
        ended = {_moment(run) for run in runs if run["state"] == "success"}
        bodies = _bodies(jobs[0].namespace) if len(ended) >= count else []
        taken = Counter(_job_of(body) for body in bodies if _run_of(body) in ended)
        return all(taken[job.name] >= count for job in jobs)

    airflow.until(there, lambda: f"not {count} savepoints each: {airflow.runs(SAVEPOINTS)}")


def _waiting(airflow: Stack, jobs: list[Job]) -> bool:
    """Whether a run waits for savepoints of all jobs, which nobody takes, and does nothing else.

    One that is complete is soon told by tasks of a worker, and those die with the scheduler.
    """
    for run in _under_way(airflow):
        tasks = _taking(airflow, run["dag_run_id"])
        asked = [each for each in _bodies(jobs[0].namespace) if _run_of(each) == _moment(run)]
        phases = {(each.get("status") or {}).get("phase") for each in asked}
        deferred = [each for each in tasks if each["state"] == "deferred"]
        if len(tasks) == len(deferred) == len(asked) == len(jobs) and "Completed" not in phases:
            return True
    return False


def _under_way(airflow: Stack) -> list[dict[str, Any]]:
    runs = airflow.runs(SAVEPOINTS)
    return [run for run in runs if run["state"] in ("queued", "running")]


def _taking(airflow: Stack, run: str) -> list[dict[str, Any]]:
    """One for each job; a run that finds none due has none."""
    tasks = airflow.tasks(SAVEPOINTS, run)
    return [each for each in tasks if each["task_id"] == "job.take" and each["map_index"] >= 0]


def _run(airflow: Stack, dag: str, task: str | None = None, **params: Any) -> Any:
    """By hand; what a task of it returned."""
    airflow.known(dag)
    run = airflow.run(dag, **params)
    assert airflow.ended(dag, run, seconds=_LONG) == "success", airflow.tasks(dag, run)
    return airflow.result(dag, run, task) if task else None


def _bodies(namespace: Namespace) -> list[dict[str, Any]]:
    """Those that hold a capture, and do not make another one known."""
    found = json.loads(namespace.kubectl("get", "ssp", "-o", "json"))["items"]
    return [body for body in found if "existing" not in body["spec"] and not _is_going(body)]


def _is_going(body: dict[str, Any]) -> bool:
    return "deletionTimestamp" in body["metadata"]


def _job_of(body: dict[str, Any]) -> str:
    return str(body["spec"]["jobRef"]["name"])


def _run_of(body: dict[str, Any]) -> str:
    """The time of the run that asked for it."""
    dag, moment = body["metadata"]["annotations"][_RUN].split()
    assert dag == SAVEPOINTS
    return str(moment)


def _moment(run: dict[str, Any]) -> str:
    return str(run["logical_date"].replace("Z", "+00:00"))


def _savepoints(namespace: Namespace, job: str) -> list[str]:
    """Of a job, oldest first."""
    made = [body["metadata"] for body in _bodies(namespace) if _job_of(body) == job]
    return [about["name"] for about in sorted(made, key=lambda each: each["creationTimestamp"])]


def _stored(of: Job, job: str) -> set[str]:
    """What the repository has of a job."""
    files = of.files("/data/savepoints/savepoints", f"*/{job}/*.json")
    return {Path(name).stem for name in files}


def _drilled(namespace: Namespace) -> list[dict[str, Any]]:
    """What came of drills."""
    notes = [body["metadata"].get("annotations") or {} for body in _bodies(namespace)]
    return [json.loads(each[_RESULT]) for each in notes if _RESULT in each]


def _jobs(namespace: Namespace) -> list[str]:
    listed = json.loads(namespace.kubectl("get", "ssj", "-o", "json"))["items"]
    return sorted(str(body["metadata"]["name"]) for body in listed)
