"""Buttons of a task in Airflow's UI: to the job, and to the savepoint that it made."""

from typing import Any

from airflow.sdk import BaseOperatorLink

__all__ = ["JobLink", "SavepointLink"]


class JobLink(BaseOperatorLink):
    """To the StatefulSparkJob."""

    name = "Job"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Known once the task has run; asked for in the process that ran it."""
        return str(getattr(operator, "links", {}).get("job", ""))


class SavepointLink(BaseOperatorLink):
    """To the SparkSavepoint."""

    name = "Savepoint"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """The same."""
        return str(getattr(operator, "links", {}).get("savepoint", ""))
