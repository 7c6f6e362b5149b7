"""The throw-away jobs of drills: made once, looked at, written down, and removed."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sparkpoint.airflow.decisions.drills import (
    DRILL,
    DRILL_OF,
    Result,
    check_name,
    conclude,
    drill_job,
    drill_name,
    is_leftover,
    settings_of,
)
from sparkpoint.airflow.decisions.errors import DrillError
from sparkpoint.airflow.decisions.keys import RUN_KEY
from sparkpoint.airflow.work.reading import Clusters, Sight
from sparkpoint.cli.jobs.cluster import JOBS, SAVEPOINTS, Cluster, Kind, find
from sparkpoint.cli.jobs.errors import AlreadyExistsError
from sparkpoint.cli.jobs.facts import metadata, moment_of
from sparkpoint.cli.jobs.finding import live_job

__all__ = ["conclude_drill", "ensure_drill", "remove_drill", "remove_leftovers"]

Object = dict[str, Any]


def ensure_drill(cluster: Cluster, job: str, *, savepoint: str, key: str, run: str) -> Object:
    """The throw-away job of this run."""
    origin = live_job(cluster, job)
    wanted = drill_job(origin, savepoint=savepoint, settings=settings_of(origin), key=key, run=run)
    try:
        return cluster.create(JOBS, wanted)
    except AlreadyExistsError:
        there = cluster.get(JOBS, wanted["metadata"]["name"])
        if (metadata(there).get("labels") or {}).get(RUN_KEY) != key:
            raise DrillError(f"There is another job {wanted['metadata']['name']}.") from None
        return there


def conclude_drill(
    cluster: Cluster, job: str, *, savepoint: str, key: str, ran: bool, now: datetime
) -> Result:
    """Judge it, and write the result on the savepoint."""
    body = cluster.get(SAVEPOINTS, savepoint)
    check = find(cluster, SAVEPOINTS, check_name(savepoint, key))
    copy = find(cluster, JOBS, drill_name(job, key)) if ran else None
    made = [moment_of(metadata(each).get("creationTimestamp")) for each in (check, copy) if each]
    began = min((moment for moment in made if moment is not None), default=now)
    result = conclude(body, check=check, copy=copy, ran=ran, began=began, now=now)
    change = {"metadata": {"annotations": {DRILL: result.annotation()}}}
    cluster.patch(SAVEPOINTS, savepoint, change)
    return result


def remove_drill(cluster: Cluster, job: str, *, savepoint: str, key: str) -> list[str]:
    """Take away what a drill made; what is gone, or not of this run, is left. The names."""
    meant: tuple[tuple[Kind, str], ...] = (
        (JOBS, drill_name(job, key)),
        (SAVEPOINTS, check_name(savepoint, key)),
    )
    removed = []
    for kind, name in meant:
        body = find(cluster, kind, name)
        labels = (metadata(body).get("labels") or {}) if body is not None else {}
        throwaway = kind is SAVEPOINTS or labels.get(DRILL_OF) == job
        if body is None or labels.get(RUN_KEY) != key or not throwaway:
            continue
        cluster.delete(kind, name, uid=metadata(body)["uid"])
        removed.append(name)
    return removed


def remove_leftovers(
    clusters: Clusters, sights: Iterable[Sight], *, dag: str, now: datetime
) -> list[str]:
    """Take away what earlier runs of the DAG have left behind. The names."""
    removed = []
    for sight in sights:
        cluster = clusters(sight.namespace)
        for kind, bodies in ((JOBS, sight.jobs), (SAVEPOINTS, sight.savepoints)):
            for about in [metadata(each) for each in bodies if is_leftover(each, dag=dag, now=now)]:
                cluster.delete(kind, about["name"], uid=about["uid"])
                removed.append(f"{sight.namespace}/{about['name']}")
    return removed
