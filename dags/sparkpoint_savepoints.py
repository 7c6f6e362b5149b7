"""### Savepoints by the calendar

Every tick, one savepoint of each job whose newest one is older than the job's policy says: the
annotation `airflow.sparkpoint.dev/savepoints` (`6h`, `0 */6 * * *`, `never`), else the Param
`every`. Jobs that are suspended, changing, being captured or fresh are left out; the log of `due`
says why. A run that is tried again, cleared or started twice finds what it has made.

`report` fails if a savepoint failed or could not be asked for, or if the newest good one of a job
is older than two periods.
"""

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Asset, AssetAlias, Param, dag, get_current_context, task, task_group
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.utils.types import DagRunType

from sparkpoint.airflow.dagkit import (
    CONNECTION,
    POOL,
    job_params,
    jobs_of,
    largest_map,
    notifiers,
    scheduled_args,
    setting,
    sights_of,
)
from sparkpoint.airflow.operators import CreateSavepointOperator

SAVEPOINTS = AssetAlias("sparkpoint_savepoints")
PURPOSE = "savepoint"


@dag(
    dag_id="sparkpoint_savepoints",
    schedule=setting("SAVEPOINTS_SCHEDULE", "0 * * * *"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    # Nobody can take a savepoint of the past.
    allowed_run_types=[DagRunType.SCHEDULED, DagRunType.MANUAL],
    default_args=scheduled_args(retries=3),
    params={
        **job_params(),
        "every": Param(
            setting("SAVEPOINTS_EVERY", "6h"),
            type="string",
            description="How often, for jobs that do not say: 6h, 0 */6 * * *, or never.",
        ),
        "force": Param(False, type="boolean", description="Also of jobs that are not due."),
    },
    on_failure_callback=notifiers(),
    tags=["sparkpoint"],
    doc_md=__doc__,
)
def sparkpoint_savepoints() -> None:
    @task
    def due(params: dict[str, Any]) -> list[dict[str, str]]:
        """Look at all jobs, and say which are due and why the others are not."""
        from sparkpoint.airflow.work.rounds import due_jobs

        sights = sights_of(params)
        found, lines = due_jobs(
            sights,
            jobs_of(sights, params),
            every=params["every"],
            force=params["force"],
            now=datetime.now(UTC),
            most=largest_map(),
        )
        print("\n".join(lines))
        return found

    @task(outlets=[SAVEPOINTS], map_index_template="{{ job_name }}")
    def publish(namespace: str, job: str, outlet_events: Any = None) -> dict[str, Any]:
        """Tell whoever waits for savepoints of this job: an event of its asset."""
        from sparkpoint.airflow.work.savepoints import summary

        get_current_context()["job_name"] = job
        made = savepoint_of_this_run(namespace, job)
        if made is None or made["status"].get("phase") != "Completed":
            raise AirflowSkipException(f"{job}: this run has no complete savepoint.")
        told = summary(made)
        # Named as it is by whoever schedules a DAG by its URI alone.
        asset = Asset(f"sparkpoint://{namespace}/{job}")
        outlet_events[SAVEPOINTS].add(asset, extra=told)
        return told

    @task_group(group_id="job")
    def of_job(namespace: str, job: str, fresh_since: str) -> None:
        taken = CreateSavepointOperator(
            task_id="take",
            kubernetes_conn_id=CONNECTION,
            namespace=namespace,
            job=job,
            fresh_since=fresh_since,
            purpose=PURPOSE,
            pool=POOL,
            map_index_template="{{ task.job }}",
        )
        taken >> publish(namespace, job)

    @task(trigger_rule="all_done")
    def report(asked: list[dict[str, str]] | None, params: dict[str, Any]) -> dict[str, Any]:
        """What came of it; fails with all that a person has to know."""
        from sparkpoint.airflow.work.rounds import alarms, outcome

        if asked is None:
            raise AirflowFailException("It is not known which jobs were due: see the task `due`.")
        states = states_of_this_run("job.take")
        outcomes = [
            outcome(
                each["job"],
                savepoint_of_this_run(each["namespace"], each["job"]),
                task=states.get(f"job.take_{index}"),
            )
            for index, each in enumerate(asked)
        ]
        complete = [name for name, _ in outcomes if name]
        sights = sights_of(params)
        old = alarms(sights, jobs_of(sights, params), every=params["every"], now=datetime.now(UTC))
        problems = [*(problem for _, problem in outcomes if problem), *old]
        print(f"Complete: {', '.join(complete) or 'none'}")
        if problems:
            raise AirflowFailException(" ".join(problems))
        return {"complete": complete}

    asked = due()
    of_job.expand_kwargs(asked) >> report(asked)


def states_of_this_run(task_id: str) -> dict[str, str]:
    """Of the instances of a mapped task, each as `TASK_INDEX`."""
    mine = get_current_context()["ti"]
    found = mine.get_task_states(dag_id=mine.dag_id, task_ids=[task_id], run_ids=[mine.run_id])
    return dict(found.get(mine.run_id) or {})


def savepoint_of_this_run(namespace: str, job: str) -> dict[str, Any] | None:
    """What the task `take` made; of several attempts the one that counts."""
    from sparkpoint.airflow.decisions.keys import Adopt, choose
    from sparkpoint.airflow.failures import telling
    from sparkpoint.airflow.hooks import SparkpointHook
    from sparkpoint.airflow.waiting import key_of_run
    from sparkpoint.airflow.work.savepoints import made_by

    context = get_current_context()
    key = key_of_run(context, namespace=namespace, job=job, purpose=PURPOSE)
    with telling():
        made = made_by(SparkpointHook(conn_id=CONNECTION).cluster(namespace), key)
    choice = choose(made)
    if isinstance(choice, Adopt):
        return choice.savepoint
    return made[-1] if made else None


sparkpoint_savepoints()
