"""Resources as the API server and the operator would have them."""

import copy
from typing import Any

__all__ = ["SPEC", "condition", "config_map", "job", "operation", "pods", "revision", "savepoint"]

Object = dict[str, Any]
SPEC: Object = {
    "image": "runtime:1",
    "application": {"script": {"configMap": {"name": "script", "key": "visits.py"}}},
    "args": ["--input=/in", "--output=/out", "--fast"],
    "executor": {"instances": 2},
    "checkpoint": {"location": "s3://data/checkpoints"},
    "savepoints": {"repository": "s3://data/savepoints"},
    "suspend": False,
}
SCRIPT = "print('visits')\n"


def condition(kind: str, status: str, reason: str, message: str = "") -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-07-30T11:30:00Z",
    }


def job(name: str = "visits", **status: Any) -> Object:
    """A job that runs, unless the status says otherwise."""
    return {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "StatefulSparkJob",
        "metadata": {"name": name, "generation": 2},
        "spec": copy.deepcopy(SPEC),
        "status": {
            "phase": "Running",
            "observedGeneration": 2,
            "epoch": 1,
            "attempt": 2,
            "batch": 41,
            "rate": "12.3k/s",
            "executors": 2,
            "partitions": 4,
            "driver": {"pod": "visits-e1-a2", "phase": "running", "node": "n1"},
            "queries": [{"name": "visits", "active": True, "batch": 41, "stateRows": 10}],
            "lastSavepoint": {
                "name": "nightly",
                "batch": 41,
                "completedAt": "2026-07-30T11:00:00Z",
            },
            "revisions": {"current": "bbb", "stable": "bbb"},
            "conditions": [
                condition("Accepted", "True", "Valid"),
                condition("Ready", "True", "Committing"),
                condition("Progressing", "False", "Idle"),
                condition("Degraded", "False", "AsExpected"),
            ],
            "record": {"private": "to the operator"},
            **status,
        },
    }


def operation(kind: str, phase: str, message: str = "") -> Object:
    return {
        "id": f"{kind.lower()}-3",
        "kind": kind,
        "phase": phase,
        "startedAt": "2026-07-30T11:59:00Z",
        "phaseStartedAt": "2026-07-30T11:59:30Z",
        "message": message,
    }


def savepoint(
    name: str,
    *,
    batch: int = 40,
    completed: str = "2026-07-30T09:00:00Z",
    revision: str = "aaa",
    phase: str = "Completed",
    of: str = "visits",
) -> Object:
    status: Object = {"phase": phase, "batch": batch, "revision": revision, "message": ""}
    if phase == "Completed":
        status |= {"completedAt": completed, "bytes": 2048, "newBytes": 1024, "id": "f" * 64}
    return {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "SparkSavepoint",
        "metadata": {"name": name},
        "spec": {"jobRef": {"name": of}, "trigger": "Manual"},
        "status": status,
    }


def revision(name: str, generation: int, *, script: str = SCRIPT, **changes: Any) -> Object:
    """As the operator keeps it: complete, also with what belongs to no revision."""
    spec = {**copy.deepcopy(SPEC), "suspend": False, **changes}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"visits-{name}",
            "labels": {"sparkpoint.dev/job": "visits"},
            "ownerReferences": [{"uid": "uid-of-visits"}],
        },
        "data": {"spec": spec, "script": script},
        "revision": generation,
    }


def config_map(script: str = SCRIPT) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "script"},
        "data": {"visits.py": script, "other": "kept"},
    }


def pods() -> list[Object]:
    def pod(name: str, role: str, attempt: int, **labels: str) -> Object:
        worn = {"sparkpoint.dev/job": "visits", "sparkpoint.dev/role": role}
        worn |= {"sparkpoint.dev/epoch": "1", "sparkpoint.dev/attempt": str(attempt), **labels}
        spec = {"containers": [{"name": "spark"}, {"name": "sidecar"}]}
        about = {"name": name, "labels": worn}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}

    return [
        pod("visits-e1-a1", "driver", 1),
        pod("visits-e1-a2", "driver", 2),
        pod("visits-e1-a2-exec-1", "executor", 2, **{"spark-exec-id": "1"}),
    ]
