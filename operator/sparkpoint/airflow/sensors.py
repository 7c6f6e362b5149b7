"""The sensor: waits until a job is as healthy as wanted."""

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Context

from sparkpoint.airflow.decisions import goals
from sparkpoint.airflow.failures import telling
from sparkpoint.airflow.links import JobLink
from sparkpoint.airflow.waiting import Waiting
from sparkpoint.cli.jobs.cluster import JOBS
from sparkpoint.cli.jobs.finding import find_job

__all__ = ["JobHealthSensor"]


class JobHealthSensor(Waiting):
    """Waits until a condition of the job holds: `Ready` (it commits) unless another one is named.

    Always deferred: it holds no worker while it waits. A job that is not there fails it at once.
    """

    template_fields: Sequence[str] = (*Waiting.template_fields, "job", "condition", "status")
    operator_extra_links = (JobLink(),)
    ui_color = "#e6f1f2"

    def __init__(
        self, *, job: str, condition: str = "Ready", status: str = "True", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.job, self.condition, self.status = job, condition, status

    def execute(self, context: Context) -> Any:
        """Wait."""
        with telling():
            cluster = self.open_cluster()
            find_job(cluster, self.job)
            self.show(cluster, job=self.job)
            goal = goals.holds(self.condition, self.status)
            self.wait_for(cluster, JOBS, [self.job], goal)
        return self.job
