"""Resources as Airflow's tasks see them, and a cluster in this process to do the work on."""

import copy
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from sparkpoint.cli.jobs.cluster import Cluster, Pieces
from sparkpoint.cli.jobs.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    DeniedError,
    NotFoundError,
    RefusedError,
)
from tests.unit.cli.jobs.apiserver import ApiServer, RefusalError

__all__ = ["NOW", "Object", "cluster", "job", "savepoint", "time"]

Object = dict[str, Any]
NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
BORN = NOW - timedelta(days=365)
_ERRORS: dict[str, type[ClusterError]] = {
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "Forbidden": DeniedError,
    "NotFound": NotFoundError,
}


def time(moment: datetime) -> str:
    """As Kubernetes writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def job(
    name: str = "visits",
    *,
    status: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    **about: Any,
) -> Object:
    """A job that runs, unless it is said otherwise."""
    return {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "StatefulSparkJob",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-of-{name}",
            "generation": 1,
            "creationTimestamp": time(BORN),
            "annotations": dict(annotations or {}),
            **about,
        },
        "spec": {
            "image": "runtime:1",
            "application": {"script": {"configMap": {"name": "script", "key": "visits.py"}}},
            "args": ["--input=/in", "--output=/out"],
            "executor": {"instances": 2},
            "checkpoint": {"location": "s3://data/checkpoints"},
            "savepoints": {"repository": "s3://data/savepoints"},
            **copy.deepcopy(dict(spec or {})),
        },
        "status": {
            "phase": "Running",
            "observedGeneration": 1,
            "queries": [{"name": "visits", "active": True, "batch": 41, "stateRows": 10}],
            "conditions": [
                {"type": "Accepted", "status": "True", "reason": "Valid"},
                {"type": "Ready", "status": "True", "reason": "Committing"},
                {"type": "Degraded", "status": "False", "reason": "AsExpected"},
            ],
            **copy.deepcopy(dict(status or {})),
        },
    }


def savepoint(
    name: str,
    *,
    age: timedelta = timedelta(),
    phase: str = "Completed",
    of: str = "visits",
    trigger: str = "Periodic",
    status: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    **about: Any,
) -> Object:
    """A savepoint that was complete so long before NOW."""
    moment = time(NOW - age)
    told: Object = {"phase": phase, "startedAt": moment, "message": ""}
    if phase == "Completed":
        told |= {"completedAt": moment, "bytes": 2048, "newBytes": 1024, "id": "f" * 64}
        told |= {"name": name, "repository": "s3://data/savepoints", "batch": 40}
        told["queries"] = [{"name": "visits", "batch": 40, "rows": 10}]
    return {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "SparkSavepoint",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-of-{name}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": moment,
            **about,
        },
        "spec": {"jobRef": {"name": of}, "trigger": trigger, **dict(spec or {})},
        "status": {**told, **dict(status or {})},
    }


class _Channel:
    """Without HTTP: what the API server answers, at once."""

    namespace = "shop"

    def __init__(self, api: ApiServer) -> None:
        self._api = api

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content: str = "application/json",
    ) -> Object:
        self._api.asked.append((method, path, copy.deepcopy(body)))
        try:
            return self._api.answer(method, f"{path}?{urlencode(query or {})}", copy.deepcopy(body))
        except RefusalError as error:
            raise _ERRORS.get(error.reason, RefusedError)(error.message) from error

    def stream(self, path: str, *, query: Mapping[str, str], silence: float | None) -> Pieces:
        raise NotImplementedError


def cluster(api: ApiServer) -> Cluster:
    """The namespace `shop`."""
    return Cluster(_Channel(api))
