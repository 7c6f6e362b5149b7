"""What every object of a job has in common: its name, its labels, and that the job owns it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sparkpoint.api.common import API_VERSION
from sparkpoint.controller.keys import ATTEMPT, EPOCH, JOB, ROLE
from sparkpoint.lifecycle.record import Run

__all__ = [
    "LABELS",
    "Manifest",
    "Owner",
    "attempt_labels",
    "epoch_labels",
    "job_labels",
    "manifest",
    "worker_labels",
]

Manifest = dict[str, Any]
"""A Kubernetes object as JSON."""

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABELS: Final = (JOB, EPOCH, ATTEMPT, ROLE, MANAGED_BY)
"""The labels that are ours. Never among them `spark-app-selector`: Spark deletes by it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The job that everything here is made for, and deleted with."""

    namespace: str
    name: str
    uid: str


def job_labels(owner: Owner) -> dict[str, str]:
    """On every object of the job."""
    return {MANAGED_BY: "sparkpoint", JOB: owner.name}


def epoch_labels(owner: Owner, epoch: int) -> dict[str, str]:
    """On what all attempts of an epoch share."""
    return {**job_labels(owner), EPOCH: str(epoch), ROLE: "driver"}


def attempt_labels(owner: Owner, run: Run, role: str) -> dict[str, str]:
    """On the pods of an attempt and what they need: exactly these are looked for when it ends."""
    return {**job_labels(owner), EPOCH: str(run.epoch), ATTEMPT: str(run.attempt), ROLE: role}


def worker_labels(owner: Owner, run: Run | None) -> dict[str, str]:
    """On a worker; the run is the one that it works for, if it works for one."""
    if run is None:
        return {**job_labels(owner), ROLE: "worker"}
    return attempt_labels(owner, run, "worker")


def manifest(
    owner: Owner, api_version: str, kind: str, *, name: str, labels: Mapping[str, str], **rest: Any
) -> Manifest:
    """An object of the job; `rest` is whatever its kind has besides metadata."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": dict(labels),
            "ownerReferences": [_reference(owner)],
        },
        **rest,
    }


def _reference(owner: Owner) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "StatefulSparkJob",
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }
