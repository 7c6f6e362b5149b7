"""What the DAGs in `dags/` share: their settings, the Params that choose jobs, and a look at them.

Settings are read from the environment when a DAG is read (`SPARKPOINT_POOL`, …): what a DAG is made
of cannot be asked of Airflow's database. All else is a Param, and can be given to each run.
"""

import json
import os
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any, Final

from airflow.sdk import Param, conf

from sparkpoint.airflow.failures import telling
from sparkpoint.airflow.work.reading import Sight, chosen, look

__all__ = [
    "CONNECTION",
    "POOL",
    "RETRY_DELAY",
    "job_params",
    "jobs_of",
    "largest_map",
    "notifiers",
    "scheduled_args",
    "setting",
    "sights_of",
    "switch",
]

Object = dict[str, Any]
_WORDS: Final = {
    **dict.fromkeys(("true", "t", "yes", "1", "on"), True),
    **dict.fromkeys(("false", "f", "no", "0", "off"), False),
}


def setting(name: str, default: str) -> str:
    """`SPARKPOINT_<NAME>` of the environment."""
    return os.environ.get(f"SPARKPOINT_{name}") or default


def switch(name: str, *, default: bool) -> bool:
    """One that is true or false; ValueError for another word, which must not count as false."""
    said = setting(name, str(default)).strip().lower()
    if said not in _WORDS:
        raise ValueError(f"SPARKPOINT_{name} is {said!r}: write true or false.")
    return _WORDS[said]


def _retry_delay() -> timedelta:
    said = setting("RETRY_SECONDS", "30")
    try:
        delay = timedelta(seconds=float(said))
    except (ValueError, OverflowError):
        delay = timedelta(-1)
    if delay < timedelta():
        raise ValueError(f"SPARKPOINT_RETRY_SECONDS is {said!r}: write a number of seconds.")
    return delay


POOL: Final = setting("POOL", "sparkpoint")
"""Bounds how many savepoints are under way at once; it has to count deferred tasks."""
CONNECTION: Final = setting("CONN_ID", "kubernetes_default")
RETRY_DELAY: Final = _retry_delay()


def scheduled_args(*, retries: int) -> dict[str, Any]:
    """Of all tasks of a DAG that runs by the calendar: what was begun is ended before more is."""
    return {"retries": retries, "retry_delay": RETRY_DELAY, "weight_rule": "upstream"}


def notifiers() -> list[Any]:
    """Who is told when a run fails: `SPARKPOINT_NOTIFIER`, the path of a class, made with
    `SPARKPOINT_NOTIFIER_ARGUMENTS`, a JSON object; nobody if it is not set.

    ValueError if it cannot be made: an alarm that never rings must not look like one.
    """
    path, arguments = setting("NOTIFIER", ""), setting("NOTIFIER_ARGUMENTS", "{}")
    if not path:
        return []
    module, _, name = path.rpartition(".")
    try:
        return [getattr(import_module(module), name)(**json.loads(arguments))]
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"The notifier {path} cannot be made of {arguments}: {error}. Set SPARKPOINT_NOTIFIER "
            "to the path of a class that is installed where DAGs are read, and "
            "SPARKPOINT_NOTIFIER_ARGUMENTS to a JSON object of what it is made with."
        ) from error


def job_params() -> dict[str, Any]:
    """Which jobs a run is about."""
    namespaces = [name.strip() for name in setting("NAMESPACES", "").split(",") if name.strip()]
    return {
        "namespaces": Param(
            namespaces,
            type="array",
            items={"type": "string"},
            description="Namespaces to look at. None: the connection's own; if it names none, all.",
        ),
        "jobs": Param(
            [],
            type="array",
            items={"type": "string"},
            description="Names of jobs, NAME or NAMESPACE/NAME. None: all.",
        ),
        "selector": Param("", type="string", description="Labels of jobs: team=shop,tier!=gold."),
    }


def largest_map() -> int:
    """How many tasks Airflow makes of one list; it refuses a longer one altogether."""
    return int(conf.getint("core", "max_map_length", fallback=1024))


def sights_of(params: Mapping[str, Any]) -> list[Sight]:
    """All jobs and savepoints of the namespaces that the run is about."""
    from sparkpoint.airflow.hooks import SparkpointHook

    with telling():
        hook = SparkpointHook(conn_id=CONNECTION)
        everywhere = hook.own_namespace is None
        return look(hook.cluster, list(params["namespaces"]), everywhere=everywhere)


def jobs_of(sights: list[Sight], params: Mapping[str, Any]) -> list[Object]:
    """The jobs that the run is about; the task fails if one that was named is not there."""
    for sight in sights:
        if not sight.jobs:
            print(f"{sight.namespace}: there is no StatefulSparkJob; check its name.")
    with telling():
        found = chosen(sights, names=list(params["jobs"]), selector=str(params["selector"]))
    print(f"Jobs: {len(found)}.")
    return found
