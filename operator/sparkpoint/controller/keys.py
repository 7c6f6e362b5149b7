"""What resources are called inside the operator, and by which labels their objects are found."""

from dataclasses import dataclass
from typing import Any, Final

from sparkpoint.controller.cluster import Object, metadata

__all__ = [
    "ATTEMPT",
    "CORRELATION",
    "EPOCH",
    "FINALIZER",
    "JOB",
    "OPERATION",
    "PAUSED",
    "ROLE",
    "SAVEPOINT",
    "Key",
    "is_paused",
    "job_of",
    "key_of",
]

JOB: Final = "sparkpoint.dev/job"
EPOCH: Final = "sparkpoint.dev/epoch"
ATTEMPT: Final = "sparkpoint.dev/attempt"
ROLE: Final = "sparkpoint.dev/role"
OPERATION: Final = "sparkpoint.dev/operation"
"""On a SparkSavepoint that an operation of the job takes: nobody else works on it meanwhile. As an
annotation, on the pods and Events of the operation."""
CORRELATION: Final = "sparkpoint.dev/correlation-id"
"""An annotation: what the log and the status call the operation that an object was made for."""
SAVEPOINT: Final = "sparkpoint.dev/savepoint"
"""On a worker pod that works for a SparkSavepoint and for no operation."""

PAUSED: Final = "sparkpoint.dev/paused"
"""An annotation: a person works on it, and the operator keeps its hands off."""

FINALIZER: Final = "sparkpoint.dev/finalizer"
"""Keeps a resource until what belongs to it was ended in order."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A job or a savepoint, by namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def key_of(body: Object) -> Key:
    """Of a resource."""
    about: dict[str, Any] = metadata(body)
    return Key(about["namespace"], about["name"])


def is_paused(body: Object) -> bool:
    """Whether it is to be left as it is; one that is being deleted goes all the same."""
    about: dict[str, Any] = metadata(body)
    wished = (about.get("annotations") or {}).get(PAUSED) == "true"
    return wished and about.get("deletionTimestamp") is None


def job_of(body: Object) -> Key | None:
    """The job that an object is labelled with."""
    about: dict[str, Any] = metadata(body)
    name = (about.get("labels") or {}).get(JOB)
    return Key(about["namespace"], name) if name else None
