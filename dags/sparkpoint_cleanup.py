"""### Cleanup

`plan` says for every savepoint whether it stays and why, or goes; its log and its result are for
people to read. What it removes goes by the Params (`last`, `hourly`, … `max_age`), or if none is
given, by each job's own `spec.savepoints.retention`. Never removed: the newest good savepoint of a
job, one that a job names or may go back to, one with a tag, one younger than `grace`, one that a
person asked for (unless `include_manual`).

`apply` removes what was shown and still goes; the operator deletes the data, and frees what no
other savepoint needs. `collect` waits for that. With `dry_run` the run ends after `plan`.
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
    switch,
)
from sparkpoint.airflow.operators import CollectGarbageOperator, RetainSavepointsOperator


def _count(words: str) -> Param:
    return Param(0, type="integer", minimum=0, description=f"Keep {words}. 0: no such rule.")


@dag(
    dag_id="sparkpoint_cleanup",
    schedule=setting("CLEANUP_SCHEDULE", "30 3 * * *"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=scheduled_args(retries=3),
    params={
        **job_params(),
        "last": _count("the last so many"),
        "hourly": _count("the newest of each of the last so many hours that have one"),
        "daily": _count("the newest of each of the last so many days that have one"),
        "weekly": _count("the newest of each of the last so many weeks that have one"),
        "monthly": _count("the newest of each of the last so many months that have one"),
        "max_age": Param(
            "",
            type="string",
            description="The rules above keep nothing older; alone, it keeps what is younger.",
        ),
        "include_manual": Param(
            False, type="boolean", description="Also savepoints that a person asked for."
        ),
        "grace": Param("24h", type="string", description="Nothing younger is removed."),
        "max_fraction": Param(
            0.5,
            type="number",
            exclusiveMinimum=0,
            maximum=1,
            description="The greatest part of a job's savepoints that one run may remove.",
        ),
        "delete_data": Param(
            True, type="boolean", description="Also the data, not the resource alone."
        ),
        "dry_run": Param(
            switch("CLEANUP_DRY_RUN", default=False),
            type="boolean",
            description="Only say what would go.",
        ),
    },
    on_failure_callback=notifiers(),
    tags=["sparkpoint"],
    doc_md=__doc__,
)
def sparkpoint_cleanup() -> None:
    @task
    def plan(params: dict[str, Any]) -> list[dict[str, Any]]:
        """What stays and why, and what goes."""
        from sparkpoint.airflow.decisions.retention import describe
        from sparkpoint.airflow.failures import telling
        from sparkpoint.airflow.work.cleanup import cleanup_of, make_plans

        with telling():
            cleanup = cleanup_of(params)
        sights = sights_of(params)
        plans = make_plans(sights, jobs_of(sights, params), cleanup, datetime.now(UTC))
        for each in plans:
            print("\n".join(describe(each)))
        return [each.document() for each in plans]

    @task
    def approved(plans: list[dict[str, Any]], params: dict[str, Any]) -> list[dict[str, Any]]:
        """What is to be carried out: nothing in a dry run, and no plan that was refused."""
        if params["dry_run"]:
            print("A dry run: nothing is removed.")
            return []
        rules = {name: value for name, value in params.items() if name != "jobs"}
        wanted = [each for each in plans if each["remove"] and not each["refused"]]
        for each in wanted[largest_map() :]:
            print(f"{each['namespace']}/{each['job']}: in a later run (core.max_map_length).")
        return [{"plan": each, "rules": rules} for each in wanted[: largest_map()]]

    @task_group(group_id="job")
    def of_job(plan: dict[str, Any], rules: dict[str, Any]) -> None:
        apply = RetainSavepointsOperator(
            task_id="apply", kubernetes_conn_id=CONNECTION, plan=plan, rules=rules
        )
        CollectGarbageOperator(
            task_id="collect",
            kubernetes_conn_id=CONNECTION,
            removed=apply.output,
            pool=POOL,
            wait_timeout=timedelta(minutes=30),
        )

    # Not after a failure: the run is to fail with it.
    @task(trigger_rule="none_failed", retries=0)
    def report(plans: list[dict[str, Any]]) -> dict[str, Any]:
        """What was removed, and what that has freed; fails if a plan was refused."""
        from sparkpoint.airflow.work.cleanup import results, total

        refused = [f"{each['job']}: {each['refused']}" for each in plans if each["refused"]]
        if refused:
            raise AirflowFailException(" ".join(refused))
        mine = get_current_context()["ti"]
        done = total(
            results(mine.xcom_pull(task_ids="job.apply")),
            results(mine.xcom_pull(task_ids="job.collect", key="freed")),
        )
        print(f"{len(done['removed'])} savepoints removed, {done['freed_bytes']} bytes freed.")
        if done["unknown"]:
            print(f"Not known what was freed with: {', '.join(done['unknown'])}.")
        return done

    plans = plan()
    of_job.expand_kwargs(approved(plans)) >> report(plans)


sparkpoint_cleanup()
