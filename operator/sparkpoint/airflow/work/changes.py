"""Changing a job's spec, once: a change that is there already is not made again."""

from collections.abc import Mapping
from typing import Any

from sparkpoint.cli.jobs.cluster import JOBS, Cluster
from sparkpoint.cli.jobs.errors import RefusedError
from sparkpoint.cli.jobs.facts import spec_of
from sparkpoint.cli.jobs.finding import live_job
from sparkpoint.cli.jobs.specs import merged

__all__ = ["ensure_change", "rescaling"]

Object = dict[str, Any]


def ensure_change(cluster: Cluster, name: str, change: Mapping[str, Any]) -> Object:
    """The job with the change in its spec."""
    if not change:
        raise RefusedError(f"Nothing is to be changed in job {name}: say what.")
    job = live_job(cluster, name)
    if merged(spec_of(job), dict(change)) == spec_of(job):
        return job
    return cluster.patch(JOBS, name, {"spec": dict(change)})


def rescaling(cluster: Cluster, name: str, instances: int | str) -> dict[str, Any]:
    """The change to so many executors; a text is what a template makes of a number."""
    if not str(instances).strip().isdecimal():
        raise RefusedError(f"{instances!r} is no number of executors.")
    if (spec_of(live_job(cluster, name)).get("executor") or {}).get("dynamicAllocation"):
        raise RefusedError(
            f"Job {name} lets Spark choose how many executors it has: change "
            "spec.executor.dynamicAllocation instead."
        )
    return {"executor": {"instances": int(instances)}}
