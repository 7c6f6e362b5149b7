"""### Campaigns

Changes a list of jobs, wave by wave: a few first, and then more at once. A wave begins when all
jobs of the one before have carried out the change and proven themselves; after the first failure no
other wave begins. A run that is tried again changes nothing that is changed already.

`change` names fields of the spec, such as `{"image": "registry/visits:1.5"}`; `executors` gives the
jobs so many executors instead.
"""

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from sparkpoint.airflow.dagkit import (
    CONNECTION,
    POOL,
    RETRY_DELAY,
    job_params,
    jobs_of,
    largest_map,
    notifiers,
    sights_of,
)
from sparkpoint.airflow.decisions.waves import MOST_WAVES
from sparkpoint.airflow.operators import UpgradeJobOperator


@dag(
    dag_id="sparkpoint_campaign",
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 1, "retry_delay": RETRY_DELAY},
    params={
        **job_params(),
        "change": Param(
            None,
            type=["object", "null"],
            description="Fields of the spec that change (a JSON merge patch).",
        ),
        "executors": Param(
            None, type=["integer", "null"], minimum=1, description="So many executors."
        ),
        "waves": Param(
            [1, 2, 5],
            type="array",
            items={"type": "integer", "minimum": 1},
            description="How many jobs at once; the last number holds for all further waves.",
        ),
    },
    on_failure_callback=notifiers(),
    tags=["sparkpoint"],
    doc_md=__doc__,
)
def sparkpoint_campaign() -> None:
    @task
    def plan(params: dict[str, Any]) -> list[list[dict[str, Any]]]:
        """Which job is changed in which wave."""
        from sparkpoint.airflow.decisions.waves import plan_waves
        from sparkpoint.airflow.failures import telling

        if bool(params["change"]) == bool(params["executors"]):
            raise AirflowFailException("Give either change or executors: one campaign, one change.")
        if not (params["jobs"] or params["selector"]):
            raise AirflowFailException("Say which jobs: by name, or by a selector.")
        change = params["change"] or {"executor": {"instances": params["executors"]}}
        wanted = [
            {
                "namespace": job["metadata"]["namespace"],
                "job": job["metadata"]["name"],
                "change": change,
            }
            for job in jobs_of(sights_of(params), params)
        ]
        with telling():
            # Airflow refuses a longer list when it comes to it, after other waves.
            waves = plan_waves(wanted, [min(size, largest_map()) for size in params["waves"]])
        for number, wave in enumerate(waves, 1):
            if wave:
                print(f"Wave {number}: {', '.join(each['job'] for each in wave)}")
        return waves

    @task(trigger_rule="none_failed")
    def wave(number: int, waves: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """The jobs of a wave."""
        if not waves[number]:
            raise AirflowSkipException("All jobs were in the waves before.")
        return waves[number]

    waves = plan()
    before = None
    for number in range(MOST_WAVES):
        jobs = wave.override(task_id=f"wave_{number + 1}")(number, waves)
        changed = UpgradeJobOperator.partial(
            task_id=f"change_{number + 1}",
            kubernetes_conn_id=CONNECTION,
            pool=POOL,
            map_index_template="{{ task.job }}",
        ).expand_kwargs(jobs)
        if before is not None:
            before >> jobs
        before = changed


sparkpoint_campaign()
