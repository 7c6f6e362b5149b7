"""### Restore drills

A savepoint is worth what a restore makes of it. Of each job, the newest good savepoint (or a random
one) is checked (`verify`: Spark loads its state and counts its rows), and restored into a
throw-away job (`restore`), if the job says by the annotation `airflow.sparkpoint.dev/drill` how a
copy of it is kept from writing to where it writes itself. The result is written on the savepoint
(`airflow.sparkpoint.dev/drilled`), the copy is removed, and `verdict` fails if it was not good.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Param, dag, get_current_context, task, task_group
from airflow.sdk.exceptions import AirflowFailException

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
from sparkpoint.airflow.operators import RestoreDrillOperator, VerifySavepointOperator

PURPOSE = "drill"


@dag(
    dag_id="sparkpoint_restore_drill",
    schedule=setting("DRILL_SCHEDULE", "0 2 * * *"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=scheduled_args(retries=2),
    params={
        **job_params(),
        "pick": Param("newest", type="string", enum=["newest", "random"]),
        "level": Param(
            "Deep", type="string", enum=["Content", "Deep"], description="How it is checked."
        ),
    },
    on_failure_callback=notifiers(),
    tags=["sparkpoint"],
    doc_md=__doc__,
)
def sparkpoint_restore_drill() -> None:
    @task
    def choose(params: dict[str, Any]) -> list[dict[str, str]]:
        """One savepoint of each job that has a good one."""
        import random

        from sparkpoint.airflow.decisions.drills import pick

        sights, found = sights_of(params), []
        sweep(sights)
        for job in jobs_of(sights, params):
            about = job["metadata"]
            near = [sight for sight in sights if sight.namespace == about["namespace"]]
            chance = random.random() if params["pick"] == "random" else None  # noqa: S311
            body = pick(job, near[0].savepoints, chance=chance)
            if body is None:
                print(f"{about['namespace']}/{about['name']}: has no good savepoint.")
                continue
            entry = {"namespace": about["namespace"], "job": about["name"]}
            found.append({**entry, "savepoint": body["metadata"]["name"], "level": params["level"]})
        if len(found) > largest_map():
            print(f"{largest_map()} of {len(found)}, by chance (core.max_map_length).")
            return random.sample(found, largest_map())
        return found

    @task(trigger_rule="all_done")
    def conclude(namespace: str, job: str, savepoint: str) -> dict[str, Any]:
        """Judge the drill, and write the result on the savepoint."""
        from sparkpoint.airflow.decisions.drills import settings_of
        from sparkpoint.airflow.failures import telling
        from sparkpoint.airflow.work.drills import conclude_drill
        from sparkpoint.cli.jobs.finding import find_job

        cluster, key = _drill(namespace, savepoint)
        with telling():
            ran = bool(settings_of(find_job(cluster, job)))
            result = conclude_drill(
                cluster, job, savepoint=savepoint, key=key, ran=ran, now=datetime.now(UTC)
            )
        print(result.annotation())
        return {"good": result.good, "problems": list(result.problems)}

    @task(trigger_rule="all_done", retries=5)
    def clean(namespace: str, job: str, savepoint: str) -> list[str]:
        """Remove what the drill made, whatever came of it."""
        from sparkpoint.airflow.failures import telling
        from sparkpoint.airflow.work.drills import remove_drill

        cluster, key = _drill(namespace, savepoint)
        with telling():
            return remove_drill(cluster, job, savepoint=savepoint, key=key)

    @task(retries=0)
    def verdict(result: dict[str, Any], savepoint: str) -> None:
        """The alarm."""
        if not result["good"]:
            raise AirflowFailException(f"{savepoint}: {' '.join(result['problems'])}")

    @task_group(group_id="job")
    def of_job(namespace: str, job: str, savepoint: str, level: str) -> None:
        checked = VerifySavepointOperator(
            task_id="verify",
            kubernetes_conn_id=CONNECTION,
            namespace=namespace,
            savepoint=savepoint,
            level=level,
            purpose=PURPOSE,
            pool=POOL,
            map_index_template="{{ task.savepoint }}",
        )
        restored = RestoreDrillOperator(
            task_id="restore",
            kubernetes_conn_id=CONNECTION,
            namespace=namespace,
            job=job,
            savepoint=savepoint,
            purpose=PURPOSE,
            pool=POOL,
            wait_timeout=timedelta(minutes=30),
            # The copy does not start anew by itself.
            retries=0,
            map_index_template="{{ task.job }}",
        )
        result = conclude(namespace, job, savepoint)
        checked >> restored >> result
        result >> clean(namespace, job, savepoint)
        verdict(result, savepoint)

    of_job.expand_kwargs(choose())


def sweep(sights: list[Any]) -> None:
    """Remove what runs have left behind that were ended before they could do it."""
    from sparkpoint.airflow.failures import telling
    from sparkpoint.airflow.hooks import SparkpointHook
    from sparkpoint.airflow.work.drills import remove_leftovers

    dag = get_current_context()["dag_run"].dag_id
    with telling():
        hook = SparkpointHook(conn_id=CONNECTION)
        for name in remove_leftovers(hook.cluster, sights, dag=dag, now=datetime.now(UTC)):
            print(f"{name}: removed, as an earlier drill has left it behind.")


def _drill(namespace: str, savepoint: str) -> tuple[Any, str]:
    """The cluster, and the key of what this run makes for a savepoint."""
    from sparkpoint.airflow.failures import telling
    from sparkpoint.airflow.hooks import SparkpointHook
    from sparkpoint.airflow.waiting import key_of_run

    key = key_of_run(get_current_context(), namespace=namespace, job=savepoint, purpose=PURPOSE)
    with telling():
        return SparkpointHook(conn_id=CONNECTION).cluster(namespace), key


sparkpoint_restore_drill()
